"""What methods that compare sentences share: two views of each sentence, and company in the batch."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

from selfsent.data.views import CropWords, DeleteWords, Noise, Passage, PickWords, RepeatWords, Span, Surroundings, View
from selfsent.distributed import world_size
from selfsent.errors import SettingsError, TrainingError
from selfsent.models.encoder import Encoder
from selfsent.settings import check_limits, setting

Positives = Literal["itself", "neighbours", "surroundings"]
POSITIVES = (
    "what the other view reads. itself: the sentence again; neighbours: a neighbour in its document, or several in a"
    " row with --span; surroundings: what stands around it, without it"
)
_READ_BY: dict[str, tuple[Any, tuple[Positives, ...]]] = {
    "span": (1, ("neighbours",)),
    "overlap": (False, ("neighbours",)),
    "within": (1, ("neighbours", "surroundings")),
    "kept": (0.1, ("surroundings",)),
}
"""What says how positives are drawn: the value that says nothing, and the positives that read another."""
NOISES = ("delete_words", "pick_words", "crop_words", "repeat_words")


def _flag(name: str, value: Any) -> str:
    if isinstance(value, bool):
        return f"--{'' if value else 'no-'}{name}"
    return f"--{name} {value:g}"


@dataclass(frozen=True)
class ViewOptions:
    """Where the two views of a sentence come from, and the noise on them."""

    positives: Positives = setting("itself", POSITIVES)
    within: int = setting(1, "how many sentences away a neighbour, or the surroundings, may be", minimum=1)
    span: int = setting(1, "most sentences in a view that reads neighbours, drawn anew each time", minimum=1)
    overlap: bool = setting(False, "the two spans may share sentences")
    kept: float = setting(0.1, "share of sentences that stay in their surroundings", minimum=0.0, maximum=1.0)
    delete_words: float = setting(
        0.0, "share of the words deleted from each view, beside dropout", minimum=0.0, maximum=0.95
    )
    pick_words: int = setting(0, "largest number of words that stay in a view, beside dropout; 0 keeps all", minimum=0)
    crop_words: float = setting(
        0.0, "largest share of the words that stay in a view, in one run; 0 keeps all", minimum=0.0, maximum=1.0
    )
    repeat_words: float = setting(
        0.0, "largest share of the words said twice in one view (ESimCSE: 0.32)", minimum=0.0, maximum=1.0
    )

    def __post_init__(self) -> None:
        check_limits(self)
        if sum(bool(getattr(self, name)) for name in NOISES) > 1:
            raise SettingsError(
                "--delete-words, --pick-words, --crop-words and --repeat-words are kinds of noise for the same views:"
                " give one"
            )
        self._refuse_unread()

    def _refuse_unread(self) -> None:
        """Refuse what says how positives are drawn that are not drawn; it may be a method's default, so all is named.

        Raises:
            SettingsError: there is something.
        """
        unread = [
            name
            for name, (usual, positives) in _READ_BY.items()
            if getattr(self, name) != usual and self.positives not in positives
        ]
        if not unread:
            return
        values = " and ".join(_flag(name, getattr(self, name)) for name in unread)
        usual = " ".join(_flag(name, _READ_BY[name][0]) for name in unread)
        readers = [kind for kind in get_args(Positives) if all(kind in _READ_BY[name][1] for name in unread)]
        instead = f"--positives {' or '.join(readers)}, or " if readers else ""
        raise SettingsError(f"--positives {self.positives} does not read {values}: give {instead}{usual}")


@dataclass(frozen=True)
class PairOptions(ViewOptions):
    """How one sentence gives two views."""

    columns: bool = setting(False, "the views are the first two text columns, instead of one column read twice")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.columns and self.positives != "itself":
            raise SettingsError("--columns and --positives both say what the second view reads: give one of them")


def passages(options: ViewOptions) -> tuple[Passage | None, Passage | None]:
    """What the two views read of the document; None for the sentence itself."""
    if options.positives == "itself":
        return None, None
    if options.positives == "surroundings":
        return None, Surroundings(options.within, options.kept)
    positive = Span("positive", options.within, options.span, options.overlap)
    return (replace(positive, part="anchor") if options.span > 1 else None), positive


def two_views(options: ViewOptions, second_column: int = 0) -> tuple[View, View]:
    """The two views; words are repeated in the second one only, so that the lengths differ (Wu et al. 2021)."""
    both: Noise | None = DeleteWords(options.delete_words) if options.delete_words else None
    both = PickWords(options.pick_words) if options.pick_words else both
    both = CropWords(options.crop_words) if options.crop_words else both
    other = RepeatWords(options.repeat_words) if options.repeat_words else both
    first, second = passages(options)
    return View(noise=both, passage=first), View(second_column, other, passage=second)


def pair_of_views(options: PairOptions) -> tuple[View, View]:
    """The two views: of one column, or of the first two."""
    return two_views(options, int(options.columns))


def differ(options: ViewOptions) -> bool:
    """Whether the two views of one column differ without dropout."""
    return options.positives != "itself" or any(getattr(options, name) for name in NOISES)


def varied(options: PairOptions) -> bool:
    """Whether the two views differ without dropout."""
    return options.columns or differ(options)


def require_difference(model: Encoder, options: PairOptions) -> None:
    """Refuse two views that are the same.

    Raises:
        SettingsError: nothing makes the views differ.
    """
    if not (model.dropout_rate or varied(options)):
        noise = "--delete-words 0.3" if not model.has_transformer else "--dropout 0.1, or --delete-words 0.3"
        raise SettingsError(
            "the two views of a sentence would be identical: this base has no dropout and no noise is set;"
            f" give --positives neighbours if the corpus has documents, or {noise}"
        )


def whole_batch(sentences: int) -> int:
    """Sentences in the batch over all processes, given those of this one.

    Raises:
        TrainingError: there is nothing to compare with.
    """
    total = sentences * world_size()
    if total < 2:
        raise TrainingError("a batch of one sentence has nothing to compare it with: raise --batch-size to 2 or more")
    return total
