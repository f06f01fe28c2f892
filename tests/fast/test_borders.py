"""Attention of a whole packed row in one kernel, as GPUs have it; elsewhere a slow stand-in takes its place."""

import numpy as np
import pytest
import torch

import tiny
from naive.objectives import attention
from selfsent.data.packed import Packed
from selfsent.fast import attention as ours
from selfsent.models.encoding import encode

SENTENCES = tiny.make_sentences(20, seed=3)
GPU = pytest.param("cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU"))


def shares_of(query, key, borders, longest, causal, scale, left, right):
    """For each sentence its tokens, and (heads, length, length) attention weights."""
    assert borders.dtype == torch.int32
    assert (borders[-1], borders.diff().max()) == (len(query), longest)
    for begin, end in zip(borders[:-1].tolist(), borders[1:].tolist(), strict=True):
        place = torch.arange(end - begin)
        ahead = place[None, :] - place[:, None]
        seen = (ahead <= (0 if causal else right if right >= 0 else end)) & (ahead >= (-left if left >= 0 else -end))
        scores = torch.einsum("ihd,jhd->hij", query[begin:end].float(), key[begin:end].float()) * scale
        yield slice(begin, end), scores.masked_fill(~seen, -torch.inf).softmax(-1)


@pytest.fixture
def calls(monkeypatch):
    """The kernel's stand-in on a CPU, and the options of each call."""
    found = []

    def forward(q, k, v, borders, others, longest, longest_other, dropout, causal, _, scale=None, **sizes):
        assert (q.dtype, longest) == (k.dtype, longest_other) == (v.dtype, longest)
        assert torch.equal(borders, others)
        assert {x.stride(-1) for x in (q, k, v)} == {1}
        scale = q.shape[-1] ** -0.5 if scale is None else scale
        window = sizes["window_size_left"], sizes["window_size_right"]
        found.append({"dropout": dropout, "causal": causal, "window": window, "dtype": q.dtype})
        out = torch.empty_like(q)
        for here, shares in shares_of(q, k, borders, longest, causal, scale, *window):
            out[here] = torch.einsum("hij,jhd->ihd", shares, v[here].float()).to(q.dtype)
        return out, torch.empty(q.shape[1], len(q)), torch.empty(2), torch.empty(0), torch.empty(0)

    def backward(grad, q, k, v, _, __, borders, ___, longest, ____, dropout, causal, *rest, scale=None, **sizes):
        scale = q.shape[-1] ** -0.5 if scale is None else scale
        window = sizes["window_size_left"], sizes["window_size_right"]
        grads = [torch.empty_like(x, dtype=torch.float32) for x in (q, k, v)]
        for here, shares in shares_of(q, k, borders, longest, causal, scale, *window):
            of_out = grad[here].float()
            of_shares = torch.einsum("ihd,jhd->hij", of_out, v[here].float())
            of_scores = shares * (of_shares - (of_shares * shares).sum(-1, keepdim=True)) * scale
            grads[0][here] = torch.einsum("hij,jhd->ihd", of_scores, k[here].float())
            grads[1][here] = torch.einsum("hij,ihd->jhd", of_scores, q[here].float())
            grads[2][here] = torch.einsum("hij,ihd->jhd", shares, of_out)
        return tuple(each.to(q.dtype) for each in grads)

    with torch.library._scoped_library("aten", "IMPL") as library:
        library.impl("_flash_attention_forward", forward, "CPU")
        library.impl("_flash_attention_backward", backward, "CPU")
        monkeypatch.setattr(ours, "knows_borders", lambda device: True)
        yield found


