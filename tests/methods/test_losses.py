import pytest
import torch
from torch.nn import functional as F

from naive.objectives import cross_entropy
from selfsent.fast import gradients as autograd
from selfsent.methods import losses
from selfsent.methods.losses import linear_cross_entropy

VOCABULARY = 11


def make(rows=7, bias=True, dtype=torch.float32):
    generator = torch.Generator().manual_seed(0)
    shapes = [(rows, 4), (VOCABULARY, 4), *([(VOCABULARY,)] if bias else [])]
    tensors = [torch.randn(shape, generator=generator).to(dtype).requires_grad_() for shape in shapes]
    targets = torch.randint(VOCABULARY, (rows,), generator=generator)
    return [*tensors, *([] if bias else [None]), targets]


def torch_cross_entropy(states, weight, bias, targets):
    return F.cross_entropy(F.linear(states, weight, bias), targets, reduction="sum")


def gradients(function, inputs, factor=0.37):
    (function(*inputs) * factor).backward()
    return [tensor.grad for tensor in inputs[:3] if tensor is not None]


@pytest.mark.parametrize("rows_in_chunk", [1, 3, 7, 100])
@pytest.mark.parametrize("bias", [True, False])
def test_values_and_gradients_are_those_of_torch(bias, rows_in_chunk, monkeypatch):
    monkeypatch.setattr(losses, "_CHUNK", {"cpu": rows_in_chunk * VOCABULARY})
    monkeypatch.setattr(losses, "_BLOCK", 4)
    ours, theirs = make(bias=bias), make(bias=bias)
    torch.testing.assert_close(linear_cross_entropy(*ours), torch_cross_entropy(*theirs))
    for a, b in zip(gradients(linear_cross_entropy, ours), gradients(torch_cross_entropy, theirs), strict=True):
        torch.testing.assert_close(a, b)


@pytest.mark.parametrize("rows_in_chunk", [1, 3, 5, 100])
def test_states_beyond_the_targets_count_for_nothing(rows_in_chunk, monkeypatch):
    monkeypatch.setattr(losses, "_CHUNK", {"cpu": rows_in_chunk * VOCABULARY})
    (*ours, targets), (states, weight, bias, _) = make(rows=12), make(rows=12)
    found = gradients(linear_cross_entropy, [*ours, targets[:5]])
    expected = gradients(lambda s, w, b, t: torch_cross_entropy(s[:5], w, b, t), [states, weight, bias, targets[:5]])
    for a, b in zip(found, expected, strict=True):
        torch.testing.assert_close(a, b)


def test_value_is_the_equation_s():
    states, weight, bias, targets = make()
    expected = cross_entropy(states.tolist(), weight.tolist(), bias.tolist(), targets.tolist())
    assert linear_cross_entropy(states, weight, bias, targets).item() == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("frozen", [0, 1, 2])
def test_a_frozen_input_gets_no_gradient(frozen):
    inputs = make()
    inputs[frozen].requires_grad_(False)
    linear_cross_entropy(*inputs).backward()
    assert [tensor.grad is None for tensor in inputs[:3]] == [number == frozen for number in range(3)]


def test_no_rows_cost_nothing():
    inputs = make(rows=0)
    total = linear_cross_entropy(*inputs)
    assert total.item() == 0
    assert [grad.abs().sum().item() for grad in gradients(linear_cross_entropy, inputs)] == [0, 0, 0]


def test_autocast_sums_in_float32():
    ours, exact = make(), make()
    with torch.autocast("cpu", torch.bfloat16):
        low = linear_cross_entropy(*ours)
    assert low.dtype == torch.float32
    torch.testing.assert_close(low, torch_cross_entropy(*exact), atol=0.1, rtol=0.02)
    low.backward()
    torch_cross_entropy(*exact).backward()
    for a, b in zip(ours[:3], exact[:3], strict=True):
        assert a.grad.dtype == a.dtype
        torch.testing.assert_close(a.grad, b.grad, atol=0.1, rtol=0.05)


@pytest.mark.parametrize("rows_in_chunk", [3, 100])
@pytest.mark.parametrize("low", [False, True])
def test_gradients_added_where_they_lie_are_those_of_torch(rows_in_chunk, low, monkeypatch):
    monkeypatch.setattr(losses, "_CHUNK", {"cpu": rows_in_chunk * VOCABULARY})
    ours, theirs = make(), make()
    weight, nothing = ours[1], make(rows=0)
    autograd.accumulate_in_place(weight)
    nothing[1] = weight
    with torch.autocast("cpu", torch.bfloat16, enabled=low):
        for factor in (1.0, 0.37, 2.0):
            gradients(linear_cross_entropy, ours, factor)
            gradients(torch_cross_entropy, theirs, factor)
            gradients(linear_cross_entropy, nothing)
            blocks = autograd._IN_PLACE[weight].spare
            assert len(blocks) == 1
            blocks[0].fill_(float("nan"))  # the next one writes over it
    tolerance = {"atol": 0.1, "rtol": 0.05} if low else {}
    for a, b in zip(ours[:3], theirs[:3], strict=True):
        torch.testing.assert_close(a.grad, b.grad, **tolerance)
