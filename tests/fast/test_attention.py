"""Attention with dropout, and where it is computed in lower precision."""

import pytest
import torch

import tiny
from selfsent.data.packed import Packed
from selfsent.fast import attention


@pytest.mark.parametrize("lengths", [[4, 5, 6], [14, 16]], ids=["apart", "padded"])
@pytest.mark.parametrize("options", [{}, {"causal": True}, {"window": 1}, {"scaling": 0.3}])
def test_attention_that_drops_nothing_is_attention(options, lengths, monkeypatch):
    monkeypatch.setattr("torch.nn.functional.dropout", lambda weights, rate: weights)
    torch.manual_seed(0)
    packed = Packed(torch.arange(sum(lengths)).numpy(), torch.tensor(lengths).numpy())
    states = [torch.randn(sum(lengths), 2, 3, requires_grad=True) for _ in range(3)]
    plain, dropping = (attention.packed_attention(*states, packed, dropout=rate, **options) for rate in (0.0, 0.5))
    torch.testing.assert_close(dropping, plain)
    tiny.assert_equal_gradients(dropping.square().sum(), plain.square().sum(), states)


def test_attention_that_learns_in_bfloat16_is_exact_between_the_products():
    """Step by step; bfloat16 would round these scores by up to a sixteenth."""
    torch.manual_seed(0)
    packed = Packed(torch.arange(45).numpy(), torch.tensor([25, 20]).numpy())
    low = [(torch.randn(45, 2, 16) * size).bfloat16().requires_grad_() for size in (1.8, 1.8, 1)]
    exact = [each.detach().float().requires_grad_() for each in low]
    results = []
    for states in (low, exact):
        out = attention.packed_attention(*states, packed)
        assert out.dtype == states[0].dtype
        results.append((out, *torch.autograd.grad(out.float().square().sum(), states)))
    for near, far in zip(*results, strict=True):
        assert ((near - far).norm() / far.norm()).item() < 3e-3


def test_attention_drops_weights_at_the_rate():
    packed = Packed(torch.arange(2000).numpy(), torch.full((100,), 20).numpy())
    states = torch.zeros(2000, 1, 4)
    kept = attention.packed_attention(states, states, torch.ones(2000, 1, 4), packed, dropout=0.3) * 0.7 * 20
    assert kept.mean().item() == pytest.approx(14, rel=0.01)  # of 20 equal weights
    assert kept.std().item() == pytest.approx((20 * 0.3 * 0.7) ** 0.5, rel=0.1)


def attended(states, lengths, causal, window):
    """Attention of each sentence as one matrix."""
    found = []
    for query, key, value in zip(*(torch.split(each, lengths) for each in states), strict=True):
        position = torch.arange(len(query))
        distance = position[:, None] - position
        near = (distance >= 0) | (not causal)
        if window is not None:
            near &= distance.abs() <= window
        scores = torch.einsum("qhd,khd->hqk", query, key) / query.shape[-1] ** 0.5
        found.append(torch.einsum("hqk,khd->qhd", scores.masked_fill(~near, -torch.inf).softmax(-1), value))
    return torch.cat(found)


@pytest.mark.parametrize("dropout", [0.0, 1e-9])  # next to none, so that attention goes step by step
@pytest.mark.parametrize("window", [None, 3, 9, 150])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("lengths", [[1100], [1100, 1060], [1152, 1152]])
def test_attention_in_blocks_is_attention_at_once(lengths, causal, window, dropout):
    assert min(lengths) > attention.LONG
    packed = Packed(torch.arange(sum(lengths)).numpy(), torch.tensor(lengths).numpy())
    torch.manual_seed(0)
    states = [torch.randn(sum(lengths), 2, 4, requires_grad=True) for _ in range(3)]
    weights = torch.randn(sum(lengths), 2, 4)
    blocks = attention.packed_attention(*states, packed, dropout, causal=causal, window=window)
    whole = attended(states, lengths, causal, window)
    torch.testing.assert_close(blocks, whole, atol=1e-5, rtol=1e-4)
    tiny.assert_equal_gradients((blocks * weights).sum(), (whole * weights).sum(), states, atol=1e-5, rtol=1e-4)
