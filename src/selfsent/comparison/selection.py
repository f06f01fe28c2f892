"""The result of a comparison: the candidates, the best first, and the chosen one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from html import escape
from pathlib import Path
from typing import Any

from rich.table import Table

from selfsent.comparison.verdict import UNTRAINED, conclusion
from selfsent.display import counted, span, table_of, text_of
from selfsent.errors import SettingsError
from selfsent.evaluation.results import Score
from selfsent.report.run import Run
from selfsent.stats.resampling import Difference
from selfsent.training.budget import FEW

LEVEL = 0.05
"""Encoders with a lower p-value count as different."""
_CONTEXT = "find the next sentence, in development documents (MRR@10 x 100)"


@dataclass(frozen=True)
class Candidate:
    """A trained encoder of a comparison, with its scores on the development documents.

    Args:
        name: of the encoder.
        run: its training.
        score: its score.
        base: score of the untrained base.
        start: name of the base.
    """

    name: str
    run: Run
    score: Score
    base: Score
    start: str = UNTRAINED

    @cached_property
    def gain(self) -> Difference:
        """Score minus that of the untrained base, paired."""
        return self.score.minus(self.base)

    def to_json(self, directory: Path) -> dict[str, Any]:
        """The candidate as plain data; its run is in `directory`."""
        run, record = self.run, self.run.record
        about: dict[str, Any] = {"name": self.name, "base": self.start, "dev": self.score.to_json()}
        about |= {"gain": vars(self.gain), "seed": int(record["config"]["settings"]["seed"]), "test": run.scores}
        about |= {"steps": record.get("steps"), "seconds": record.get("seconds")}
        return about | {"directory": str(run.directory.relative_to(directory))}


@dataclass(frozen=True, repr=False)
class Selection:
    """The result of a comparison.

    Args:
        directory: of the comparison: runs in `methods/NAME/`, the chosen model in `model/`.
        dev: metric or task of the choice.
        bases: development scores of the untrained bases, by name.
        candidates: best first.
        failures: reasons of failed methods, by name.
        baselines: scores of TF-IDF and BM25; empty if the task needs vectors.
        tests: scores on test documents: of the best encoder, of bases, and of TF-IDF and BM25; empty without
            documents.
        was_strong: whether it was chosen without labels from a base that is a sentence encoder already.
    """

    directory: Path
    dev: str
    bases: Mapping[str, Score]
    candidates: tuple[Candidate, ...]
    failures: Mapping[str, str] = field(default_factory=dict)
    baselines: Mapping[str, Score] = field(default_factory=dict)
    tests: Mapping[str, Score] = field(default_factory=dict)
    was_strong: bool = False

    def with_run(self, name: str, run: Run, score: Score, start: str = UNTRAINED) -> Selection:
        """A copy with one more run, and its score on the development documents."""
        candidates = [*self.candidates, Candidate(name, run, score, self.bases[start], start)]
        return replace(self, candidates=tuple(sorted(candidates, key=lambda each: -each.score.score)))

    @property
    def best_base(self) -> str:
        """The untrained base with the best score."""
        return max(self.bases, key=lambda name: self.bases[name].score)

    @property
    def chosen(self) -> Candidate | None:
        """The best candidate; None if an untrained base is at least as good."""
        better = (each for each in self.candidates if each.score.score > self.bases[self.best_base].score)
        return next(better, None)

    @property
    def best(self) -> str:
        """Name of the best encoder: the chosen one, or the best base."""
        return self.chosen.name if self.chosen else self.best_base

    @property
    def scores(self) -> dict[str, Score]:
        """Scores of all encoders by name, best first."""
        found = {**self.bases, **{each.name: each.score for each in self.candidates}}
        return dict(sorted(found.items(), key=lambda each: -each[1].score))

    @property
    def rivals(self) -> dict[str, float]:
        """Paired p-values of the encoders that are not significantly worse than the chosen one."""
        if self.chosen is None:
            return {}
        found = {n: self.chosen.score.minus(score).p for n, score in self.scores.items() if n != self.chosen.name}
        return {name: p for name, p in found.items() if p >= LEVEL}

    @property
    def model(self) -> Any:
        """The chosen model, an ordinary SentenceTransformer.

        Raises:
            SettingsError: an untrained base is at least as good.
        """
        if self.chosen is None:
            raise SettingsError("no method made the base better: there is no model to load")
        return self.chosen.run.model

    @property
    def hurried(self) -> list[str]:
        """Warnings about candidates with too few steps, a line each."""
        by_clock = (each for each in self.candidates if each.run.record["config"]["settings"].get("budget"))
        found = ((each.name, int(each.run.record.get("steps") or 0)) for each in by_clock)
        few = ((name, counted(steps, "step")) for name, steps in found if 0 < steps < FEW)
        return [f"{name} took no more than {steps}: too few to judge it by" for name, steps in few]

    @property
    def conclusion(self) -> tuple[str, str]:
        """The finding as a headline, and the advice."""
        start = self.chosen.start if self.chosen else None
        return conclusion(self.best, self.scores, self.tests, self.baselines, self.bases, start, self.was_strong)

    @property
    def remarks(self) -> list[str]:
        """Caveats, a line each."""
        lines = [f"{name} failed: {reason}" for name, reason in self.failures.items()] + self.hurried
        if self.rivals:
            rivals = ", ".join(f"{name} (p {p:.2f})" for name, p in self.rivals.items())
            lines.append(f"The items it was chosen by do not tell {self.best} from {rivals}")
        return lines

    def table(self) -> Table:
        """All encoders, untrained bases, TF-IDF and BM25, the best first."""
        trained = {each.name: each for each in self.candidates}
        rows = []
        for name, score in sorted({**self.scores, **self.baselines}.items(), key=lambda row: -row[1].score):
            cells = [f"{score.score:.2f}", span(score.low, score.high), "", ""]
            if each := trained.get(name):
                cells[2:] = [each.gain.shown, f"{each.gain.p:.3f}"]
            rows.append([name, *cells])
        unit = ("query", "queries") if self.dev == "context" else ("item", "items")
        below = f"{counted(self.bases[self.best_base].n, *unit)}; differences and p-values are paired"
        headings = ["method", "score", "95 % interval", "against untrained", "p"]
        title = f"To choose by: {_CONTEXT if self.dev == 'context' else self.dev}"
        styles = {**dict.fromkeys(self.baselines, "italic"), self.best: "bold"}
        return table_of(headings, rows, title=title, caption=below, styles=styles)

    def test_table(self) -> Table | None:
        """Scores on test documents, and the paired difference of the best encoder to each; None without any."""
        if not self.tests:
            return None
        best, rows = self.tests[self.best], []
        for name, score in sorted(self.tests.items(), key=lambda each: -each[1].score):
            less = "" if name == self.best else best.minus(score).shown
            rows.append([name, f"{score.score:.2f}", span(score.low, score.high), less])
        title = "On documents that nothing was trained on or chosen by: find the next sentence (MRR@10 x 100)"
        headings = ["", "score", "95 % interval", "best encoder minus it"]
        below = counted(best.n, "query", "queries")
        return table_of(headings, rows, title=title, caption=below, styles={self.best: "bold"})

    def __str__(self) -> str:
        """The tables, remarks and conclusion as text."""
        tests = self.test_table()
        return text_of(self.table(), [*([text_of(tests)] if tests else []), *self.remarks, *self.conclusion])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """The page of the comparison, for notebooks."""
        page = self.directory / "report.html"
        return page.read_text(encoding="utf-8") if page.is_file() else f"<pre>{escape(str(self))}</pre>"

    def to_json(self) -> dict[str, Any]:
        """Everything as plain data."""
        tests = {name: score.to_json() for name, score in self.tests.items()}
        for name in tests.keys() - {self.best}:
            tests[name]["best_minus_it"] = vars(self.tests[self.best].minus(self.tests[name]))
        headline, advice = self.conclusion
        about: dict[str, Any] = {"headline": headline, "advice": advice, "remarks": self.remarks, "dev": self.dev}
        about |= {"best": self.best, "failures": dict(self.failures), "tests": tests}
        about |= {"chosen": self.chosen.name if self.chosen else None, "rivals": self.rivals, "hurried": self.hurried}
        for kind, scores in (("bases", self.bases), ("baselines", self.baselines)):
            about[kind] = {name: score.to_json() for name, score in scores.items()}
        return about | {"candidates": [each.to_json(self.directory) for each in self.candidates]}
