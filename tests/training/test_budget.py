"""Runs by the clock, in a time of their own: what a step takes is said here, and nothing hangs on the machine."""

import json
import time

import pytest
import torch

import tiny
from selfsent.settings import Settings
from selfsent.training.budget import Clock, Split, TimeBudget
from selfsent.training.loop import Interrupted, Loop
from selfsent.training.run_config import RunConfig
from selfsent.training.run_directory import RunDirectory
from selfsent.training.schedule import Schedule

BUDGET = 100.0


@pytest.fixture
def now(monkeypatch):
    """The time, which stands still but for what is added to it."""
    hand = [1000.0]
    monkeypatch.setattr(time, "perf_counter", lambda: hand[0])
    return hand


def paced(loop, now, seconds):
    """A loop whose steps take so long: a function of the seconds since the budget began to run."""
    advance, begin = loop.advance, now[0]

    def take(step):
        now[0] += seconds(now[0] - begin)
        return advance(step)

    loop.advance = take
    return loop


def slower_and_slower(spent):
    return 0.3 * (1 + spent / 20)


def rates(loop):
    return [line["rate"] for line in loop.directory.metrics() if "rate" in line]


def weights(loop):
    return torch.cat([tensor.flatten().float() for tensor in loop.learner.state_dict().values()])


def slower(spent):
    return 0.5 if spent < BUDGET / 2 else 2.0


SPEEDS = {
    "slower half-way": slower,
    "faster half-way": lambda spent: 2.0 if spent < BUDGET / 2 else 0.5,
    "held up near the end": lambda spent: 20.0 if 80 < spent < 81 else 0.5,
    "slower and slower": slower_and_slower,
    "now this, now that": lambda spent: 0.3 if int(spent / 7) % 2 else 0.9,
}


@pytest.mark.parametrize("speed", SPEEDS)
def test_a_run_ends_on_time_and_its_rate_where_the_schedule_ends(speed, make_loop, now):
    said = []
    loop = make_loop(steps=None, budget=BUDGET, progress=tiny.heard(notice=said.append))
    begin = now[0]
    paced(loop, now, SPEEDS[speed]).run()
    assert 0.9 * BUDGET < now[0] - begin < 1.1 * BUDGET
    assert len(loop.budget.schedule.turns) > 0
    assert loop.directory.record["steps"] == loop.step == loop.steps
    assert loop.budget.schedule.position(loop.step) > 0.95 * loop.budget.schedule.laid_out
    found = rates(loop)
    falling = found[found.index(max(found)) :]
    assert falling == sorted(falling, reverse=True)
    assert falling[-1] < 0.25 * falling[0]
    if speed == "slower half-way":
        assert any("steps are slower than they were: the run ends after" in line for line in said)


def test_a_run_at_one_speed_is_that_of_so_many_steps(make_loop, now):
    loop = paced(make_loop("simcse", dropout=0.1, steps=None, budget=20.0), now, lambda spent: 0.5)
    loop.run()
    assert loop.budget.schedule.turns == ()
    plain = make_loop("simcse", dropout=0.1, steps=loop.steps)
    plain.run()
    assert torch.equal(weights(loop), weights(plain))
    keys = ("step", "loss", "norm", "rate", "mean_cosine")
    one, other = ([[line.get(key) for key in keys] for line in run.directory.metrics()] for run in (loop, plain))
    assert one == other


def test_what_comes_before_and_after_and_between_the_steps_counts_too(make_loop, now):
    begin = now[0]

    def twice(spent):
        return 0.5 if spent < BUDGET / 2 else 1.0

    def score(model):
        now[0] += 2 * twice(now[0] - begin)
        return 0.5

    now[0] += 12.0
    run_config = RunConfig(scorer=score, clock=Clock(begin, after=5.0))
    paced(loop := make_loop(steps=None, budget=BUDGET, run_config=run_config), now, twice).run()
    # What comes after takes longer in the measure in which steps do.
    assert now[0] - begin + 2 * 5 == pytest.approx(BUDGET, rel=0.1)
    assert len([line for line in loop.directory.metrics() if "score" in line]) in (10, 11)


