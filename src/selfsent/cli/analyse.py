"""`selfsent analyse`: the papers' analyses, each as a table and JSON."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import MISSING, asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from selfsent.cli.console import doing, notice, show
from selfsent.cli.options import CORPUS, UNSET, Command, Encoding, Reading, WithData
from selfsent.cli.outputs import check_outputs, write_outputs
from selfsent.cli.results import as_line
from selfsent.display import table_of
from selfsent.errors import SettingsError
from selfsent.settings import Settings, setting

if TYPE_CHECKING:
    from rich.table import Table

    from selfsent.evaluation.datasets.declared import Rows
    from selfsent.evaluation.encoders import Encoder


@dataclass(kw_only=True)
class _Analysis(WithData, Encoding):
    json: str | None = setting(None, "everything, as one object; - for standard output alone", metavar="FILE")

    def check_files(self, read: Iterable[str | None] = ()) -> None:
        """Reject outputs that cannot be written or that are inputs."""
        check_outputs({"--json": self.json}, list(read))

    def finish(self, table: Table, plain: Any) -> None:
        """Write the result as JSON or show it as a table."""
        if not write_outputs({self.json: lambda: as_line(plain)}):
            show(table)


@dataclass(kw_only=True)
class _OfPairs(_Analysis):
    model: tuple[str, ...] = setting((), "as for selfsent evaluate", positional=True, nargs="+", metavar="MODEL")
    pairs: str | None = setting(None, "a file with columns sentence1, sentence2, score", metavar="FILE")
    task: str | None = setting(None, "the pairs of a task, such as stsb-dev, instead", metavar="NAME")

    def read_pairs(self, *read: str) -> Rows:
        """The scored pairs; all input is checked before a model is loaded."""
        from selfsent.evaluation.datasets.declared import Store
        from selfsent.evaluation.encoders import check_model
        from selfsent.evaluation.suites import load_pairs

        self.check_files([self.pairs, *read])
        rows = load_pairs(self.task, self.pairs, Store(self.data))
        for model in self.model:
            check_model(model)
        return rows

    def encoders(self) -> Iterable[Encoder]:
        """The encoders of the models."""
        from selfsent.evaluation.encoders import as_encoder

        bits = self.bits()
        return (as_encoder(model, **bits) for model in self.model)


def _numbers(text: str) -> tuple[int, ...]:
    try:
        return tuple(sorted({int(part) for part in text.split(",")}))
    except ValueError:
        raise SettingsError(f"{text!r} must be whole numbers with commas between, such as 1000,10000") from None


_LEAST: Any = setting(0.8, "pairs with this share of the highest score, or more, mean the same")


@dataclass(kw_only=True)
class Words(_OfPairs):
    """Which kinds of words decide a similarity."""

    least: float = _LEAST

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
class Space(_OfPairs):
    """Alignment and uniformity of the vectors."""

    least: float = _LEAST

    def run(self) -> None:
        """Show alignment and uniformity."""
        from selfsent.papers.analysis import space

        rows = self.read_pairs()
        found = [space(encoder, rows, self.least) for encoder in self.encoders()]
        cells = ([one.model, f"{one.alignment:.3f}", f"{one.uniformity:.3f}"] for one in found)
        table = table_of(["model", "alignment", "uniformity"], cells)
        self.finish(table, {"pairs": rows.name, "space": list(map(asdict, found))})


@dataclass(kw_only=True)
class CorpusSize(_Analysis, Reading):
    """How the score grows with the number of training sentences."""

    also: ClassVar = (("settings of the runs (the defaults are the method's)", Settings, UNSET),)

    corpus: tuple[str, ...] = CORPUS
    output: str = setting(MISSING, "where the runs go; finished ones are used", metavar="DIR")
    method: str = setting("tsdae", "see selfsent methods", metavar="NAME")
    base: str | None = setting(None, "as for selfsent train", metavar="ENCODER")
    sizes: tuple[int, ...] = setting((), "sentences (default: a 64th, 16th and 4th of them, and all)", parse=_numbers)
    seeds: tuple[int, ...] = setting((0,), "seeds, with a run for each", parse=_numbers)
    task: str | None = setting(None, "score on a task (default: label-free, on held-out documents)", metavar="NAME")

    def run(self) -> None:
        """Train, and show the curve."""
        from selfsent.papers.corpus_size import check_corpus_size, corpus_size

        if self.sizes and self.sizes[0] < 2:
            raise SettingsError(f"sizes is {self.sizes[0]}; each must be at least 2")
        self.check_files([*self.corpus, *self.exclude])
        if "seed" in self.changes:
            raise SettingsError("corpus-size trains with several seeds: give --seeds instead of --seed")
        check_corpus_size(self.method, self.base, self.task, self.data)
        corpus, output = self.read(self.corpus), Path(self.output)
        given: dict[str, Any] = {**self.changes, "task": self.task, "data": self.data}
        given |= {"sizes": list(self.sizes) or None, "seeds": list(self.seeds)}
        given |= {"ends": notice, "bits": self.bits()}
        with doing() as now:
            metric, curve = corpus_size(corpus, self.method, self.base, output, begins=now, **given)
        cells = ([f"{size:,}", str(spread)] for size, spread in curve.items())
        points = [{"size": size, "mean": one.mean, "deviation": one.deviation} for size, one in curve.items()]
        plain = {"method": self.method, "base": self.base, "metric": metric, "seeds": list(self.seeds), "curve": points}
        table = table_of([f"{corpus.report.unit}s", metric], cells)
        self.finish(table, plain)


@dataclass(kw_only=True)
class Analyse(Command):
    """The papers' analyses: words, space, corpus-size."""

    kinds: ClassVar = {"words": Words, "space": Space, "corpus-size": CorpusSize}
