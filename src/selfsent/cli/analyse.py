"""`selfsent analyse`: an analysis of the papers, as a table and JSON."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, ClassVar

from selfsent.cli.console import show
from selfsent.cli.options import Command, Encoding, WithData
from selfsent.cli.outputs import check_outputs, write_outputs
from selfsent.cli.results import as_line
from selfsent.display import table_of
from selfsent.settings import setting

if TYPE_CHECKING:
    pass


@dataclass(kw_only=True)
class Words(WithData, Encoding):
    """Which kinds of words decide a similarity."""

    model: tuple[str, ...] = setting((), "as for selfsent evaluate", positional=True, nargs="+", metavar="MODEL")
    pairs: str | None = setting(None, "a file with columns sentence1, sentence2, score", metavar="FILE")
    task: str | None = setting(None, "the pairs of a task, such as stsb-dev, instead", metavar="NAME")
    json: str | None = setting(None, "everything, as one object; - for standard output alone", metavar="FILE")
    least: float = setting(0.8, "pairs with this share of the highest score, or more, mean the same")

    def run(self) -> None:
        """Show the importance of each part of speech; all input is checked before a model is loaded."""
        from selfsent.evaluation.datasets.declared import Store
        from selfsent.evaluation.encoders import as_encoder, check_model
        from selfsent.evaluation.suites import load_pairs
        from selfsent.papers.analysis import similar_pairs, word_importance

        check_outputs({"--json": self.json}, [self.pairs])
        rows = load_pairs(self.task, self.pairs, Store(self.data))
        pairs = similar_pairs(rows, self.least)
        for model in self.model:
            check_model(model)
        bits = self.bits()
        encoders = (as_encoder(model, **bits) for model in self.model)
        found = {encoder.name: word_importance(encoder, *pairs) for encoder in encoders}
        plain = {"pairs": rows.name, "words": {name: asdict(one) for name, one in found.items()}}
        if write_outputs({self.json: lambda: as_line(plain)}):
            return
        kinds = (
            [kind, *(f"{100 * one.decisive.get(kind, 0):.1f}" for one in found.values()), f"{100 * share:.1f}"]
            for kind, share in next(iter(found.values())).present.items()
        )
        show(table_of(["decisive word, %", *found, "all words"], kinds))


@dataclass(kw_only=True)
class Analyse(Command):
    """An analysis of the papers: words."""

    kinds: ClassVar = {"words": Words}
