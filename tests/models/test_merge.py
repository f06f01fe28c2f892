"""Weights between a base and what was trained from it."""

import numpy as np
import pytest
import torch

import tiny
from naive import merging
from selfsent.errors import BaseEncoderError
from selfsent.models.encoding import encode
from selfsent.models.loading import load_encoder
from selfsent.models.merge import WeightInterpolation, turned, without_rotation

TEXTS = tiny.make_sentences(12, seed=5)


def trained_from(directory, whitened=False):
    """An encoder whose weights have moved, perhaps with a map that whitens and turns its vectors."""
    encoder = load_encoder(directory)
    with torch.no_grad():
        for weight in encoder.parameters():
            weight.add_(0.05 * torch.randn(weight.shape, generator=torch.Generator().manual_seed(1)))
    if whitened:
        turn = torch.linalg.qr(torch.randn(32, 32, generator=torch.Generator().manual_seed(2)))[0]
        encoder.put_affine(turn @ torch.diag(torch.linspace(3, 5, 32)), 0.01 * torch.ones(32))
    return encoder


def cosines(encoder):
    vectors = encode(encoder, TEXTS)
    vectors = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors @ vectors.T


@pytest.mark.parametrize("name", ["bert", "static"])
def test_every_weight_is_that_of_the_definition(base_of, name):
    base, trained = load_encoder(base_of(name)), trained_from(base_of(name))
    before, after = ({n: w.tolist() for n, w in each.named_parameters()} for each in (base, trained))
    if name == "static":  # scaled and turned, as no cosine sees
        after["sentence_transformer.0.embedding.weight"] = turned(trained.table.weight, base.table.weight).tolist()
    merged = WeightInterpolation(base, trained).at(0.25)
    for each, weight in merged.named_parameters():
        np.testing.assert_allclose(weight.tolist(), merging.merged(before[each], after[each], 0.25), atol=1e-6)


@pytest.mark.parametrize("name", ["bert", "static"])
@pytest.mark.parametrize("whitened", [False, True])
def test_the_ends_rank_as_base_and_trained_model_do(base_of, name, whitened):
    base, trained = load_encoder(base_of(name)), trained_from(base_of(name), whitened)
    ends, between = [cosines(base), cosines(trained)], WeightInterpolation(base, trained)
    for share, expected in zip((0.0, 1.0), ends, strict=True):
        np.testing.assert_allclose(cosines(between.at(share)), expected, atol=2e-5)


def test_halfway_to_a_whitened_encoder_lies_in_between(base_of):
    base, trained = load_encoder(base_of("static")), load_encoder(base_of("static"))
    turn = torch.linalg.qr(torch.randn(32, 32, generator=torch.Generator().manual_seed(2)))[0]
    trained.put_affine(turn @ torch.diag(torch.linspace(2, 6, 32)), torch.zeros(32))
    ends = [cosines(base), cosines(trained)]
    half = cosines(WeightInterpolation(base, trained).at(0.5))
    assert max(np.abs(half - end).mean() for end in ends) < 0.8 * np.abs(ends[0] - ends[1]).mean()


def test_a_turned_table_is_the_base_again():
    table, turn = torch.randn(9, 4), torch.linalg.qr(torch.randn(4, 4))[0]
    torch.testing.assert_close(turned(3 * table @ turn, table), table, atol=1e-5, rtol=0)


def test_a_map_without_its_rotation_is_symmetric():
    weight, bias = torch.randn(6, 6, generator=torch.Generator().manual_seed(0)), torch.arange(6.0)
    symmetric, moved = without_rotation(weight, bias)
    vectors = torch.randn(8, 6, generator=torch.Generator().manual_seed(3))
    one, other = (torch.nn.functional.normalize(vectors @ w.T + b) for w, b in ((weight, bias), (symmetric, moved)))
    torch.testing.assert_close(one @ one.T, other @ other.T, atol=1e-5, rtol=0)
    torch.testing.assert_close(symmetric, symmetric.T, atol=1e-5, rtol=0)
    assert torch.linalg.eigvalsh(symmetric).mean() == pytest.approx(1, abs=1e-5)


def other_vocabulary(encoder):
    encoder.tokenizer.add_tokens(["a-new-word"])


def fewer_numbers(encoder):
    encoder.put_affine(torch.ones(3, 32), torch.zeros(3))


def two_maps(encoder):
    for _ in range(2):
        encoder.put_affine(torch.eye(32), torch.zeros(32))


@pytest.mark.parametrize(
    ("change", "said"),
    [(other_vocabulary, "another vocabulary"), (fewer_numbers, "vectors of 3 numbers"), (two_maps, "more than one")],
)
def test_what_cannot_be_merged_is_refused(base_of, change, said):
    trained = load_encoder(base_of("bert"))
    change(trained)
    with pytest.raises(BaseEncoderError, match=said):
        WeightInterpolation(load_encoder(base_of("bert")), trained)


def test_other_architectures_and_poolings_are_refused(base_of):
    bert = load_encoder(base_of("bert"))
    for other in (load_encoder(base_of("static")), load_encoder(base_of("bert"), "cls")):
        with pytest.raises(BaseEncoderError, match="other modules"):
            WeightInterpolation(bert, other)
    with pytest.raises(BaseEncoderError, match="other shapes"):
        WeightInterpolation(bert, load_encoder(base_of("bert", intermediate_size=48)))
