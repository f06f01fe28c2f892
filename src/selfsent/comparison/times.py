"""How long a comparison takes: told before it begins, from the time that scoring the bases took."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Mapping, Sequence

from selfsent.comparison.turns import Turn
from selfsent.evaluation.hold_out import HoldOut
from selfsent.settings import spoken

_JUDGES = 5
"""Times the scoring of a base that the other judges take in the end, of the chosen encoder and its base together."""


def ahead_of(todo: Sequence[Turn], judged: Mapping[str, float], hold_out: HoldOut, spent: float) -> Iterator[str]:
    """How long it will take, in words, line by line; nothing where nothing trains by the clock.

    Args:
        todo: the runs to come.
        judged: seconds that scoring each base took, by its name; an encoder made of it takes as long.
        hold_out: what they are trained and scored on.
        spent: seconds that are over.
    """
    timed = [turn for turn in todo if turn.given.get("budget")]
    if not timed:
        return
    budgets = [float(turn.given["budget"]) for turn in timed]
    fits = [judged[turn.job.base.name] * _fit(hold_out) for turn in todo if not turn.given.get("budget")]
    of_runs = sum(max(budget, _scoring(turn, judged, hold_out)) for turn, budget in zip(timed, budgets, strict=True))
    last = (2 + _JUDGES) * max(judged.values()) if hold_out.test is not None else 0.0
    each = f" of {spoken(budgets[0])} each" if len(set(budgets)) == 1 and len(timed) > 1 else ""
    of = f" of {spoken(budgets[0])}" if len(timed) == 1 else each
    runs = f"{len(timed)} run{'s' * (len(timed) > 1)}{of}, scoring included"
    beside = f", and {len(fits)} without a clock" if fits else ""
    total = spent + of_runs + sum(fits) + last
    yield f"{runs}{beside}: about {spoken(total)} in all, {spoken(spent)} of which are over"
    for base in dict.fromkeys(turn.job.base for turn in timed):
        least, turn = min((budget, n) for n, budget in enumerate(budgets) if timed[n].job.base == base)
        if (scoring := _scoring(timed[turn], judged, hold_out)) > least / 2:
            yield (
                f"scoring {base.label or base.name} takes some {spoken(scoring)} of the {spoken(least)} of a run, and"
                f" leaves it few steps: give --budget {math.ceil(scoring / 15)}m"
            )


def _scoring(turn: Turn, judged: Mapping[str, float], hold_out: HoldOut) -> float:
    """Seconds of a run that are not for its training: to choose by, and on documents apart."""
    return judged[turn.job.base.name] * (1 if hold_out.test is None else 2)


def _fit(hold_out: HoldOut) -> float:
    """Times the scoring of a base that a method without steps takes, which reads every sentence once."""
    scored = statistics.mean(len(rows) for rows in (hold_out.dev, hold_out.test, [0] * 1000) if rows is not None)
    return 2 + len(hold_out.train) / max(1.0, scored)
