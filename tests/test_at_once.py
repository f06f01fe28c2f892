"""Two networks at the same time are two networks."""

import threading
import time

import pytest
import torch
from torch import nn

import tiny
from selfsent import at_once as module
from selfsent.at_once import at_once
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
    torch.set_num_threads(3)
    seen = {}

    def network(name):
        seen[name] = threading.current_thread() is threading.main_thread(), torch.get_num_threads()
        return networks[0](torch.zeros(1, 5))

    at_once(lambda: network("one"), lambda: network("other"))
    assert seen == {"one": (True, 1), "other": (False, 1)}
    assert torch.get_num_threads() == 3
    torch.set_num_threads(1)
    at_once(lambda: network("one"), lambda: network("other"))
    assert seen == {"one": (True, 1), "other": (True, 1)}


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
    assert len({thread for thread, _, _ in done.values()}) == min(2, count)
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


def test_within_such_a_call_one_is_called_after_the_other():
    torch.set_num_threads(4)

    def names():
        return module.in_two_threads(*[lambda: threading.current_thread().name] * 2)

    mine, others = module.in_two_threads(names, names)
    assert len({*mine, *others}) == 2
    assert others[0] == others[1] != threading.main_thread().name


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
        torch.manual_seed(0)
        learner = method.learner(encoder_of("bert", method.pooling, 0.1), chosen).train()
        learner.alone = alone
        batches = tiny.make_batches(learner, method.views(chosen), Settings(batch_size=16), SENTENCES)
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
