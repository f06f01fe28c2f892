"""Texts of the two views of a sentence: itself, neighbours, surroundings or documents, and the noise on them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from selfsent.data.views.noise import CropWords, DeleteWords, PickWords
from selfsent.data.views.positives import WHOLE, Mixed, Passage, Span, Surroundings, Title
from selfsent.data.views.view import View, ViewSide
from selfsent.errors import SettingsError, guess
from selfsent.methods.method import AnyBase, MethodOptions
from selfsent.naming import names
from selfsent.settings import setting

POSITIVES = (
    "what the two views read. itself: the sentence twice; neighbours: a sentence and a neighbour in its document, or"
    " several in a row with --span; surroundings: a sentence, and those around it without it; document: a sentence, and"
    " its document without it; title: the first sentence of a document, and the rest. Several are mixed:"
    " title,document,neighbours"
)
_READ: dict[str, tuple[str, ...]] = {
    "itself": (),
    "neighbours": ("within", "span", "overlap"),
    "surroundings": ("within", "kept"),
    "document": ("kept",),
    "title": (),
}
"""The positives, each with the options that it reads."""
_UNREAD = {"within": 1, "span": 1, "overlap": False, "kept": 0.1}
"""These options, each with the only value allowed where nothing reads it."""
SEARCHED = {"surroundings", "document", "title"}
"""Positives of which the first view asks for the second, as a query does."""
LONG = {"document", "title"}
"""Positives that are as long as a document."""
NOISES: dict[str, Any] = {"delete_words": DeleteWords, "pick_words": PickWords, "crop_words": CropWords}


@dataclass(frozen=True)
class ViewOptions(MethodOptions):
    """Options for the two views of a sentence, and the noise on them."""

    positives: str = setting("itself", POSITIVES)
    within: int = setting(1, "how many sentences away a neighbour, or the surroundings, may be", minimum=1)
    span: int = setting(1, "maximum number of sentences in a view that reads neighbours, redrawn each time", minimum=1)
    overlap: bool = setting(False, "the two spans may share sentences")
    kept: float = setting(0.1, "share of sentences that stay in their surroundings", minimum=0.0, maximum=1.0)
    delete_words: float = setting(0.0, "share of the words deleted from each view", minimum=0.0, maximum=0.95)
    pick_words: int = setting(0, "largest number of words that stay in a view; 0 keeps all", minimum=0)
    crop_words: float = setting(0.0, "largest share of words that stay, in one run; 0: all", minimum=0.0, maximum=1.0)

    def __post_init__(self) -> None:
        super().__post_init__()
        if sum(bool(getattr(self, name)) for name in NOISES) > 1:
            raise SettingsError("delete_words, pick_words and crop_words are kinds of noise for one view: give one")
        if unknown := [kind for kind in self.kinds if kind not in _READ]:
            raise SettingsError(f"there are no positives {unknown[0]!r}; {guess(unknown[0], _READ)}")
        if "itself" in self.kinds and len(self.kinds) > 1:
            raise SettingsError("positives=itself cannot be mixed with others, which read documents: leave it out")
        read = {option for kind in self.kinds for option in _READ[kind]}
        # All are listed: some may be the method's defaults.
        needed = [f"{name}={value}" for name, value in _UNREAD.items() if getattr(self, name) != value]
        if needed := [each for each in needed if each.partition("=")[0] not in read]:
            raise SettingsError(f"positives={self.positives} needs {' '.join(needed)}: give that, or other positives")

    @property
    def kinds(self) -> tuple[str, ...]:
        """The positives, each once."""
        return tuple(dict.fromkeys(names(self.positives)))

    @property
    def reads_whole_documents(self) -> bool:
        """Whether a view reads as much of a document as the encoder does."""
        return not LONG.isdisjoint(self.kinds)

    @property
    def sides(self) -> tuple[ViewSide, ViewSide]:
        """Roles of the texts of the two views."""
        return ("symmetric", "symmetric") if SEARCHED.isdisjoint(self.kinds) else ("query", "document")

    def views(self, second_column: int = 0) -> tuple[View, ...]:
        """The two views of each row; noise is on both, but on no whole document."""
        noise = next((make(value) for name, make in NOISES.items() if (value := getattr(self, name))), None)
        passages = [self._passages(kind) for kind in self.kinds]
        anchor, positive = (each[0] if len({*each}) == 1 else Mixed(each) for each in zip(*passages, strict=True))
        other = None if self.reads_whole_documents else noise
        one, two = self.sides
        return View(noise=noise, passage=anchor, side=one), View(second_column, other, passage=positive, side=two)

    def _passages(self, kind: str) -> tuple[Passage | None, Passage | None]:
        """The two views of positives of one kind; None for the row itself."""
        if kind == "neighbours":
            positive = Span("positive", self.within, self.span, self.overlap)
            return (replace(positive, part="anchor") if self.span > 1 else None), positive
        if kind == "title":
            return Title("anchor"), Title("positive")
        within = {"surroundings": self.within, "document": WHOLE}.get(kind)
        return None, Surroundings(within, self.kept) if within else None

    @property
    def varied(self) -> bool:
        """Whether the two views differ without dropout."""
        return self.positives != "itself" or any(getattr(self, name) for name in NOISES)


@dataclass(frozen=True)
class PairOptions(ViewOptions):
    """Options for two views made from one row, which must differ."""

    columns: bool = setting(False, "the views are the first two text columns, instead of one column read twice")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.columns and self.positives != "itself":
            raise SettingsError("`columns` and `positives` both say what the second view reads: give one of them")

    def views(self, second_column: int = 0) -> tuple[View, ...]:
        """The two views: of one column, or of the first two."""
        return super().views(int(self.columns))

    @property
    def varied(self) -> bool:
        """Whether the two views differ without dropout."""
        return self.columns or super().varied

    @property
    def suits_static(self) -> bool:
        """Whether views differ without dropout, which static embeddings do not have."""
        return self.varied

    def check_base(self, base: AnyBase, dropout: float | None = None) -> None:
        """Reject two identical views."""
        if not (self.varied or (base.dropout_rate if dropout is None else dropout)):
            given = "" if base.is_static else "dropout=0.1, or "
            problem = "the two views of a sentence would be identical: this base has no dropout and no noise is set"
            advice = f"give positives=neighbours if the corpus has documents, or {given}delete_words=0.3"
            raise SettingsError(f"{problem}; {advice}")
