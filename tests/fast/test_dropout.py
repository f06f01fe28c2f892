"""Dropout with cheaper random numbers is still dropout."""

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from selfsent.fast import attention
from selfsent.fast.dropout import Dropout, dropout, put_dropout, without_dropout
from selfsent.fast.packing import Packed


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16, torch.float64])
@pytest.mark.parametrize("rate", [0.1, 0.5, 0.9])
def test_elements_are_dropped_at_the_rate_and_the_rest_is_scaled(rate, dtype):
    torch.manual_seed(0)
    states = torch.full((401, 501), 3, dtype=dtype)
    dropped = dropout(states, rate)
    assert dropped.dtype == dtype
    dropped = dropped.double()
    values, counts = dropped.unique(return_counts=True)
    exact = 1e-4 + torch.finfo(dtype).eps
    torch.testing.assert_close(values, torch.tensor([0, 3 / (1 - rate)], dtype=torch.double), rtol=exact, atol=0)
    assert counts[0].item() / dropped.numel() == pytest.approx(rate, abs=0.005)
    assert dropped.mean().item() == pytest.approx(3, rel=0.02)
    zeros = (dropped == 0).float()  # as likely in every row and column
    assert zeros.mean(0).std() < 0.05
    assert zeros.mean(1).std() < 0.05


def test_the_gradient_goes_through_the_same_mask():
    states = torch.randn(7, 13, requires_grad=True)
    out = dropout(states, 0.4)
    out.backward(torch.ones_like(out))
    torch.testing.assert_close(states.grad, (out / states).detach())


def test_the_mask_is_a_function_of_the_seed_and_new_every_time():
    def drawn(seed):
        torch.manual_seed(seed)
        return torch.stack([dropout(torch.ones(50), 0.5) for _ in range(3)])

    assert torch.equal(drawn(1), drawn(1))
    assert not torch.equal(drawn(1), drawn(2))
    assert len(drawn(1).unique(dim=0)) == 3


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_types_shapes_and_the_ends_are_those_of_torch(dtype):
    states = torch.randn(3, 1, 5, dtype=dtype)
    assert dropout(states, 0.3).dtype == dtype
    assert dropout(states, 0.3).shape == states.shape
    assert dropout(states[:0], 0.3).shape == (0, 1, 5)
    for rate, training in ((0.0, True), (1.0, True), (0.3, False)):
        assert torch.equal(dropout(states, rate, training), F.dropout(states, rate, training))


def test_modules_keep_what_they_are_but_for_their_random_numbers():
    class Own(nn.Dropout):
        pass

    model = nn.Sequential(nn.Linear(2, 2), nn.Dropout(0.25), Own(0.5))
    before = model.state_dict().keys()
    put_dropout(model)
    assert [type(part) for part in model] == [nn.Linear, Dropout, Own]
    assert model[1].p == 0.25
    assert model.state_dict().keys() == before
    assert torch.equal(model.eval()(torch.zeros(1, 2)), model[0](torch.zeros(1, 2)))


def test_leaving_dropout_out_for_a_while_leaves_every_part_in_its_own_mode():
    model = nn.Sequential(nn.Linear(2, 2), nn.Sequential(nn.Dropout(0.5), nn.Dropout(0.5)))
    model[1][0].eval()
    before = [part.training for part in model.modules()]
    assert before == [True, True, True, False, True]
    with without_dropout(model):
        assert not any(part.training for part in model.modules())
    assert [part.training for part in model.modules()] == before


@pytest.mark.parametrize("lengths", [[4, 5, 6], [14, 16]], ids=["apart", "padded"])
@pytest.mark.parametrize("options", [{}, {"causal": True}, {"window": 1}, {"scaling": 0.3}])
def test_attention_that_drops_nothing_is_attention(options, lengths, monkeypatch):
    monkeypatch.setattr(attention, "drop", lambda weights, rate: weights)
    torch.manual_seed(0)
    packed = Packed(torch.arange(sum(lengths)).numpy(), torch.tensor(lengths).numpy())
    states = [torch.randn(sum(lengths), 2, 3, requires_grad=True) for _ in range(3)]
    results = []
    for rate in (0.0, 0.5):
        out = attention.packed_attention(*states, packed, dropout=rate, **options)
        results.append((out, *torch.autograd.grad(out.square().sum(), states)))
    for plain, dropping in zip(*results, strict=True):
        torch.testing.assert_close(dropping, plain)


def test_attention_with_dropout_is_as_exact_in_bfloat16_as_torch_is(monkeypatch):
    monkeypatch.setattr(attention, "drop", lambda weights, rate: weights)
    torch.manual_seed(0)
    packed = Packed(torch.arange(40).numpy(), torch.tensor([20, 20]).numpy())
    query, key, value = (torch.randn(40, 2, 16) for _ in range(3))
    exact = attention.packed_attention(query, key, value, packed)
    with torch.autocast("cpu", torch.bfloat16):
        # Rotary positions leave query and key in float32, beside values in bfloat16.
        out = attention.packed_attention(query, key, value.bfloat16(), packed, dropout=0.5)
    assert out.dtype == torch.bfloat16
    assert ((out - exact).norm() / exact.norm()).item() < 4e-3


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
