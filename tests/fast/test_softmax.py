"""Softmax that takes all short rows at once, against torch's, which takes them one number at a time."""

import pytest
import torch

from selfsent.fast.softmax import REGISTER, softmax

FLOATS, HALVES = REGISTER // 4, REGISTER // 2  # numbers in a register, of float32 and of bfloat16


def scores_of(length, dtype):
    torch.manual_seed(length)
    scores = 20 * torch.randn(3, 2, 5, length, dtype=torch.float64)
    scores[0, 0, 0, 1:] = torch.finfo(dtype).min  # padding, as attention marks it
    scores[0, 0, 1] = torch.finfo(dtype).min  # a place that may see nothing
    scores[0, 0, 2] = 1e4  # far beyond what the exponential function can take
    scores[0, 0, 3] = -1e4
    return scores.to(dtype)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
@pytest.mark.parametrize("length", [1, 2, FLOATS - 1, FLOATS, HALVES - 1, HALVES, 64])
def test_values_are_those_of_the_equation(length, dtype):
    scores = scores_of(length, dtype)
    shares = softmax(scores)
    expected = scores.double().softmax(-1)
    tolerance = {torch.float64: 1e-15, torch.float32: 1e-6}.get(shares.dtype, 4e-3)
    torch.testing.assert_close(shares.double(), expected, atol=tolerance, rtol=tolerance)
    assert scores.equal(scores_of(length, dtype))  # the scores are left as they were


@pytest.mark.parametrize("length", [1, FLOATS - 1, FLOATS])
def test_gradients_are_those_of_torch(length):
    scores, weights = scores_of(length, torch.float32), torch.randn(3, 2, 5, length)
    gradients = []
    for function in (softmax, lambda x: x.softmax(-1)):
        leaf = scores.clone().requires_grad_()
        (function(leaf) * weights).sum().backward()
        gradients.append(leaf.grad)
    torch.testing.assert_close(*gradients, atol=1e-6, rtol=1e-5)
    assert length == 1 or gradients[0].abs().max() > 0.1


@pytest.mark.parametrize("length", [1, FLOATS - 1, FLOATS, HALVES - 1])
def test_short_rows_of_bfloat16_are_summed_up_in_float32(length):
    scores = scores_of(length, torch.bfloat16)
    assert softmax(scores).dtype == torch.float32
    torch.testing.assert_close(softmax(scores), scores.float().softmax(-1), atol=1e-6, rtol=1e-5)


def test_no_rows():
    assert softmax(torch.zeros(0, 4, 7)).shape == (0, 4, 7)
