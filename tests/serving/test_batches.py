import asyncio
import threading

import pytest

from selfsent.serving.batches import Batcher
from web import finished


def run(work, pieces, most=1000, **options):
    """The results of pieces submitted together, exceptions among them."""

    async def main():
        batcher = Batcher(work, len, most, **options)
        task = asyncio.create_task(batcher.run())
        try:
            return await asyncio.gather(*map(batcher.submit, pieces), return_exceptions=True)
        finally:
            task.cancel()
            batcher.close()

    return finished(main())


def test_what_waits_is_worked_on_together_beside_the_event_loop():
    seen = []

    def work(pieces):
        seen.append((len(pieces), threading.current_thread() is threading.main_thread()))
        return [piece.upper() for piece in pieces]

    assert run(work, [f"p{number}" for number in range(150)]) == [f"P{number}" for number in range(150)]
    assert seen == [(64, False), (64, False), (22, False)]


def test_a_batch_is_bounded_in_characters():
    seen = []
    run(lambda pieces: [seen.append(pieces)] * len(pieces), ["a" * 20, "b" * 4, "c" * 6, "d"], characters=10)
    assert seen == [["a" * 20], ["b" * 4, "c" * 6], ["d"]]


def test_further_pieces_than_may_wait_are_refused():
    done = run(lambda pieces: pieces, ["a"] * 5, most=3)
    assert done[:3] == ["a"] * 3
    assert [type(each) for each in done[3:]] == [asyncio.QueueFull] * 2


def test_an_exception_is_that_of_its_piece():
    done = run(lambda pieces: [ValueError() if piece == "b" else piece for piece in pieces], ["a", "b", "c"])
    assert (done[0], type(done[1]), done[2]) == ("a", ValueError, "c")

    def broken(pieces):
        raise MemoryError

    assert [type(each) for each in run(broken, ["a", "b"])] == [MemoryError, MemoryError]


def test_pieces_whose_client_is_gone_are_left_out():
    seen = []

    async def main():
        batcher = Batcher(lambda pieces: seen.extend(pieces) or pieces, len, 10)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.01):
                await batcher.submit("gone")
        task = asyncio.create_task(batcher.run())
        assert await batcher.submit("here") == "here"
        task.cancel()
        batcher.close()

    finished(main())
    assert seen == ["here"]
