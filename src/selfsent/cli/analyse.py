"""`selfsent analyse`: the papers' analyses, each as a table and JSON."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from selfsent.cli.console import show
from selfsent.cli.options import Command, Encoding, WithData
from selfsent.cli.outputs import check_outputs, write_outputs
from selfsent.cli.results import as_line
from selfsent.display import table_of
from selfsent.settings import setting

if TYPE_CHECKING:
    from rich.table import Table

    from selfsent.evaluation.datasets.declared import Rows
    from selfsent.evaluation.encoders import Encoder


@dataclass(kw_only=True)
class _Analysis(WithData, Encoding):
    model: tuple[str, ...] = setting((), "as for selfsent evaluate", positional=True, nargs="+", metavar="MODEL")
    pairs: str | None = setting(None, "a file with columns sentence1, sentence2, score", metavar="FILE")
    task: str | None = setting(None, "the pairs of a task, such as stsb-dev, instead", metavar="NAME")
    json: str | None = setting(None, "everything, as one object; - for standard output alone", metavar="FILE")
    least: float = setting(0.8, "pairs with this share of the highest score, or more, mean the same")

    def read_pairs(self) -> Rows:
        """The scored pairs; all input is checked before a model is loaded."""
        from selfsent.evaluation.datasets.declared import Store
        from selfsent.evaluation.encoders import check_model
        from selfsent.evaluation.suites import load_pairs

        check_outputs({"--json": self.json}, [self.pairs])
        rows = load_pairs(self.task, self.pairs, Store(self.data))
        for model in self.model:
            check_model(model)
        return rows

    def encoders(self) -> Iterable[Encoder]:
        """The encoders of the models."""
        from selfsent.evaluation.encoders import as_encoder

        bits = self.bits()
        return (as_encoder(model, **bits) for model in self.model)

    def finish(self, table: Table, plain: Any) -> None:
        """Write the result as JSON or show it as a table."""
        if not write_outputs({self.json: lambda: as_line(plain)}):
            show(table)


@dataclass(kw_only=True)
class Words(_Analysis):
    """Which kinds of words decide a similarity."""

    def run(self) -> None:
        """Show the importance of each part of speech."""
        from selfsent.papers.analysis import similar_pairs, word_importance

        rows = self.read_pairs()
        pairs = similar_pairs(rows, self.least)
        found = {encoder.name: word_importance(encoder, *pairs) for encoder in self.encoders()}
        kinds = (
            [kind, *(f"{100 * one.decisive.get(kind, 0):.1f}" for one in found.values()), f"{100 * share:.1f}"]
            for kind, share in next(iter(found.values())).present.items()
        )
        table = table_of(["decisive word, %", *found, "all words"], kinds)
        plain = {name: asdict(one) for name, one in found.items()}
        self.finish(table, {"pairs": rows.name, "words": plain})


@dataclass(kw_only=True)
class Space(_Analysis):
    """Alignment and uniformity of the vectors."""

    def run(self) -> None:
        """Show alignment and uniformity."""
        from selfsent.papers.analysis import space

        rows = self.read_pairs()
        found = [space(encoder, rows, self.least) for encoder in self.encoders()]
        cells = ([one.model, f"{one.alignment:.3f}", f"{one.uniformity:.3f}"] for one in found)
        table = table_of(["model", "alignment", "uniformity"], cells)
        self.finish(table, {"pairs": rows.name, "space": list(map(asdict, found))})


@dataclass(kw_only=True)
class Analyse(Command):
    """The papers' analyses: words, space."""

    kinds: ClassVar = {"words": Words, "space": Space}
