"""Operations of a step: counted right, without changing the step."""

import json

import pytest
import torch

from selfsent.training.checkpoint import load_checkpoint
from selfsent.training.operations import FORMULAS, counted, matrix_rate


@pytest.mark.parametrize("kind", [torch.float32, torch.bfloat16])
def test_a_product_takes_two_operations_a_number_and_twice_as_many_backwards(kind):
    rows, wide, narrow = 7, 12, 5
    layer, states = torch.nn.Linear(wide, narrow).to(kind), torch.randn(rows, wide, dtype=kind, requires_grad=True)
    result, count = counted(lambda: layer(states))
    assert result.shape == (rows, narrow)
    assert count == 2 * rows * wide * narrow
    _, count = counted(lambda: layer(states).sum().backward())
    assert count == 3 * 2 * rows * wide * narrow


def test_in_place_products_and_attention_count():
    left, right = torch.randn(3, 4), torch.randn(4, 5)
    assert counted(lambda: torch.zeros(3, 5).addmm_(left, right))[1] == 2 * 3 * 4 * 5
    states = torch.randn(2, 3, 6, 8)  # sentences, heads, tokens, head size
    attend = torch.nn.functional.scaled_dot_product_attention
    assert counted(lambda: attend(states, states, states))[1] == 2 * 2 * (2 * 3 * 6 * 6 * 8)


def test_a_formula_that_fails_does_not_stop_the_action(monkeypatch):
    def failing(*given, **named):
        raise AssertionError("shapes that it does not know")

    monkeypatch.setitem(FORMULAS, torch.ops.aten.mm, failing)
    left, right = torch.randn(3, 4), torch.randn(4, 5)
    result, count = counted(lambda: torch.zeros(3, 5).addmm_(left, right) + left @ right)
    torch.testing.assert_close(result, 2 * left @ right)
    assert count == 2 * 3 * 4 * 5


@pytest.mark.parametrize("method", ["mlm", "tsdae", "ct", "simcse", "infomax", "bootstrap"])
@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_counting_changes_nothing_and_finds_six_operations_a_weight(make_loop, method, precision):
    weights, found = [], []
    for known in (None, 1.0):
        loop = make_loop(method, dropout=0.1, precision=precision, steps=4)
        loop.arithmetic.per_token = known
        loop.run()
        weights.append({name: tensor.clone() for name, tensor in loop.learner.state_dict().items()})
        found.append(loop.arithmetic.per_token)
    assert all(torch.equal(weights[0][name], tensor) for name, tensor in weights[1].items())
    layers = sum(weight.numel() for weight in loop.learner.model.transformer.encoder.parameters() if weight.ndim > 1)
    everything = sum(weight.numel() for weight in loop.learner.parameters())
    assert 6 * layers < found[0] < 12 * everything
    assert found[1] == 1.0


def test_the_share_of_the_peak_is_logged(make_loop, monkeypatch):
    monkeypatch.setattr("selfsent.training.operations.matrix_rate", lambda device, kind: 1e9)
    loop = make_loop(steps=2)
    loop.run()
    lines = [json.loads(line) for line in (loop.directory.path / "metrics.jsonl").read_text().splitlines()]
    assert lines
    for line in lines:
        expected = loop.arithmetic.per_token * line["tokens_per_second"] / 1e9
        assert line["share_of_peak"] == pytest.approx(expected, rel=1e-4)


def test_a_run_that_goes_on_does_not_count_again(make_loop):
    loop = make_loop(steps=2)
    loop.arithmetic.per_token = 12.5
    loop.checkpoint()
    loop.arithmetic.per_token = None
    loop.directory.resumed = True
    loop._resume()
    assert loop.arithmetic.per_token == 12.5


def test_of_a_checkpoint_that_does_not_know_the_figure_it_is_left_as_it_was(make_loop, monkeypatch):
    """As in pretraining, where it is not counted but known: compiled layers cannot be counted."""
    loop = make_loop(steps=2)
    loop.checkpoint()
    loop.directory.resumed = True
    loop.arithmetic.per_token = 34.5

    def without(*given):
        progress = load_checkpoint(*given)
        del progress["operations_per_token"]
        return progress

    monkeypatch.setattr("selfsent.training.loop.load_checkpoint", without)
    loop._resume()
    assert loop.arithmetic.per_token == 34.5


@pytest.mark.parametrize("seconds", [0.001, 0.5])
def test_the_rate_of_matrix_products_is_one_and_draws_nothing(monkeypatch, seconds):
    """On a fast device with as many rows as there are, on a slow one with few."""
    clock = iter(range(1000))
    monkeypatch.setattr("selfsent.training.operations.time.perf_counter", lambda: seconds * next(clock))
    before = torch.get_rng_state()
    found = matrix_rate.__wrapped__("cpu", torch.float32)
    assert found == pytest.approx(2 * 1024 * 1024 * (4096 if seconds < 0.02 else 64) / seconds)
    assert next(clock) < 40
    assert torch.equal(before, torch.get_rng_state())


def test_on_this_machine_the_rate_is_a_rate():
    found = matrix_rate.__wrapped__(
        "cpu", torch.float32
    )  # what is remembered may be from a test that stopped the clock
    assert 1e6 < found < 1e14
