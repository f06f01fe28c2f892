import numpy as np

from selfsent.comparison.run import time_ahead
from selfsent.comparison.trials import Base, Trial
from selfsent.evaluation.hold_out import HoldOut

HELD = HoldOut(np.arange(5000), np.arange(1000), np.arange(1000))


MINE = Base("mine")


def trials(*budgets):
    return [Trial("m", MINE, None, arguments={"budget": budget} if budget else {}) for budget in budgets]


def test_runs_their_scores_what_is_over_and_the_last_table_are_counted():
    line = time_ahead(trials(60, 60, 60), {MINE: 5.0}, HELD, spent=8.0)
    assert line == "3 runs of 60 s each, scoring included: about 3.7 minutes in all, 8 s of which are over"


def test_what_takes_no_steps_reads_every_sentence_once():
    line = time_ahead(trials(60, None), {MINE: 5.0}, HELD, spent=8.0)
    runs = "1 run of 60 s, scoring included, and 1 without a clock"
    assert line == f"{runs}: about 2.3 minutes in all, 8 s of which are over"


def test_nothing_is_told_without_a_clock():
    assert not time_ahead(trials(None, None), {MINE: 5.0}, HELD, spent=8.0)
