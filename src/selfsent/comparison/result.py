"""What came of a comparison: the candidates, the best first, and which of them is chosen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from selfsent.api import Run
from selfsent.display import text_of
from selfsent.errors import SettingsError
from selfsent.evaluation.results import Score
from selfsent.evaluation.side_by_side import mean_score
from selfsent.evaluation.stats.resampling import Difference
from selfsent.training.budget import FEW

if TYPE_CHECKING:
    from rich.table import Table

UNTRAINED = "untrained"
"""What the base is called beside the methods."""
LEVEL = 0.05
"""Below this p-value two encoders count as told apart."""
_TITLE = "To choose by: find the next sentence, in development documents (MRR@10 x 100)"


@dataclass(frozen=True)
class Candidate:
    """An encoder that was trained, and judged on the development documents.

    Args:
        name: what it is called.
        runs: its runs, which differ in their seeds.
        scores: of each run on the development documents.
        base: the untrained base's score on them.
    """

    name: str
    runs: tuple[Run, ...]
    scores: tuple[Score, ...]
    base: Score

    @property
    def run(self) -> Run:
        """The run with the best score, the earliest of them."""
        return self.runs[max(range(len(self.runs)), key=lambda number: self.scores[number].score)]

    @cached_property
    def score(self) -> Score:
        """The score of the run, or the mean over its seeds."""
        return mean_score(self.scores) if len(self.scores) > 1 else self.scores[0]

    @cached_property
    def gain(self) -> Difference:
        """That score minus the untrained base's, paired."""
        return self.score.minus(self.base)

    @property
    def deviation(self) -> float | None:
        """Standard deviation of the scores over seeds (n − 1); None for a single one."""
        return float(np.std([score.score for score in self.scores], ddof=1)) if len(self.scores) > 1 else None

    @property
    def takes_steps(self) -> bool:
        """Whether it is trained; what is fitted is the same with every seed, and done once."""
        return any(run.record.get("steps") for run in self.runs)

    @property
    def hurried(self) -> int | None:
        """The steps of the shortest of its runs, if it was a budget's clock that left so few; else None."""
        by_clock = [run for run in self.runs if run.record.get("asked", {}).get("settings", {}).get("budget")]
        steps = [int(run.record["steps"]) for run in by_clock if run.record.get("steps")]
        return min(steps) if steps and min(steps) < FEW else None

    @property
    def shown(self) -> str:
        """The score as it is printed: `37.65`, or over seeds `37.65 ± 0.31`."""
        return f"{self.score.score:.2f}" + ("" if self.deviation is None else f" ± {self.deviation:.2f}")


