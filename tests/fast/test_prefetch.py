import threading

import pytest

from selfsent.fast.prefetch import Prefetch

ELSEWHERE = "meta"
"""Any device that is no CPU."""


def test_every_step_is_made_once_and_the_next_is_made_already():
    made, second = [], threading.Event()

    def make(step):
        made.append((step, threading.current_thread().name))
        if step == 1:
            second.set()
        return step * 10

    ahead = Prefetch(make, ELSEWHERE)
    assert ahead(0) == 0
    assert second.wait(10)
    assert [ahead(step) for step in (1, 2, 3)] == [10, 20, 30]
    assert ahead(7, last=True) == 70
    ahead.close()
    assert [step for step, _ in made] == [0, 1, 2, 3, 4, 7]
    assert {name for _, name in made} == {"selfsent-batches_0"}


def test_on_a_cpu_nothing_is_made_ahead():
    made = []
    ahead = Prefetch(lambda step: made.append((step, threading.current_thread())), "cpu")
    ahead(0)
    ahead(1)
    assert made == [(0, threading.main_thread()), (1, threading.main_thread())]


def test_a_step_that_cannot_be_made_raises_when_it_is_requested():
    def make(step):
        if step == 2:
            raise OSError("gone")
        return step

    ahead = Prefetch(make, ELSEWHERE)
    assert [ahead(0), ahead(1)] == [0, 1]
    with pytest.raises(OSError, match="gone"):
        ahead(2)
