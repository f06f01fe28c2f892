"""Runs by the clock, in a time of their own: what a step takes is said here, and nothing hangs on the machine."""

import time

import pytest

import tiny
from selfsent.training.budget import Clock
from selfsent.training.loop import Interrupted, Loop
from selfsent.training.run_config import RunConfig
from selfsent.training.run_directory import RunDirectory
from slices import some

BUDGET = 100.0


@pytest.fixture
def now(monkeypatch):
    """The time, which stands still but for what is added to it."""
    hand = [1000.0]
    monkeypatch.setattr(time, "perf_counter", lambda: hand[0])
    return hand


def paced(loop, now, seconds):
    """A loop whose steps take so long: a function of the seconds since the budget began to run."""
    begin = now[0]

    def take(*_):
        now[0] += seconds(now[0] - begin)

    loop.learner.register_forward_hook(take)
    return loop


SPEEDS = {
    "at one speed": lambda spent: 0.5,
    "slower half-way": lambda spent: 0.5 if spent < BUDGET / 2 else 2.0,
    "faster half-way": lambda spent: 2.0 if spent < BUDGET / 2 else 0.5,
    "held up near the end": lambda spent: 10.0 if 80 < spent < 81 else 0.5,
    "slower and slower": lambda spent: 0.3 * (1 + spent / 20),
    "now this, now that": lambda spent: 0.3 if int(spent / 7) % 2 else 0.9,
}


@pytest.mark.parametrize("speed", some(SPEEDS, soon=["slower half-way", "now this, now that"]))
def test_a_run_ends_on_time_and_its_rate_with_it(speed, make_loop, now):
    begin, scores = now[0], []
    loop = make_loop(steps=None, budget=BUDGET, run_config=RunConfig(scorer=lambda model: scores.append(0.5) or 0.5))
    paced(loop, now, SPEEDS[speed]).run()
    assert now[0] - begin == pytest.approx(BUDGET, rel=0.05)
    assert loop.directory.record["steps"] == loop.step == loop.steps
    assert len(scores) in (9, 10, 11)
    rates = [line["rate"] for line in loop.directory.metrics() if "rate" in line]
    falling = rates[rates.index(max(rates)) :]
    assert falling == sorted(falling, reverse=True)
    assert falling[-1] < 0.15 * falling[0]


def test_what_comes_before_and_after_and_between_the_steps_counts_too(make_loop, now):
    begin, said = now[0], []

    def score(model):
        now[0] += 2.0
        return 0.5

    now[0] += 12.0
    run_config = RunConfig(scorer=score, clock=Clock(begin, after=5.0))
    loop = make_loop(steps=None, budget=BUDGET, run_config=run_config, progress=tiny.heard(notice=said.append))
    paced(loop, now, lambda spent: 0.5).run()
    assert now[0] - begin + 5 == pytest.approx(BUDGET, rel=0.02)
    assert said == ["of the 100 s 12 s are over, and 5 s are kept for scoring at the end"]


def test_a_run_that_is_killed_goes_on_with_the_time_it_had_left(make_loop, now):
    def make():
        return make_loop(steps=None, budget=BUDGET, run_config=RunConfig(checkpoint_every=20))

    def stop(step, steps, figures):
        if step == 60:
            raise Interrupted

    begin = now[0]
    loop = paced(make(), now, lambda spent: 0.5)
    loop.progress.step = stop
    with pytest.raises(Interrupted):
        loop.run()
    lasted = now[0] - begin
    loop.directory.update(course={"laid_out": 200, "turns": []})  # as earlier versions had it
    now[0] += 10_000
    begin = now[0]
    directory, fresh = RunDirectory(loop.directory.path), make()
    directory.check(resume=True, overwrite=False)
    directory.match({})
    directory.begin()
    again = Loop(fresh.learner, fresh.batches, fresh.settings, directory, fresh.run_config)
    paced(again, now, lambda spent: 2.0).run()
    assert lasted + now[0] - begin == pytest.approx(BUDGET, rel=0.05)
    rates = [line["rate"] for line in directory.metrics() if "rate" in line]
    assert rates[-1] < 0.15 * max(rates)


def test_a_budget_that_is_too_small_takes_a_step_and_says_what_would_do(make_loop, now):
    said = []
    loop = make_loop(steps=None, budget=1.0, progress=tiny.heard(notice=said.append))
    paced(loop, now, lambda spent: 4.0).run()
    assert loop.step == 1
    assert said[1] == "in its budget the run took no more than 1 step, which teach next to nothing: give budget=7m"
