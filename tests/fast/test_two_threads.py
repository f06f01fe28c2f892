"""Two networks at the same time are two networks."""

import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from torch import nn

import tiny
from selfsent.fast import two_threads as module
from selfsent.fast.two_threads import at_once
from selfsent.methods import get_method
from selfsent.settings import Settings
from selfsent.training.operations import counted

pytestmark = pytest.mark.usefixtures("two_threads")
SENTENCES = tiny.make_sentences(40, seed=5)


@pytest.fixture
def networks():
    torch.manual_seed(0)
    return [nn.Sequential(nn.Linear(5, 7), nn.Tanh(), nn.Linear(7, 3)) for _ in range(2)]


def in_turn(one, other):
    return one(), other()


@pytest.mark.parametrize("low", [False, True], ids=["float32", "bfloat16"])
def test_values_and_gradients_are_those_of_one_after_the_other(low, networks):
    rows, found = torch.randn(4, 5), []
    for together in (in_turn, at_once):
        for network in networks:
            network.zero_grad()
        with torch.autocast("cpu", torch.bfloat16, enabled=low):
            one, other = together(*(lambda network=network: network(rows) for network in networks))
        (one.float() * other.float()).sum().backward()
        found.append([one, other, *(p.grad for network in networks for p in network.parameters())])
    for slow, fast in zip(*found, strict=True):
        assert fast.dtype == slow.dtype
        torch.testing.assert_close(fast, slow)


def test_each_has_a_thread_and_half_of_the_cores(networks):
    torch.set_num_threads(4)
    seen, both = {}, threading.Barrier(2)

    def network(name):
        if torch.get_num_threads() > 1:
            both.wait(20)  # one thread might be quick enough to do both
        seen[name] = threading.current_thread(), torch.get_num_threads()
        return networks[0](torch.zeros(1, 5))

    at_once(lambda: network("one"), lambda: network("other"))
    assert len({seen["one"][0], seen["other"][0], threading.main_thread()}) == 3
    assert [cores for _, cores in seen.values()] == [2, 2]
    assert torch.get_num_threads() == 4
    with ThreadPoolExecutor(1) as new:
        assert new.submit(torch.get_num_threads).result() == 4
    torch.set_num_threads(1)
    at_once(lambda: network("one"), lambda: network("other"))
    assert set(seen.values()) == {(threading.main_thread(), 1)}


def test_two_callers_do_not_wait_for_each_other():
    began, done = threading.Event(), threading.Event()

    def long():
        began.set()
        assert done.wait(20)

    with ThreadPoolExecutor(1) as thread:
        slow = thread.submit(module.in_two_threads, long, long)
        assert began.wait(20)
        assert module.in_two_threads(threading.current_thread, torch.get_num_threads) == (threading.main_thread(), 2)
        done.set()
        slow.result()


def test_at_the_end_of_python_one_is_called_after_the_other(monkeypatch):
    def refuse(*_):
        raise RuntimeError("cannot schedule new futures after interpreter shutdown")

    monkeypatch.setattr(module.ThreadPoolExecutor, "submit", refuse)
    assert module.in_two_threads(lambda: 1, lambda: 2) == (1, 2)


def test_versions_that_mix_up_two_calls_get_one_after_the_other(monkeypatch):
    assert module.keeps_threads_apart()
    monkeypatch.setattr(module, "keeps_threads_apart", lambda: False)
    assert module.in_two_threads(threading.current_thread, lambda: 2) == (threading.main_thread(), 2)


def test_there_is_one_backward_pass(networks):
    one, other = at_once(*(lambda network=network: network(torch.ones(1, 5)) for network in networks))
    loss = (one + other).sum()
    loss.backward(retain_graph=True)
    with pytest.raises(RuntimeError, match="has one backward pass"):
        loss.backward()


def test_what_the_loss_does_not_use_gets_no_gradient(networks):
    one, _ = at_once(*(lambda network=network: network(torch.ones(1, 5)) for network in networks))
    one.sum().backward()
    assert [next(network.parameters()).grad is None for network in networks] == [False, True]


