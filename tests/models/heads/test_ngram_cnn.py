import json

import numpy as np
import pytest
import torch

import tiny
from naive import objectives
from selfsent.errors import BaseEncoderError
from selfsent.models.encoding import encode
from selfsent.models.heads.ngram_cnn import convolve, ngram_modules
from selfsent.models.loading import load_encoder

SENTENCES = [*tiny.make_sentences(12, seed=4, words=(1, 9)), "ba"]
FILTERS = 6


def with_cnn(encoder, windows=(1, 3, 5), **options):
    torch.manual_seed(0)
    vocabulary = encoder.transformer.config.vocab_size
    modules = ngram_modules(encoder.hidden_size, windows, FILTERS, vocabulary, **options)
    encoder.put_before_pooling(modules, FILTERS * len(windows))
    return encoder.eval()


@pytest.mark.parametrize("windows", [(1, 3, 5), (3, 5, 7), (1,)])
def test_values_and_gradients_are_those_of_sums_over_windows(windows):
    (_, cnn) = ngram_modules(4, windows, 3, 10)
    lengths = [3, 1, 7, 3, 2]
    packed = tiny.pack([[1] * length for length in lengths])
    states = torch.randn(packed.tokens, 4, generator=torch.Generator().manual_seed(0), requires_grad=True)
    fast = convolve(cnn, states, packed)
    slow = torch.zeros_like(fast)
    for sentence in range(len(lengths)):
        own = packed.sentence == sentence
        parts = [objectives.convolution(states[own], c.weight, c.bias) for c in cnn.convs]
        slow = slow.index_put((own.nonzero()[:, 0],), torch.cat(parts, dim=1))
    torch.testing.assert_close(fast, slow)
    factor = torch.randn(fast.shape, generator=torch.Generator().manual_seed(1))
    losses = (fast * factor).sum(), (slow * factor).sum()
    tiny.assert_equal_gradients(*losses, [states, *cnn.parameters()], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", ["bert", "mpnet", "roberta"])
@pytest.mark.parametrize("relu", [False, True])
@pytest.mark.parametrize("masked", [False, True])
def test_a_saved_model_gives_the_same_vectors_in_sentence_transformers(name, relu, masked, encoder_of, tmp_path):

    encoder = with_cnn(encoder_of(name), relu=relu, masked=masked)
    vectors = encode(encoder, SENTENCES)
    assert vectors.shape == (len(SENTENCES), 3 * FILTERS)
    encoder.save(tmp_path / "model")
    types = [part["type"] for part in json.loads((tmp_path / "model" / "modules.json").read_text())]
    assert all(kind.startswith("sentence_transformers.") for kind in types)
    other = tiny.peer(tmp_path / "model")
    np.testing.assert_allclose(other.encode(SENTENCES, batch_size=len(SENTENCES)), vectors, atol=2e-6)
    np.testing.assert_allclose(encode(load_encoder(tmp_path / "model"), SENTENCES), vectors, atol=2e-6)


@torch.no_grad()
@pytest.mark.parametrize("masked", [False, True])
def test_only_the_unmasked_head_lets_padding_into_a_vector(masked, encoder_of):
    encoder = with_cnn(encoder_of("bert"), masked=masked)
    ids = tiny.encode(encoder.tokenizer, SENTENCES)
    together = encoder(tiny.pack(ids))
    alone = torch.cat([encoder(tiny.pack([one])) for one in ids])
    difference = (together - alone).abs().amax()
    assert (difference < 1e-5) == masked


def test_weights_of_the_mask_and_the_identity_stay_as_they_are(encoder_of):
    encoder = with_cnn(encoder_of("bert"), relu=True)
    weights, cnn, dense = encoder.token_modules
    assert not any(p.requires_grad for module in (weights, dense) for p in module.parameters())
    assert all(p.requires_grad for p in cnn.parameters())


def test_a_dense_layer_behind_the_pooling_must_fit(encoder_of):
    from sentence_transformers.sentence_transformer.modules import Dense

    encoder = encoder_of("bert")
    encoder.sentence_transformer.append(Dense(tiny.SIZE, 4))
    with pytest.raises(BaseEncoderError, match="dense layer after its pooling"):
        with_cnn(encoder)


def test_word_weights_that_weigh_words_are_refused(encoder_of, tmp_path):
    from sentence_transformers.sentence_transformer.modules import WordWeights

    encoder = with_cnn(encoder_of("bert"))
    encoder.sentence_transformer[1] = WordWeights([""] * tiny.VOCABULARY, {}, unknown_word_weight=0.5)
    encoder.save(tmp_path / "model")
    with pytest.raises(BaseEncoderError, match="not a transformer followed by a pooling"):
        load_encoder(tmp_path / "model")
