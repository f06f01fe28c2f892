import pytest

import tiny
from selfsent.data.views.tokens import Template
from selfsent.errors import SettingsError
from selfsent.training.checks import refuse_constant


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