@dataclass(frozen=True, repr=False)
class Selection:
    """What came of a comparison.

    Args:
        directory: where it lies: every run in `methods/NAME/`, with other seeds in its `seeds/SEED/`, the chosen model
            in `model/`.
        dev: what was chosen by.
        base: the untrained base's score on it.
        candidates: best first.
        failures: why methods failed, by name, or single seeds of them: `mlm, seed 4`.
        seeds: how often each method was to be trained.
    """

    directory: Path
    dev: str
    base: Score
    candidates: tuple[Candidate, ...]
    failures: Mapping[str, str] = field(default_factory=dict)
    seeds: int = 1

    def beside(self, name: str, run: Run, score: Score) -> Selection:
        """This, and one more run of a method, with its score on the development documents."""
        others = [each for each in self.candidates if each.name != name]
        known = next((each for each in self.candidates if each.name == name), Candidate(name, (), (), self.base))
        grown = replace(known, runs=(*known.runs, run), scores=(*known.scores, score))
        return replace(self, candidates=tuple(sorted([*others, grown], key=lambda each: -each.score.score)))

    @property
    def chosen(self) -> Candidate | None:
        """The best one; None where the untrained base is at least as good."""
        better = (each for each in self.candidates if each.score.score > self.base.score)
        return next(better, None)

    @property
    def rivals(self) -> dict[str, float]:
        """The p-values, paired, of those that the development data do not tell from the chosen one."""
        if self.chosen is None:
            return {}
        beside = {UNTRAINED: self.base} | {each.name: each.score for each in self.candidates[1:]}
        found = {name: self.chosen.score.minus(score).p for name, score in beside.items()}
        return {name: p for name, p in found.items() if p >= LEVEL}

    @property
    def model(self) -> Any:
        """The chosen model, an ordinary SentenceTransformer.

        Raises:
            SettingsError: the untrained base is at least as good.
        """
        if self.chosen is None:
            raise SettingsError("no method made the base better: there is no model to load")
        return self.chosen.run.model

    @property
    def hurried(self) -> list[str]:
        """Who was left too few steps by the clock of its budget, a line each."""
        found = [(each.name, each.hurried) for each in self.candidates if each.hurried]
        return [f"{name} took no more than {n} step{'s' * (n > 1)}: too few to judge it by" for name, n in found]

    def verdict(self) -> list[str]:
        """What to make of the table, a line each."""
        lines = [f"{name} failed: {reason}" for name, reason in self.failures.items()]
        lines += self.hurried
        if self.chosen is None:
            return [*lines, "No method made the base better: use the base as it is, or give more text or more time."]
        several = len(self.chosen.runs) > 1
        which = f"; the model is its run with seed {seed_of(self.chosen.run)}" if several else ""
        lines.append(f"Chosen: {self.chosen.name}{which}")
        if self.rivals:
            beside = ", ".join(f"{name} (p {p:.2f})" for name, p in self.rivals.items())
            what = "items and seeds" if self.seeds > 1 else "items"
            lines.append(f"Not told apart from it by these {what}: {beside}")
        return lines

    def table(self) -> Table:
        """The candidates, the best first, and the untrained base among them."""
        from rich.table import Column, Table
        from rich.text import Text

        label_free = self.dev == "context"
        right = ("score", "95 % interval", "against untrained", "p")
        table = Table(
            "method",
            *(Column(name, justify="right", no_wrap=True) for name in right),
            title=_TITLE if label_free else f"To choose by: {self.dev}",
            caption=f"{self.base.n:,} {'queries' if label_free else 'items'}; differences and p-values are paired"
            + (f"; mean ± deviation over {self.seeds} seeds" if self.seeds > 1 else ""),
            title_justify="left",
            caption_justify="left",
        )
        rows: list[tuple[str, Score, Candidate | None]] = [(each.name, each.score, each) for each in self.candidates]
        rows.append((UNTRAINED, self.base, None))
        for name, score, candidate in sorted(rows, key=lambda row: -row[1].score):
            shown = candidate.shown if candidate else f"{score.score:.2f}"
            lost = candidate and candidate.takes_steps and len(candidate.runs) < self.seeds
            few = f" ({len(candidate.runs)} of {self.seeds})" if candidate and lost else ""
            cells = [shown + few, f"{score.low:.2f} to {score.high:.2f}"]
            if candidate:
                gain = candidate.gain
                cells += [f"{gain.difference:+z.2f} [{gain.low:+z.2f}, {gain.high:+z.2f}]", f"{gain.p:.3f}"]
            table.add_row(Text(name), *cells, style="bold" if candidate and candidate is self.chosen else "")
        if label_free:
            table.add_section()
            table.add_row("TF-IDF", f"{self.base.metrics['tfidf']:.2f}")
        return table

    def __str__(self) -> str:
        """What the terminal shows."""
        return text_of(self.table(), self.verdict())

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """What a notebook shows: the page that lies in the directory."""
        page = self.directory / "report.html"
        return page.read_text(encoding="utf-8") if page.is_file() else f"<pre>{escape(str(self))}</pre>"

    def to_json(self) -> dict[str, Any]:
        """Everything as plain data."""
        return {
            "dev": self.dev,
            "chosen": self.chosen.name if self.chosen else None,
            "rivals": self.rivals,
            "seeds": self.seeds,
            "base": self.base.to_json(),
            "candidates": [
                {
                    "name": each.name,
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


def seed_of(run: Run) -> int:
    """The seed that a run was asked for."""
    return int(run.record["asked"]["settings"]["seed"])
