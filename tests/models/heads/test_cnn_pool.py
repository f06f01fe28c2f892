import math

import numpy as np
import pytest
import torch

import tiny
from naive import cnn_pooling
from selfsent.errors import BaseEncoderError, SettingsError
from selfsent.methods import get_method
from selfsent.models.assemble import put_head
from selfsent.models.encoding import encode
from selfsent.models.heads.cnn_pool import CnnPool
from selfsent.models.heads.options import CnnPoolOptions, NgramOptions
from selfsent.models.loading import load_encoder
from selfsent.models.saved import needs_selfsent, saved_pooling

SENTENCES = [*tiny.make_sentences(9, seed=4, words=(1, 9)), "ba"]


def with_cnn(encoder, **options):
    torch.manual_seed(0)
    put_head(encoder, CnnPoolOptions(**options))
    with torch.no_grad():  # fresh filters shrink what comes in from layer to layer, and differences with it
        for parameter in encoder.pooling_module.parameters():
            parameter *= 2
    return encoder.eval()


def layers_of(pool):
    return [(c.weight[..., 0].tolist(), c.bias.tolist()) for c in pool.convolutions]


@pytest.mark.parametrize("stride", [1, 2])
def test_vectors_are_those_of_the_layers_written_out(stride):
    torch.manual_seed(0)
    pool, lengths = CnnPool(2, stride), [4, 1, 5]
    packed = tiny.pack([[1] * length for length in lengths])
    states = torch.randn(packed.tokens, 2)
    vectors = pool.of_packed(states, packed)
    for number in range(len(lengths)):
        slow = cnn_pooling.pooled(states[packed.sentence == number].tolist(), layers_of(pool), stride)
        torch.testing.assert_close(vectors[number], torch.tensor(slow), atol=1e-6, rtol=1e-5)


def test_it_has_the_paper_s_parameters_and_range():
    pool = CnnPool(768)
    assert sum(parameter.numel() for parameter in pool.parameters()) == 64 + 10_304 + 24_704 + 49_280 + 129
    vectors = pool.pooled(100 * torch.randn(9, 768), np.array([6, 3]))
    assert vectors.shape == (2, 768)
    assert vectors.abs().max() < 1


@pytest.mark.parametrize("name", ["bert", "albert"])
@pytest.mark.parametrize("options", [{}, {"stride": 1}])
def test_a_saved_model_comes_back(name, options, encoder_of, tmp_path):
    encoder = with_cnn(encoder_of(name), **options)
    vectors = encode(encoder, SENTENCES)
    assert vectors == pytest.approx(np.concatenate([encode(encoder, [one]) for one in SENTENCES]), abs=1e-5)
    encoder.save(tmp_path / "model")
    again = load_encoder(tmp_path / "model")
    np.testing.assert_array_equal(encode(again, SENTENCES), vectors)
    other = again.sentence_transformer.encode(SENTENCES)
    np.testing.assert_allclose(other, vectors, atol=2e-6)
    assert needs_selfsent(tmp_path / "model")
    assert saved_pooling(tmp_path / "model") == "cnn-pool"
    assert load_encoder(tmp_path / "model", "mean").pooling == "mean"

    modules = tmp_path / "model" / "modules.json"  # as the first versions named it
    modules.write_text(modules.read_text().replace("selfsent.models.heads.cnn_pool", "selfsent.heads.cnn_pool"))
    assert saved_pooling(tmp_path / "model") == "cnn-pool"
    np.testing.assert_array_equal(encode(load_encoder(tmp_path / "model"), SENTENCES), vectors)


def test_older_models_name_what_is_gone():
    assert CnnPool(8, masked=True, length=0).stride == 2
    with pytest.raises(BaseEncoderError, match="trained to read padding"):
        CnnPool(8, masked=False, length=40)


def test_padding_is_not_read():
    torch.manual_seed(0)
    pool, mask = CnnPool(3), torch.tensor([[1, 1, 1, 1, 1], [1, 1, 0, 0, 0]])
    states = torch.randn(2, 5, 3).masked_fill(mask[..., None] == 0, math.nan).requires_grad_()
    vectors = pool({"token_embeddings": states, "attention_mask": mask})["sentence_embedding"]
    alone = pool.pooled(states[1, :2], np.array([2]))
    torch.testing.assert_close(vectors[1:], alone)
    vectors.square().sum().backward()
    assert states.grad[1, 2:].abs().max() == 0
    assert states.grad[mask.bool()].abs().sum() > 0


def test_it_goes_behind_an_ngram_cnn_and_is_kept_when_given_again(encoder_of):
    encoder = with_cnn(encoder_of("bert"))
    pool = encoder.pooling_module
    put_head(encoder, CnnPoolOptions())
    assert encoder.pooling_module is pool
    put_head(encoder, NgramOptions(filters=4))
    assert encoder.pooling == "cnn-pool"
    assert encoder.embedding_size == 12
    for ours, theirs in zip(encoder.pooling_module.parameters(), pool.parameters(), strict=True):
        assert torch.equal(ours, theirs)
    with pytest.raises(SettingsError, match="another shape"):
        put_head(encoder, NgramOptions(filters=5))
    with pytest.raises(SettingsError, match="another stride"):
        put_head(encoder, CnnPoolOptions(stride=1))


@pytest.mark.parametrize("options", [CnnPoolOptions(), NgramOptions(filters=4)])
def test_every_part_of_it_trains(options, encoder_of):
    encoder = encoder_of("albert", dropout=0.1).train()
    put_head(encoder, options)
    method = get_method("simcse")
    learner = method.learner(encoder, method.options())
    learner.prepare([])
    packed = tiny.pack(tiny.encode(encoder.tokenizer, SENTENCES))
    learner([packed, packed]).total.backward()
    head = [p for module in [*encoder.token_modules, encoder.pooling_module] for p in module.parameters()]
    trained = [p for p in head if p.requires_grad]
    assert trained
    assert all(p.grad is not None and p.grad.abs().sum() > 0 for p in trained)
    assert encoder.transformer.get_input_embeddings().weight.grad.abs().sum() > 0
