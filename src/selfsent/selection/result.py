"""What came of a comparison: the candidates, the best first, and which of them is chosen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from selfsent.api import Run
from selfsent.errors import SettingsError
from selfsent.evaluation.bootstrap import Difference
from selfsent.evaluation.results import Score

if TYPE_CHECKING:
    from rich.table import Table

LEVEL = 0.05
"""Below this p-value two encoders count as told apart."""
_TITLE = "To choose by: find the next sentence, in development documents (MRR@10 x 100)"


@dataclass(frozen=True)
class Candidate:
    """An encoder that was trained, and judged on the development documents.

    Args:
        name: what it is called.
        run: its run.
        score: on the development documents.
        gain: that score minus the untrained base's, paired.
    """

    name: str
    run: Run
    score: Score
    gain: Difference


@dataclass(frozen=True)
class Selection:
    """What came of a comparison.

    Args:
        directory: where it lies: every run in `methods/NAME/`, the chosen model in `model/`.
        dev: what was chosen by.
        base: the untrained base's score on it.
        candidates: best first.
        failures: why methods failed, by name.
    """

    directory: Path
    dev: str
    base: Score
    candidates: tuple[Candidate, ...]
    failures: Mapping[str, str] = field(default_factory=dict)

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
        beside = {"untrained": self.base} | {each.name: each.score for each in self.candidates[1:]}
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

    def verdict(self) -> list[str]:
        """What to make of the table, a line each."""
        lines = [f"{name} failed: {reason}" for name, reason in self.failures.items()]
        if self.chosen is None:
            return [*lines, "No method made the base better: use the base as it is, or give more text or more time."]
        lines.append(f"Chosen: {self.chosen.name}")
        if self.rivals:
            beside = ", ".join(f"{name} (p {p:.2f})" for name, p in self.rivals.items())
            lines.append(f"Not told apart from it by these items: {beside}")
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
            caption=f"{self.base.n:,} {'queries' if label_free else 'items'}; differences and p-values are paired",
            title_justify="left",
            caption_justify="left",
        )
        rows: list[tuple[str, Score, Candidate | None]] = [(each.name, each.score, each) for each in self.candidates]
        rows.append(("untrained", self.base, None))
        for name, score, candidate in sorted(rows, key=lambda row: -row[1].score):
            cells = [f"{score.score:.2f}", f"{score.low:.2f} to {score.high:.2f}"]
            if candidate:
                gain = candidate.gain
                cells += [f"{gain.difference:+.2f} [{gain.low:+.2f}, {gain.high:+.2f}]", f"{gain.p:.3f}"]
            table.add_row(Text(name), *cells, style="bold" if candidate and candidate is self.chosen else "")
        if label_free:
            table.add_section()
            table.add_row("TF-IDF", f"{self.base.metrics['tfidf']:.2f}")
        return table

    def to_json(self) -> dict[str, Any]:
        """Everything as plain data."""
        return {
            "dev": self.dev,
            "chosen": self.chosen.name if self.chosen else None,
            "rivals": self.rivals,
            "base": self.base.to_json(),
            "candidates": [
                {
                    "name": each.name,
                    "directory": str(each.run.directory.relative_to(self.directory)),
                    "steps": each.run.record.get("steps"),
                    "seconds": each.run.record.get("seconds"),
                    "dev": each.score.to_json(),
                    "gain": vars(each.gain),
                    "test": each.run.scores,
                }
                for each in self.candidates
            ],
            "failures": dict(self.failures),
        }
