"""TSDAE with the decoder of an encoder-decoder, next to the whole checkpoint by transformers."""

import pytest
import torch

import tiny
from naive import objectives
from selfsent.errors import BaseEncoderError, SettingsError
from selfsent.methods import get_method
from selfsent.methods.denoising import TSDAE
from selfsent.models.decoders.checkpoint import CheckpointDecoder
from selfsent.models.loading import load_encoder

GATED = {"feed_forward_proj": "gated-gelu", "tie_word_embeddings": False}  # T5 1.1 is told from T5 by these
KINDS = [("bart", {}), ("t5", {}), ("t5", GATED)]
OURS = {"v_proj": "value", "out_proj": "output", "EncDecAttention.v.": "EncDecAttention.value."}
OURS["EncDecAttention.o."] = "EncDecAttention.output."


@pytest.fixture
def learner_on(base_of):
    def of(name, changes=None, dropout=0.0, **options):
        encoder = load_encoder(base_of(name, **(changes or {})), "cls", dropout)
        torch.manual_seed(0)
        return get_method("tsdae").learner(encoder, TSDAE(**options)).train()

    return of


def our_name(name):
    """What a parameter of a decoder of transformers is called in ours."""
    if "encoder_attn." in name or "EncDecAttention" in name:
        for theirs, ours in OURS.items():
            name = name.replace(theirs, ours)
    return name


@pytest.mark.parametrize(("name", "changes"), KINDS, ids=["bart", "t5", "t5 gated"])
def test_loss_and_gradients_equal_those_of_the_whole_checkpoint(name, changes, base_of, learner_on, damaged_and_whole):
    from transformers import AutoModelForSeq2SeqLM

    learner = learner_on(name, changes)
    assert isinstance(learner.decoder, CheckpointDecoder)
    whole_model = AutoModelForSeq2SeqLM.from_pretrained(base_of(name, **changes)).eval()
    damaged, whole = (ids[:3] for ids in damaged_and_whole(learner.model.tokenizer))

    def decoder(input_ids, encoder_hidden_states):
        return whole_model(encoder_outputs=(encoder_hidden_states,), decoder_input_ids=input_ids)

    read = [[learner.model.tokenizer.pad_token_id, *ids] for ids in whole] if name == "t5" else whole
    expected = objectives.tsdae(whole_model.get_encoder(), decoder, damaged, read)
    loss = learner([tiny.pack(damaged), tiny.pack(whole)])
    assert loss.count == sum(len(ids) - 1 for ids in read)
    torch.testing.assert_close(loss.total, expected, rtol=1e-5, atol=1e-4)

    loss.total.backward()
    expected.backward()
    transformer = learner.model.transformer
    encoder = dict((transformer.encoder if name == "t5" else transformer).named_parameters())
    pairs = [(encoder[key], parameter) for key, parameter in whole_model.get_encoder().named_parameters()]
    ours, unneeded = dict(learner.decoder.decoder.named_parameters()), 0
    for key, parameter in whole_model.get_decoder().named_parameters():
        if our_name(key) in ours:
            pairs.append((ours[our_name(key)], parameter))
        else:  # a softmax over one slot is 1 whatever its query and key are
            assert parameter.grad is None or parameter.grad.abs().max() < 1e-4, key
            unneeded += 1
    assert unneeded == (8 if name == "bart" else 6)
    for fast, slow in pairs:
        torch.testing.assert_close(fast.grad, slow.grad, rtol=1e-3, atol=5e-4)


def test_words_are_embedded_once(learner_on):
    for name in tiny.ENCODER_DECODER:
        learner = learner_on(name)
        words = learner.model.transformer.get_input_embeddings().weight
        assert learner.decoder.decoder.embed_tokens.weight is words
        assert learner.decoder.head.output.weight is words


@pytest.mark.parametrize("name", tiny.ENCODER_DECODER)
def test_whole_heads_are_dropped_where_that_is_wanted(name, learner_on, damaged_and_whole):
    """Of two heads, at a rate of a half, what a position is told takes four values, and one without dropping."""
    for wanted, found in ((False, 1), (True, 4)):
        decoder = learner_on(name, dropout=0.5, drop_heads=wanted).decoder.decoder
        look = decoder.layers[0].encoder_attn if name == "bart" else decoder.block[0].layer[1].EncDecAttention
        with torch.no_grad():
            told = look(torch.zeros(1, 200, tiny.SIZE), torch.randn(1, 1, tiny.SIZE))[0][0]
        assert len(told.round(decimals=4).unique(dim=0)) == found


def test_from_scratch_nothing_of_the_decoder_is_left(learner_on):
    trained, scratch = learner_on("bart"), learner_on("bart", scratch=True)
    before = dict(trained.decoder.named_parameters())
    for key, parameter in scratch.decoder.named_parameters():
        assert not torch.equal(parameter, before[key]), key


def test_what_cannot_be_is_refused_in_one_line(learner_on, base_of, tmp_path):
    with pytest.raises(SettingsError, match="decoder_layers"):
        learner_on("bart", decoder_layers=2)
    for name in tiny.ENCODER_DECODER:
        load_encoder(base_of(name)).save(tmp_path / name)
        half = load_encoder(tmp_path / name, "cls")
        with pytest.raises(BaseEncoderError, match="needs the decoder of this"):
            get_method("tsdae").learner(half, TSDAE())
        assert get_method("simcse").learner(half, get_method("simcse").options())
    with pytest.raises(BaseEncoderError, match="only the last layer"):
        get_method("flow").learner(load_encoder(base_of("bart")), get_method("flow").options(layers="first+last"))
