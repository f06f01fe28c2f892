"""An encoder that is only run in bfloat16: near to float32, whatever the architecture."""

import copy

import numpy as np
import pytest
import torch

import tiny
from selfsent.data.packed import Packed
from selfsent.fast.attention import packed_attention
from selfsent.models.bfloat16 import LaidOutLinear, into_bfloat16
from selfsent.models.encoding import encode
from selfsent.models.precision import computes_bfloat16

SENTENCES = [*tiny.make_sentences(30, seed=1), " ".join(tiny.make_sentences(20, seed=2)), "ba", ""]


@pytest.mark.parametrize("name", tiny.ARCHITECTURES)
def test_bfloat16_is_near(name, encoder_of):
    model = encoder_of(name)
    exact, fast = encode(model, SENTENCES), encode(into_bfloat16(model), SENTENCES)
    assert exact.dtype == fast.dtype == np.float32
    assert np.abs(exact - fast).max() > 0
    assert tiny.cosines(exact, fast).min() > 0.999


def test_a_weight_that_is_laid_out_computes_the_same(encoder_of):
    model = into_bfloat16(encoder_of("bert"))
    laid_out = encode(model, SENTENCES)
    layers = [part for part in model.transformer.modules() if type(part) is LaidOutLinear]
    weights = model.transformer.state_dict()
    assert len(layers) > 6 or not computes_bfloat16("cpu")
    for layer in layers:
        layer.__class__ = torch.nn.Linear
    assert tiny.cosines(encode(model, SENTENCES), laid_out).min() > 0.9999
    assert weights.keys() == model.transformer.state_dict().keys()


@pytest.mark.parametrize("name", ["bert", "gpt2", "t5", "albert"])
def test_bfloat16_shows_in_the_weights_and_a_copy_has_its_own(name, encoder_of, monkeypatch):
    """A resumed `encode` tells by the weights; torch cannot copy those that are laid out."""
    monkeypatch.setattr("selfsent.models.bfloat16.lays_out_bfloat16", lambda: False)
    model = into_bfloat16(encoder_of(name))
    kinds = {tensor.dtype for tensor in model.transformer.state_dict().values() if tensor.ndim > 1}
    assert kinds == {torch.float32, torch.bfloat16}
    before, other = encode(model, SENTENCES), copy.deepcopy(model)
    with torch.no_grad():
        for parameter in model.transformer.parameters():
            parameter.zero_()
    assert np.array_equal(encode(other, SENTENCES), before)
    assert not np.array_equal(encode(model, SENTENCES), before)


def test_attention_in_bfloat16_is_exact_with_large_scores():
    packed = Packed(np.zeros(12, np.int64), np.array([7, 5]))
    draw = torch.Generator().manual_seed(0)
    query = torch.full((12, 2, 16), 8.0).bfloat16()
    # Scores near 256 that differ by two or so: as far as bfloat16 can tell them apart there.
    key = (8 + torch.randn(12, 2, 16, generator=draw) / 4).bfloat16()
    value = torch.randn(12, 2, 16, generator=draw).bfloat16()
    with torch.no_grad():
        near = packed_attention(query, key, value, packed)
        exact = packed_attention(query.float(), key.float(), value.float(), packed)
    torch.testing.assert_close(near.float(), exact, atol=0.02, rtol=0.02)
