from types import SimpleNamespace

import numpy as np
import pytest

from selfsent.comparison.bases import Base
from selfsent.comparison.times import ahead_of
from selfsent.evaluation.hold_out import HoldOut

HELD = HoldOut(np.arange(5000), np.arange(1000), np.arange(1000))
ALONE = HoldOut(np.arange(5000), None, None)


def turns(*budgets, base="mine", label=""):
    job = SimpleNamespace(base=Base(base, label))
    return [SimpleNamespace(job=job, given={"budget": budget} if budget else {}) for budget in budgets]


def test_runs_their_scores_what_is_over_and_the_last_table_are_counted():
    (line,) = ahead_of(turns(60, 60, 60), {"mine": 5.0}, HELD, spent=8.0)
    assert line == "3 runs of 60 s each, scoring included: about 3.7 minutes in all, 8 s of which are over"


def test_what_takes_no_steps_reads_every_sentence_once():
    (line,) = ahead_of(turns(60, None), {"mine": 5.0}, HELD, spent=8.0)
    runs = "1 run of 60 s, scoring included, and 1 without a clock"
    assert line == f"{runs}: about 2.3 minutes in all, 8 s of which are over"


def test_nothing_is_told_without_a_clock():
    assert not list(ahead_of(turns(None, None), {"mine": 5.0}, HELD, spent=8.0))


@pytest.mark.parametrize(
    ("hold_out", "scoring", "total", "advice"), [(HELD, 60, "5.2 minutes", 4), (ALONE, 30, "84 s", 2)]
)
def test_a_budget_that_scoring_eats_up_is_told(hold_out, scoring, total, advice):
    judged = {"small": 0.1, "large": 30.0}
    todo = turns(20, 20, base="large", label="L") + turns(20, base="small", label="S")
    first, second = ahead_of(todo, judged, hold_out, spent=4.0)
    runs = "3 runs of 20 s each, scoring included"
    total = 4 + 2 * scoring + 20 + (210 if hold_out is HELD else 0)
    said = f"{total} s" if total <= 120 else f"{total / 60:.1f} minutes"
    assert first == f"{runs}: about {said} in all, 4 s of which are over"
    advised = f"leaves it few steps: give --budget {advice}m"
    assert second == f"scoring L takes some {scoring} s of the 20 s of a run, and {advised}"