@pytest.mark.parametrize("kernel", ["cpu", GPU])
@pytest.mark.parametrize("window", [None, 2, 20])
@pytest.mark.parametrize("causal", [False, True])
def test_it_equals_one_token_at_a_time(kernel, calls, causal, window):
    lengths = [3, 9, 1, 9, 4]
    packed = Packed(np.zeros(sum(lengths), np.int64), np.array(lengths), device=kernel)
    draw = torch.Generator().manual_seed(0)
    states = [torch.randn(packed.tokens, 2, 16, generator=draw).bfloat16() for _ in range(3)]
    weights = torch.randn(packed.tokens, 2, 16, generator=draw)
    fast_in = [x.clone().to(kernel).requires_grad_() for x in states]
    slow_in = [x.double().requires_grad_() for x in states]
    fast = ours.packed_attention(*fast_in, packed, causal=causal, window=window)
    slow = attention(*slow_in, sorted(lengths, reverse=True), causal=causal, window=window)
    assert fast.dtype == torch.bfloat16
    assert kernel == "cuda" or len(calls) == 1
    torch.testing.assert_close(fast.cpu().double(), slow, atol=0.02, rtol=0.02)
    (fast.float() * weights.to(kernel)).sum().backward()
    (slow * weights).sum().backward()
    for a, b in zip(fast_in, slow_in, strict=True):
        torch.testing.assert_close(a.grad.cpu().double(), b.grad, atol=0.03, rtol=0.03)


def test_scale_dropout_and_types_reach_it(calls):
    packed = Packed(np.zeros(7, np.int64), np.array([3, 4]))
    query, key, value = torch.randn(3, 7, 2, 16).unbind()
    value = value.bfloat16()
    single = ours.packed_attention(query * 2, key, value, packed, scaling=0.1, dropout=0.25, causal=True)
    double = ours.packed_attention(query, key, value, packed, scaling=0.2, causal=True, window=3)
    torch.testing.assert_close(single, double, atol=0.02, rtol=0.02)
    assert [call["dropout"] for call in calls] == [0.25, 0.0]
    assert [call["window"] for call in calls] == [(-1, 0), (3, 0)]
    assert {call["dtype"] for call in calls} == {torch.bfloat16}


def test_what_it_cannot_take_goes_by_groups(calls):
    packed = Packed(np.zeros(7, np.int64), np.array([3, 4]))
    for states in (torch.randn(7, 2, 16), torch.randn(7, 2, 12).bfloat16(), torch.randn(7, 1, 256).bfloat16()):
        ours.packed_attention(states, states, states, packed)
    assert not calls


@pytest.mark.parametrize("name", tiny.ARCHITECTURES)
def test_every_architecture_runs_on_it(name, encoder_of, calls, monkeypatch):
    model = encoder_of(name)
    with torch.autocast("cpu", torch.bfloat16):
        by_borders = encode(model, SENTENCES)
        used = len(calls)
        monkeypatch.setattr(ours, "knows_borders", lambda device: False)
        by_groups = encode(model, SENTENCES)
    assert len(calls) == used
    # T5 has biases on its scores, and is not run packed.
    assert bool(used) == model.states.runs_packed
    np.testing.assert_allclose(by_borders, by_groups, atol=0.06)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU")
def test_a_gpu_drops_the_same_weights_in_both_directions():
    """The result is linear in the values, whatever was dropped."""
    packed = Packed(np.zeros(24, np.int64), np.array([9, 12, 3]), device="cuda")
    query, key, value = torch.randn(3, 24, 2, 16, device="cuda").bfloat16().unbind()
    value.requires_grad_()
    weights = torch.randn(24, 2, 16, device="cuda")
    out = ours.packed_attention(query, key, value, packed, dropout=0.3)
    (out.float() * weights).sum().backward()
    assert (out.float() * weights).sum().item() == pytest.approx((value.grad * value).float().sum().item(), rel=0.05)
    torch.manual_seed(1)
    first = ours.packed_attention(query, key, value, packed, dropout=0.3)
    assert not torch.equal(first, out)
    torch.manual_seed(1)
    assert torch.equal(first, ours.packed_attention(query, key, value, packed, dropout=0.3))