def resumed(loop, fresh):
    """The run of one loop, taken up by another one, which began as that did."""
    directory = RunDirectory(loop.directory.path)
    directory.check(resume=True, overwrite=False)
    directory.match({})
    directory.begin()
    return Loop(fresh.learner, fresh.batches, fresh.settings, directory, fresh.run_config)


def stop_at(loop, last):
    def stop(step, steps, figures):
        if step == last:
            raise Interrupted

    loop.progress.step = stop


def test_a_run_that_is_killed_replays_what_was_decided(make_loop, now):
    def make():
        run_config = RunConfig(checkpoint_every=30)
        return make_loop("simcse", dropout=0.1, steps=None, budget=BUDGET, run_config=run_config)

    whole = paced(make(), now, slower_and_slower)
    whole.run()
    turns = whole.budget.schedule.turns
    assert len(turns) > 20
    broken = paced(make(), now, slower_and_slower)
    stop_at(broken, turns[15][0])
    with pytest.raises(Interrupted):
        broken.run()
    assert broken.budget.schedule.turns == turns[:16]
    # What the clock had decided in the meantime is on record, and the clock says nothing more.
    record = json.loads((broken.directory.path / "run.json").read_text())
    record["course"]["turns"], record["steps"] = turns, whole.steps
    del record["checksum"]
    (broken.directory.path / "run.json").write_text(json.dumps(record))
    again = resumed(broken, make())
    again.run()
    assert again.steps == whole.steps
    assert torch.equal(weights(again), weights(whole))


def test_a_run_that_is_killed_goes_on_with_the_time_it_had_left(make_loop, now):
    def make():
        return make_loop(steps=None, budget=BUDGET, run_config=RunConfig(checkpoint_every=20))

    begin, lasted = now[0], 0.0
    loop = paced(make(), now, lambda spent: 0.5)
    stop_at(loop, 60)
    with pytest.raises(Interrupted):
        loop.run()
    lasted += now[0] - begin
    now[0] += 10_000
    begin = now[0]
    again = paced(resumed(loop, make()), now, lambda spent: 2.0)
    again.run()
    assert lasted + now[0] - begin == pytest.approx(BUDGET, rel=0.1)
    assert again.budget.schedule.turns


@pytest.mark.parametrize(("steps", "lines"), [(1, 2), (9, 2), (10, 1)])
def test_the_split_of_a_budget_is_shown_and_that_it_is_too_small(steps, lines, monkeypatch, tmp_path):
    said = []
    split = Split(budget=20.0, start=9.0, pauses=1.0, after=6.0, step=4.0)
    monkeypatch.setattr("selfsent.training.budget.try_out", lambda loop, clock: (split, steps))
    TimeBudget(Settings(budget=20), RunDirectory(tmp_path), said.append).lay_out(None, None)
    assert len(said) == lines
    word = "step" if steps == 1 else "steps"
    ending = f"some 6 s are kept for saving and scoring at the end: time for about {steps} {word}"
    assert said[0] == f"of the 20 s 9 s are over, and {ending}"
    if lines == 2:
        advice = "which teach next to nothing: give budget=7m"
        assert said[1] == f"in its budget the run takes no more than {steps} {word}, {advice}"


def test_the_clock_changes_nothing_while_the_run_is_on_time_or_about_to_end(now, tmp_path):
    budget = TimeBudget(Settings(budget=BUDGET), RunDirectory(tmp_path), print)
    budget.start(Split(BUDGET, 0.0, 0.0, 0.0, 1.0), 0.0)
    budget.schedule = Schedule(100)
    for step in range(100):
        budget.look(step)
        assert budget.wanted == 0
        now[0] += 1.0 if step < 98 else 50.0


def test_positions_in_a_schedule():
    plain, turned = Schedule(7), Schedule(100).turned(50, 75).turned(60, 90)
    assert [plain.position(step) for step in range(8)] == list(range(8))
    assert [step for step in range(1, 8) if plain.passes(step, 3)] == [3, 6]
    assert [turned.position(step) for step in (0, 50, 60, 75, 90)] == [0, 50, 70, 85, 100]
    assert sum(turned.passes(step, 10) for step in range(1, 91)) == 10
