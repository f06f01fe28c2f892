import threading

import pytest

from selfsent.training.ahead import Ahead


def test_every_step_is_made_once_and_the_next_is_made_already():
    made, second = [], threading.Event()

    def make(step):
        made.append((step, threading.current_thread()))
        if step == 1:
            second.set()
        return step * 10

    ahead = Ahead(make)
    assert ahead(0) == 0
    assert second.wait(10)
    assert [ahead(step) for step in (1, 2, 3)] == [10, 20, 30]
    assert ahead(7) == 70
    steps = [step for step, _ in made]
    assert steps[:5] == [0, 1, 2, 3, 4]
    assert steps[5] == 7
    assert len({thread for _, thread in made} - {threading.main_thread()}) == 1


def test_a_step_that_cannot_be_made_raises_when_it_is_asked_for():
    def make(step):
        if step == 2:
            raise OSError("gone")
        return step

    ahead = Ahead(make)
    assert [ahead(0), ahead(1)] == [0, 1]
    with pytest.raises(OSError, match="gone"):
        ahead(2)


def test_a_run_is_the_same_with_its_batches_made_ahead(make_loop):
    plain, other = (make_loop("tsdae", dropout=0.1) for _ in range(2))
    other.micro_batches = Ahead(other.micro_batches)
    assert [other.advance(step) for step in range(5)] == [plain.advance(step) for step in range(5)]
