from functools import partial

import pytest
import torch
from torch.nn import functional as F

from selfsent.methods.losses import linear_cross_entropy

VOCABULARY = 11


def make(rows=7, bias=True):
    generator = torch.Generator().manual_seed(0)
    shapes = [(rows, 4), (VOCABULARY, 4), *([(VOCABULARY,)] if bias else [])]
    tensors = [torch.randn(shape, generator=generator).requires_grad_() for shape in shapes]
    targets = torch.randint(VOCABULARY, (rows,), generator=generator)
    return [*tensors, *([] if bias else [None]), targets]


def torch_cross_entropy(states, weight, bias, targets):
    """What lies behind the targets counts for nothing."""
    return F.cross_entropy(F.linear(states[: len(targets)], weight, bias), targets, reduction="sum")


def gradients(function, inputs, factor=0.37):
    (function(*inputs) * factor).backward()
    return [tensor.grad for tensor in inputs[:3] if tensor is not None]


@pytest.fixture(params=[1, 3, 7, 100])
def cross_entropy(request):
    """The loss with this many rows in a chunk, and blocks of the vocabulary."""
    return partial(linear_cross_entropy, scores_at_once=request.param * VOCABULARY, block=4)


@pytest.mark.parametrize("behind", [0, 5])
@pytest.mark.parametrize("bias", [True, False])
def test_values_and_gradients_are_those_of_torch(bias, behind, cross_entropy):
    ours, theirs = make(7 + behind, bias), make(7 + behind, bias)
    ours[3] = theirs[3] = ours[3][:7]
    torch.testing.assert_close(cross_entropy(*ours), torch_cross_entropy(*theirs))
    for a, b in zip(gradients(cross_entropy, ours), gradients(torch_cross_entropy, theirs), strict=True):
        torch.testing.assert_close(a, b)
    with torch.no_grad():
        assert cross_entropy(*ours).requires_grad is False


@pytest.mark.parametrize("frozen", [0, 1, 2])
def test_a_frozen_input_gets_no_gradient(frozen, cross_entropy):
    inputs = make()
    inputs[frozen].requires_grad_(False)
    cross_entropy(*inputs).backward()
    assert [tensor.grad is None for tensor in inputs[:3]] == [number == frozen for number in range(3)]


def test_no_rows_cost_nothing(cross_entropy):
    inputs = make(rows=0)
    assert cross_entropy(*inputs).item() == 0
    assert [grad.abs().sum().item() for grad in gradients(cross_entropy, inputs)] == [0, 0, 0]


@pytest.mark.parametrize("low", [False, True])
def test_gradients_of_several_passes_add_up(low, cross_entropy):
    ours, theirs = make(), make()
    with torch.autocast("cpu", torch.bfloat16, enabled=low):
        assert cross_entropy(*ours).dtype == torch.float32
        for factor in (1.0, 0.37, 2.0):
            gradients(cross_entropy, ours, factor)
            gradients(torch_cross_entropy, theirs, factor)
    tolerance = {"atol": 0.1, "rtol": 0.05} if low else {}
    for a, b in zip(ours[:3], theirs[:3], strict=True):
        assert a.grad.dtype == a.dtype
        torch.testing.assert_close(a.grad, b.grad, **tolerance)