@pytest.mark.parametrize("count", [0, 1, 2, 5])
def test_every_item_is_done_once_and_the_odd_one_on_all_cores(count):
    done, both = {}, threading.Barrier(2)

    def work(item):
        if item < min(2, count // 2 * 2):
            both.wait(20)  # neither thread takes everything
        done[item] = threading.current_thread(), torch.get_num_threads(), torch.is_inference_mode_enabled()

    with torch.inference_mode():
        module.share_out(work, range(count), torch.device("cpu"))
    assert sorted(done) == list(range(count))
    assert [done[item][1] for item in sorted(done)] == [1] * (count // 2 * 2) + [2] * (count % 2)
    assert len({done[item][0] for item in range(count // 2 * 2)}) == min(2, count // 2 * 2)
    assert count % 2 == 0 or done[count - 1][0] is threading.main_thread()
    assert all(inference for _, _, inference in done.values())
    done.clear()
    module.share_out(lambda item: done.setdefault(item, threading.current_thread()), range(5), torch.device("meta"))
    assert set(done.values()) == {threading.main_thread()}


def test_after_an_error_nothing_new_is_begun():
    done = []

    def work(item):
        if item == 0:
            raise KeyboardInterrupt
        time.sleep(0.05)
        done.append(item)

    with pytest.raises(KeyboardInterrupt):
        module.share_out(work, range(100), torch.device("cpu"))
    assert len(done) < 5


def test_after_an_interrupt_the_threads_do_not_go_on(monkeypatch):
    done, begun = [], threading.Event()

    def work(item):
        begun.set()
        time.sleep(0.05)
        done.append(item)

    def interrupted(_):
        assert begun.wait(20)
        raise KeyboardInterrupt

    monkeypatch.setattr(module, "wait", interrupted)
    with pytest.raises(KeyboardInterrupt):
        module.share_out(work, range(100), torch.device("cpu"))
    monkeypatch.undo()
    module.in_two_threads(lambda: 1, lambda: 2)  # when both threads are free again
    assert len(done) < 5


@pytest.mark.parametrize("learns", [True, False])
def test_modes_are_those_of_the_caller(learns):
    def modes():
        return torch.is_grad_enabled(), torch.is_autocast_enabled("cpu"), torch.get_autocast_dtype("cpu")

    seen = []
    with torch.set_grad_enabled(learns), torch.autocast("cpu", torch.float16):
        module.share_out(lambda _: seen.append(modes()), range(2), torch.device("cpu"))
    assert seen == [(learns, True, torch.float16)] * 2


def test_a_fork_has_threads_of_its_own():
    script = """
import os, torch
from selfsent.fast.two_threads import in_two_threads
torch.set_num_threads(2)
in_two_threads(lambda: 1, lambda: 2)
child = os.fork()
if child == 0:
    print(*in_two_threads(lambda: 3, lambda: 4), flush=True)
    os._exit(0)
os.waitpid(child, 0)
"""
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True)
    assert ran.stdout.split() == ["3", "4"]


def test_within_such_a_call_one_is_called_after_the_other():
    torch.set_num_threads(4)

    both = threading.Barrier(2)

    def names():
        both.wait(20)
        return module.in_two_threads(*[lambda: threading.current_thread().name] * 2)

    found = module.in_two_threads(names, names)
    assert all(first == second for first, second in found)
    assert found[0] != found[1]


@pytest.mark.parametrize("which", [0, 1])
def test_an_error_of_either_is_raised_and_the_cores_come_back(which, networks):
    def fail():
        raise ValueError("out of range")

    def last():
        time.sleep(0.1)
        ended.append(1)
        return networks[0](torch.zeros(1, 5))

    ended, calls = [], [last, last]
    calls[which] = fail
    with pytest.raises(ValueError, match="out of range"):
        at_once(*calls)
    assert ended == [1]
    assert torch.get_num_threads() == 2


def test_what_does_not_learn_gets_no_gradient(networks):
    learning, still = networks
    still.requires_grad_(False)
    one, other = at_once(lambda: learning(torch.ones(1, 5)), lambda: still(torch.ones(1, 5)))
    assert (one.requires_grad, other.requires_grad) == (True, False)
    (one * other).sum().backward()
    assert all(p.grad is not None for p in learning.parameters())
    with torch.no_grad():
        one, _ = at_once(lambda: learning(torch.ones(1, 5)), lambda: still(torch.ones(1, 5)))
    assert not one.requires_grad


def test_operations_of_both_are_counted(networks):
    def step():
        one, other = at_once(*(lambda network=network: network(torch.zeros(4, 5)) for network in networks))
        (one + other).sum().backward()

    one_pass = 2 * 4 * (5 * 7 + 7 * 3)
    assert counted(step)[1] == 2 * (2 * one_pass + 2 * 4 * 7 * 3)  # no gradient goes back to what was read


METHODS = {
    "ct": {"dropout_in": "kept"},
    "ct-inbatch": {"dropout_in": "kept"},
    "bootstrap": {"width": 2, "delete_words": 0.3},
    "ntxent": {"width": 2, "delete_words": 0.3},
}


@pytest.fixture
def step_of(encoder_of):
    """Loss and gradients of a method's first step, with dropout."""

    def of(name, alone, **options):
        method = get_method(name)
        chosen = method.options(**{**METHODS[name], **options})
        encoder = encoder_of("bert", method.pooling, 0.1)
        torch.manual_seed(0)  # now: the base was made at its first use
        learner = method.learner(encoder, chosen).train()
        learner.alone = alone
        batches = tiny.make_batches(learner, chosen.views(), Settings(batch_size=16), SENTENCES)
        torch.manual_seed(1)
        loss = learner(batches.views_of(batches.rows_at(0), 0))
        loss.total.backward()
        return [loss.total.detach(), *(p.grad for p in learner.parameters() if p.grad is not None)]

    return of


@pytest.mark.parametrize("name", METHODS)
def test_methods_with_two_networks_learn_the_same(name, step_of, monkeypatch):
    calls = []
    at_once = module.in_two_threads
    monkeypatch.setattr(module, "in_two_threads", lambda *both: calls.append(1) or at_once(*both))
    slow, fast, again = (step_of(name, alone) for alone in (False, True, True))
    assert len(calls) == (4 if name.startswith("ct") else 2)  # the target has nothing to go back through
    for one, other, third in zip(slow, fast, again, strict=True):
        torch.testing.assert_close(other, one, rtol=1e-3, atol=1e-4)
        assert torch.equal(other, third)


@pytest.mark.parametrize(("name", "options"), [("ct", {"dropout_in": "both"}), ("bootstrap", {"target_dropout": True})])
def test_two_networks_that_draw_random_numbers_take_turns(name, options, step_of, monkeypatch):
    monkeypatch.setattr(module, "in_two_threads", None)
    step_of(name, True, **options)
