"""What came of a comparison: the candidates, the best first, and which of them is chosen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from selfsent.comparison.bases import UNTRAINED
from selfsent.comparison.candidate import Candidate, seed_of
from selfsent.comparison.doubts import Opinion, doubt
from selfsent.comparison.verdict import conclusion
from selfsent.display import counted, text_of
from selfsent.errors import SettingsError
from selfsent.evaluation.results import Score
from selfsent.report.run import Run

if TYPE_CHECKING:
    from rich.table import Table

LEVEL = 0.05
"""Below this p-value two encoders count as told apart."""
_TITLES = {
    "context": "To choose by: find the next sentence, in development documents (MRR@10 x 100)",
    "judges": "To choose by: the geometric mean of several label-free scores, on text kept apart for it",
}


@dataclass(frozen=True, repr=False)
class Selection:
    """What came of a comparison.

    Args:
        directory: where it lies: every run in `methods/NAME/`, with other seeds in its `seeds/SEED/`, the chosen model
            in `model/`.
        dev: what was chosen by.
        bases: the score of each base, untrained, on it, by what it is called.
        candidates: best first.
        failures: why methods failed, by name, or single seeds of them: `mlm, seed 4`.
        seeds: how often each method was to be trained.
        baselines: the scores of TF-IDF and BM25; none where the task needs vectors.
        tests: scores on documents that nothing was trained on or chosen by: of the best encoder, of bases beside it,
            and of TF-IDF and BM25; none without documents.
        judges: what other label-free scores say of the best encoder beside its base.
        was_strong: whether it was chosen without labels from a base that is a sentence encoder already.
    """

    directory: Path
    dev: str
    bases: Mapping[str, Score]
    candidates: tuple[Candidate, ...]
    failures: Mapping[str, str] = field(default_factory=dict)
    seeds: int = 1
    baselines: Mapping[str, Score] = field(default_factory=dict)
    tests: Mapping[str, Score] = field(default_factory=dict)
    judges: Mapping[str, Opinion] = field(default_factory=dict)
    was_strong: bool = False

    def beside(self, name: str, run: Run, score: Score, start: str = UNTRAINED) -> Selection:
        """This, and one more run of a method from a base, with its score on the development documents."""
        others = [each for each in self.candidates if each.name != name]
        new = Candidate(name, (), (), self.bases[start], start)
        known = next((each for each in self.candidates if each.name == name), new)
        grown = replace(known, runs=(*known.runs, run), scores=(*known.scores, score))
        return replace(self, candidates=tuple(sorted([*others, grown], key=lambda each: -each.score.score)))

    @property
    def best_base(self) -> str:
        """The base with the best score, untrained."""
        return max(self.bases, key=lambda name: self.bases[name].score)

    @property
    def chosen(self) -> Candidate | None:
        """The best one; None where an untrained base is at least as good."""
        better = (each for each in self.candidates if each.score.score > self.bases[self.best_base].score)
        return next(better, None)

    @property
    def best(self) -> str:
        """The best encoder: the chosen one, or else the best base as it is."""
        return self.chosen.name if self.chosen else self.best_base

    @property
    def scores(self) -> dict[str, Score]:
        """The score of every encoder, trained or not, by name, best first."""
        found = {**self.bases, **{each.name: each.score for each in self.candidates}}
        return dict(sorted(found.items(), key=lambda each: -each[1].score))

    @property
    def rivals(self) -> dict[str, float]:
        """The p-values, paired, of those that the development data do not tell from the chosen one."""
        if self.chosen is None:
            return {}
        beside = {name: score for name, score in self.scores.items() if name != self.chosen.name}
        found = {name: self.chosen.score.minus(score).p for name, score in beside.items()}
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
        """Who was left too few steps by the clock of its budget, a line each."""
        found = [(each.name, each.hurried) for each in self.candidates if each.hurried]
        return [f"{name} took no more than {n} step{'s' * (n > 1)}: too few to judge it by" for name, n in found]

    @property
    def conclusion(self) -> tuple[str, str]:
        """What was found, as a headline, and what to do next."""
        start = self.chosen.start if self.chosen else None
        trained = {each.name: each.score for each in self.candidates}
        return conclusion(self.best, start, self.bases, trained, self.baselines, self.tests, was_strong=self.was_strong)

    @property
    def remarks(self) -> list[str]:
        """What must be known beside it, a line each."""
        lines = [f"{name} failed: {reason}" for name, reason in self.failures.items()]
        lines += self.hurried
        if self.chosen and len(self.chosen.runs) > 1:
            lines.append(f"The model of {self.chosen.name} is its run with seed {seed_of(self.chosen.run)}")
        if self.rivals:
            beside = ", ".join(f"{name} (p {p:.2f})" for name, p in self.rivals.items())
            what = "items and seeds" if self.seeds > 1 else "items"
            lines.append(f"The {what} it was chosen by do not tell {self.best} from {beside}")
        if self.chosen and (line := doubt(self.judges, self.best, self.chosen.start)):
            lines.append(line)
        return lines

    def verdict(self) -> list[str]:
        """What to make of the tables, a line each: what was found and what to do next are the last two."""
        return [*self.remarks, *self.conclusion]

    def table(self) -> Table:
        """Every encoder, the best first, with the untrained bases, TF-IDF and BM25 among them."""
        from rich.table import Column, Table
        from rich.text import Text

        label_free = self.dev == "context"
        right = ("score", "95 % interval", "against untrained", "p")
        scored = ("query", "queries") if label_free else ("item", "items")
        table = Table(
            "method",
            *(Column(name, justify="right", no_wrap=True) for name in right),
            title=_TITLES.get(self.dev, f"To choose by: {self.dev}"),
            caption=f"{counted(self.bases[self.best_base].n, *scored)}; differences and p-values"
            " are paired" + (f"; mean ± deviation over {self.seeds} seeds" if self.seeds > 1 else ""),
            title_justify="left",
            caption_justify="left",
        )
        trained = {each.name: each for each in self.candidates}
        rows = {**self.scores, **self.baselines}
        for name, score in sorted(rows.items(), key=lambda row: -row[1].score):
            candidate = trained.get(name)
            cells = [
                self._shown(candidate) if candidate else f"{score.score:.2f}",
                f"{score.low:.2f} to {score.high:.2f}",
            ]
            if candidate:
                gain = candidate.gain
                cells += [f"{gain.difference:+z.2f} [{gain.low:+z.2f}, {gain.high:+z.2f}]", f"{gain.p:.3f}"]
            style = "bold" if name == self.best else "italic" if name in self.baselines else ""
            table.add_row(Text(name), *cells, style=style)
        return table

    def _shown(self, candidate: Candidate) -> str:
        lost = candidate.takes_steps and len(candidate.runs) < self.seeds
        return candidate.shown + (f" ({len(candidate.runs)} of {self.seeds})" if lost else "")

    def test_table(self) -> Table | None:
        """The best encoder beside others on documents apart, and its paired difference to each; None without any."""
        from rich.table import Column, Table
        from rich.text import Text

        if not self.tests:
            return None
        best = self.tests[self.best]
        table = Table(
            "",
            *(
                Column(name, justify="right", no_wrap=True)
                for name in ("score", "95 % interval", "best encoder minus it")
            ),
            title="On documents that nothing was trained on or chosen by: find the next sentence (MRR@10 x 100)",
            caption=counted(best.n, "query", "queries"),
            title_justify="left",
            caption_justify="left",
        )
        for name, score in sorted(self.tests.items(), key=lambda each: -each[1].score):
            cells = [f"{score.score:.2f}", f"{score.low:.2f} to {score.high:.2f}"]
            if name != self.best:
                less = best.minus(score)
                cells.append(f"{less.difference:+z.2f} [{less.low:+z.2f}, {less.high:+z.2f}]")
            table.add_row(Text(name), *cells, style="bold" if name == self.best else "")
        return table

    def __str__(self) -> str:
        """What the terminal shows."""
        tests = self.test_table()
        below = [text_of(tests)] if tests else []
        return text_of(self.table(), [*below, *self.verdict()])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """What a notebook shows: the page that lies in the directory."""
        page = self.directory / "report.html"
        return page.read_text(encoding="utf-8") if page.is_file() else f"<pre>{escape(str(self))}</pre>"

    def to_json(self) -> dict[str, Any]:
        """Everything as plain data."""
        return {
            "headline": self.conclusion[0],
            "advice": self.conclusion[1],
            "remarks": self.remarks,
            "dev": self.dev,
            "best": self.best,
            "chosen": self.chosen.name if self.chosen else None,
            "rivals": self.rivals,
            "seeds": self.seeds,
            "bases": {name: score.to_json() for name, score in self.bases.items()},
            "baselines": {name: score.to_json() for name, score in self.baselines.items()},
            "tests": self._tests(),
            "judges": {name: one.to_json() for name, one in self.judges.items()},
            "candidates": [
                {
                    "name": each.name,
                    "base": each.start,
                    "dev": each.score.to_json(),
                    "deviation": each.deviation,
                    "gain": vars(each.gain),
                    # Of the best run, if there are several.
                    "seed": seed_of(each.run),
                    "directory": str(each.run.directory.relative_to(self.directory)),
                    "steps": each.run.record.get("steps"),
                    "seconds": each.run.record.get("seconds"),
                    "test": each.run.scores,
                    "seeds": {
                        str(seed_of(run)): {
                            "directory": str(run.directory.relative_to(self.directory)),
                            "dev_score": score.score,
                            "steps": run.record.get("steps"),
                            "test_score": run.scores["trained"]["score"] if run.scores else None,
                        }
                        for run, score in zip(each.runs, each.scores, strict=True)
                    },
                }
                for each in self.candidates
            ],
            "failures": dict(self.failures),
            "hurried": self.hurried,
        }

    def _tests(self) -> dict[str, Any]:
        found = {name: score.to_json() for name, score in self.tests.items()}
        for name in found.keys() - {self.best}:
            found[name]["best_minus_it"] = vars(self.tests[self.best].minus(self.tests[name]))
        return found
