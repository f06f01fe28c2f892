"""Work shared by two threads: every item once, in the modes of the caller, and nothing after an error."""

import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

from selfsent.fast import cpu_threads as module

pytestmark = pytest.mark.usefixtures("two_threads")
CPU = torch.device("cpu")


def threads_of(items=2, device=CPU):
    """The threads that items are worked on in."""
    seen = []
    module.share_out(lambda _: seen.append(threading.current_thread()), range(items), device)
    return set(seen)


@pytest.mark.parametrize("count", [0, 1, 2, 5])
def test_every_item_is_done_once_and_the_odd_one_on_all_cores(count):
    done, both = {}, threading.Barrier(2)

    def work(item):
        if item < min(2, count // 2 * 2):
            both.wait(20)  # neither thread takes everything
        done[item] = threading.current_thread(), torch.get_num_threads(), torch.is_inference_mode_enabled()

    with torch.inference_mode():
        module.share_out(work, range(count), CPU)
    assert sorted(done) == list(range(count))
    assert [done[item][1] for item in sorted(done)] == [1] * (count // 2 * 2) + [2] * (count % 2)
    assert len({done[item][0] for item in range(count // 2 * 2)}) == min(2, count // 2 * 2)
    assert count % 2 == 0 or done[count - 1][0] is threading.main_thread()
    assert all(inference for _, _, inference in done.values())
    assert torch.get_num_threads() == 2
    with ThreadPoolExecutor(1) as new:
        assert new.submit(torch.get_num_threads).result() == 2


def test_two_callers_do_not_wait_for_each_other():
    began, done = threading.Event(), threading.Event()

    def long(_):
        began.set()
        assert done.wait(20)

    with ThreadPoolExecutor(1) as thread:
        slow = thread.submit(module.share_out, long, range(2), CPU)
        assert began.wait(20)
        assert threads_of() == {threading.main_thread()}
        done.set()
        slow.result()


def test_where_there_is_nothing_to_share_the_caller_does_it():
    assert threads_of(5, torch.device("meta")) == {threading.main_thread()}


@pytest.mark.parametrize("interrupted", [False, True])
def test_after_an_error_nothing_new_is_begun(interrupted, monkeypatch):
    done, begun = [], threading.Event()

    def work(item):
        begun.set()
        if item == 0 and not interrupted:
            raise KeyboardInterrupt
        time.sleep(0.05)
        done.append(item)

    def interrupt(_):
        assert begun.wait(20)
        raise KeyboardInterrupt

    if interrupted:
        monkeypatch.setattr(module, "wait", interrupt)
    with pytest.raises(KeyboardInterrupt):
        module.share_out(work, range(100), CPU)
    monkeypatch.undo()
    threads_of()  # when both threads are free again
    assert len(done) < 5


def test_a_fork_has_threads_of_its_own():
    script = """
import os, torch
from selfsent.fast.cpu_threads import share_out
torch.set_num_threads(2)
share_out(id, range(2), torch.device("cpu"))
child = os.fork()
if child == 0:
    seen = []
    share_out(seen.append, range(4), torch.device("cpu"))
    print(*sorted(seen), flush=True)
    os._exit(0)
os.waitpid(child, 0)
"""
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True)
    assert ran.stdout.split() == ["0", "1", "2", "3"]
