"""An exam beside judged queries of people: both scores of each model, and whether they agree."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from rich.table import Table

from selfsent.display import counted, listed, table_of
from selfsent.evaluation.results import Result, Score
from selfsent.exam.likeness import MIN_QUERIES, Weighted
from selfsent.stats.resampling import Difference


@dataclass(frozen=True)
class Beside:
    """The scores of models on an exam and on judged queries.

    Args:
        results: of the models, with these scores.
        exam: name of the exam's score.
        judged: name of that of people's queries.
        weighted: the exam weighted by how these look, which is then the one that is compared; None of too few queries.
    """

    results: Sequence[Result]
    exam: str
    judged: str
    weighted: Weighted | None = None

    @property
    def compared(self) -> str:
        """Name of the exam's score that is compared."""
        return self.weighted.task.name if self.weighted else self.exam

    @property
    def agreements(self) -> list[tuple[str, str, bool]]:
        """Comparisons of two models that both decide: the better one by the judged queries, the other, and agreement.

        A comparison is decided where its paired 95 % interval excludes zero.
        """
        found = []
        for one, other in combinations(self._fair, 2):
            real, drawn = self._signs(one, other)
            if real and drawn:
                better, worse = (one, other) if real > 0 else (other, one)
                found.append((better.model, worse.model, real == drawn))
        return found

    @property
    def verdict(self) -> str:
        """Whether both agree, and advice."""
        fair = self._fair
        if len(fair) < 2:
            return "There is nothing to compare: name two models or more that have not read the answers."
        real, drawn = (_first(fair, name) for name in (self.judged, self.compared))
        first = f"Both put {real.model} first."
        if real is not drawn:
            chance = "" if any(self._signs(real, drawn)) else ", which may be chance"
            first = f"Your queries put {real.model} first, the exam {drawn.model}{chance}."
        both, pairs = self.agreements, len(fair) * (len(fair) - 1) // 2
        if against := [f"{one} over {other}" for one, other, agree in both if not agree]:
            return f"{first} They disagree: your queries have {listed(against)}. Believe your queries."
        decided = f"Both decide {len(both)} of {counted(pairs, 'comparison')}"
        if not both:
            return f"{first} {decided}, so nothing speaks against either: judge more queries."
        return f"{first} {decided}, and agree in all of them."

    def _signs(self, one: Result, other: Result) -> tuple[int, int]:
        """Decisions of judged queries and of the exam on two models: 1 for the first, -1 for the other, 0 for none."""
        real, drawn = (one.scores[name].minus(other.scores[name]) for name in (self.judged, self.compared))
        return _sign(real), _sign(drawn)

    @property
    def _fair(self) -> list[Result]:
        """The models that have read none of the answers."""
        names = (self.exam, self.judged, self.compared)
        scored = (each for each in self.results if all(name in each.scores for name in names))
        return [each for each in scored if not any(each.scores[name].has_read for name in names)]

    def table(self) -> Table:
        """A row for each model, the best by the judged queries first, and the verdict below."""
        names = {
            "the exam": self.exam,
            **({"weighted": self.compared} if self.weighted else {}),
            "your queries": self.judged,
        }
        shown = [each for each in self.results if all(name in each.scores for name in names.values())]
        shown.sort(key=lambda each: -each.scores[self.judged].score)
        rows = [[each.model, *(_cell(each.scores[name]) for name in names.values())] for each in shown]
        few = f"from {MIN_QUERIES} judged queries on the exam is weighted by how they look"
        below = [self.weighted.line if self.weighted else few, self.verdict]
        return table_of(("nDCG@10 ± half of the interval", *names), rows, caption="\n".join(below))

    def to_json(self) -> dict[str, Any]:
        """The verdict and its grounds as JSON data."""
        both = [{"better": one, "worse": other, "agree": agree} for one, other, agree in self.agreements]
        plain: dict[str, Any] = {
            "exam": self.compared,
            "queries": self.judged,
            "verdict": self.verdict,
            "decided": both,
        }
        return plain | ({"effective_size": self.weighted.size, "unlike": self.weighted.unlike} if self.weighted else {})


def _first(results: Sequence[Result], name: str) -> Result:
    return max(results, key=lambda each: each.scores[name].score)


def _sign(found: Difference) -> int:
    return (found.low > 0) - (found.high < 0)


def _cell(score: Score) -> str:
    return f"{score.score:.2f} ± {(score.high - score.low) / 2:.2f}"
