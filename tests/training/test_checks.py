import numpy as np
import pytest

import tiny
from selfsent.errors import SettingsError
from selfsent.settings import Settings
from selfsent.training.checks import false_negatives, refuse_constant
from selfsent.views import PickWords, Template, View


def template_of(encoder):
    return Template.of(encoder.tokenizer, encoder.transformer.config.vocab_size)


@pytest.mark.parametrize("name", tiny.CAUSAL)
def test_the_first_token_of_a_causal_model_is_no_sentence_vector(name, encoder_of):
    encoder = encoder_of(name, "cls")
    with pytest.raises(SettingsError, match=r"--pooling cls.*give --pooling mean or lasttoken$"):
        refuse_constant(encoder, template_of(encoder))
    for pooling in ("mean", "lasttoken", "max"):
        encoder = encoder_of(name, pooling)
        refuse_constant(encoder, template_of(encoder))


@pytest.mark.parametrize("name", ["bert", "mpnet", "modernbert"])
@pytest.mark.parametrize("pooling", ["cls", "mean"])
def test_a_model_that_looks_both_ways_passes(name, pooling, encoder_of):
    encoder = encoder_of(name, pooling, dropout=0.1).train()
    refuse_constant(encoder, template_of(encoder))
    assert encoder.training


class Model:
    def __init__(self, encoder):
        self.model = encoder


def line(encoder, sentences, max_length=64, view=None):
    settings = Settings(batch_size=len(sentences), max_length=max_length)
    return false_negatives(tiny.make_batches(Model(encoder), [view or View(), View()], settings, sentences))


def test_sentences_that_are_the_same_once_cut_are_counted(encoder_of):
    encoder = encoder_of("bert")
    start = tiny.make_sentences(1, words=(12, 14))[0]
    sentences = [f"{start} {end}" for end in ("ba", "da", "fa")] + tiny.make_sentences(9, seed=2)
    assert line(encoder, sentences) is None
    assert line(encoder, sentences, 8).startswith("2 of the first 12 sentences equal another one of their batch")
    assert "--max-length" in line(encoder, sentences, 8)


def test_noise_that_leaves_too_little_is_seen(encoder_of):
    sentences = tiny.make_sentences(150)
    found = line(encoder_of("bert"), sentences, view=View(noise=PickWords(1)))
    assert 10 < int(found.split()[0]) < 150
    assert np.all([word not in found for word in ("\n", "0 of")])
