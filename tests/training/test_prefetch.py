import threading

import pytest

from selfsent.fast.prefetch import Ahead

ELSEWHERE = "meta"
"""Any device that is no CPU."""


def test_every_step_is_made_once_and_the_next_is_made_already():
    made, second = [], threading.Event()

    def make(step):
        made.append((step, threading.current_thread().name))
        if step == 1:
            second.set()
        return step * 10

    ahead = Ahead(make, ELSEWHERE)
    assert ahead(0) == 0
    assert second.wait(10)
    assert [ahead(step) for step in (1, 2, 3)] == [10, 20, 30]
    assert ahead(7, last=True) == 70
    ahead.close()
    assert [step for step, _ in made] == [0, 1, 2, 3, 4, 7]
    assert {name for _, name in made} == {"selfsent-batches_0"}
    assert ahead(2, last=True) == 20


def test_on_a_cpu_nothing_is_made_ahead():
    made = []
    ahead = Ahead(lambda step: made.append((step, threading.current_thread())), "cpu")
    ahead(0)
    ahead(1)
    assert made == [(0, threading.main_thread()), (1, threading.main_thread())]


def test_a_step_that_cannot_be_made_raises_when_it_is_asked_for():
    def make(step):
        if step == 2:
            raise OSError("gone")
        return step

    ahead = Ahead(make, ELSEWHERE)
    assert [ahead(0), ahead(1)] == [0, 1]
    with pytest.raises(OSError, match="gone"):
        ahead(2)


def test_a_runs_batches_are_the_same_made_ahead(make_loop):
    loop = make_loop("tsdae")
    ahead = Ahead(loop.micro_batches.make, ELSEWHERE)
    for step in range(5):
        for made, plain in zip(ahead(step), loop.micro_batches.make(step), strict=True):
            for one, other in zip(made[0], plain[0], strict=True):
                assert one.given_ids.tolist() == other.given_ids.tolist()
                assert one.given_lengths.tolist() == other.given_lengths.tolist()
