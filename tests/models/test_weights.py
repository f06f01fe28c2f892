"""No encoder with random weights: what its files lack is told by name, wherever a model is loaded."""

import logging
import shutil

import pytest
import torch
from safetensors.torch import load_file, save_file

import tiny
from selfsent.augment.translate import marian
from selfsent.errors import BaseEncoderError
from selfsent.foreign import compat
from selfsent.models.loading import load_encoder
from selfsent.models.weights import require_weights
from selfsent.scorers.load_scorer import load_scorer


@pytest.fixture
def changed(base_of, tmp_path):
    """A copy of a base whose weights went through a function."""

    def copy(base, change, file="model.safetensors"):
        folder = shutil.copytree(base_of(base) if isinstance(base, str) else base, tmp_path / "changed")
        weights = load_file(folder / file)
        save_file(change(weights), folder / file, metadata={"format": "pt"})
        return folder

    return copy


def without(part):
    def change(weights):
        kept = {name: weight for name, weight in weights.items() if part not in name}
        assert len(kept) < len(weights)
        return kept

    return change


def as_scorer(folder):
    load_scorer(str(folder))


@pytest.mark.parametrize("load", [load_encoder, as_scorer])
@pytest.mark.parametrize("prefix", ["model.", "encoder_q.", "module."])
@pytest.mark.parametrize("architecture", ["bert", "qwen3"])
def test_a_prefix_that_explains_all_is_named(architecture, prefix, load, changed):
    folder = changed(architecture, lambda weights: {f"{prefix}{name}": each for name, each in weights.items()})
    own = {"bert": "bert.", "qwen3": "model."}[architecture]
    with pytest.raises(BaseEncoderError, match=f"^all weights of {folder} have '{prefix}{own}' before") as told:
        load(folder)
    assert "\n" not in str(told.value)


def test_a_weight_that_is_missing_is_named(changed):
    folder = changed("bert", without("layer.1.attention.self.query.weight"))
    for load in (load_encoder, as_scorer):
        with pytest.raises(
            BaseEncoderError, match=r"lacks the weight encoder\.layer\.1\.attention\.self\.query\.weight:"
        ):
            load(folder)


def test_of_many_that_are_missing_three_are_named(changed):
    folder = changed("modernbert", without("layers.1."))
    with pytest.raises(BaseEncoderError, match=r"lacks 6 weights layers\.1\.attn_norm\.weight, .* and 3 others:"):
        load_encoder(folder)


def test_a_prefix_of_some_weights_alone_explains_nothing(changed):
    folder = changed(
        "bert", lambda weights: {f"{'q.' * ('.1.' in name)}{name}": each for name, each in weights.items()}
    )
    with pytest.raises(BaseEncoderError, match=r"have 'q\.bert\.' before|lacks 16 weights"):
        load_encoder(folder)


def cross_encoder(folder):
    from transformers import AutoModelForSequenceClassification

    config, tokenizer = tiny.make_config("bert", num_labels=1)
    AutoModelForSequenceClassification.from_config(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def test_a_pooler_may_be_missing_where_nothing_reads_it(changed, tmp_path):
    from transformers import AutoModel

    config, tokenizer = tiny.make_config("bert")
    AutoModel.from_config(config).save_pretrained(tmp_path / "whole")
    tokenizer.save_pretrained(tmp_path / "whole")
    load_encoder(changed(tmp_path / "whole", without("pooler.")))


@pytest.mark.parametrize("part", ["pooler.", "classifier."])
def test_of_a_cross_encoder_pooler_and_classifier_are_needed(part, changed, tmp_path):
    whole = cross_encoder(tmp_path / "whole")
    load_scorer(str(whole))
    with pytest.raises(BaseEncoderError, match=f"lacks 2 weights .*{part}"):
        load_scorer(str(changed(whole, without(part))))


def test_a_translator_is_told_what_it_lacks(changed, tmp_path):
    from transformers import AutoModelForSeq2SeqLM

    config, tokenizer = tiny.make_config("bart")
    AutoModelForSeq2SeqLM.from_config(config).save_pretrained(tmp_path / "whole")
    tokenizer.save_pretrained(tmp_path / "whole")
    marian(str(tmp_path / "whole"), 1)
    with pytest.raises(BaseEncoderError, match=r"lacks \d+ weights .*decoder\.layers\.1"):
        marian(str(changed(tmp_path / "whole", without("decoder.layers.1."))), 1)


def test_a_decoder_is_not_begun_with_random_weights(changed, tmp_path):
    from selfsent import train

    whole = changed("t5", without("decoder.block.1."))
    load_encoder(whole)  # which the decoder is no part of
    with pytest.raises(BaseEncoderError, match="tsdae needs the decoder of this 't5': give the whole checkpoint"):
        train(tiny.make_sentences(20), "tsdae", whole, tmp_path / "run", steps=1, batch_size=4, quiet=True)
    assert not (tmp_path / "run").exists()


def test_where_transformers_marks_nothing_it_is_told_and_the_model_loads(base_of, caplog):
    from transformers import AutoModel

    compat.warn_missing.cache_clear()
    model = AutoModel.from_pretrained(base_of("bert"))
    for weight in model.parameters():
        vars(weight).pop("_is_hf_initialized", None)
    with caplog.at_level(logging.WARNING, "selfsent"):
        require_weights(model, base_of("bert"))
    assert "missing weights are not found out" in caplog.text


@pytest.mark.skipif(not tiny.has_lora(), reason="peft is missing, or too old for this transformers")
def test_an_adapter_lacks_nothing_and_has_nothing_more(base_of, changed, tmp_path):
    from selfsent.models.lora import put_lora

    model = load_encoder(base_of("bert"))
    put_lora(model, 4, str(base_of("bert")))
    model.save(tmp_path / "adapter")
    file, part = "adapter_model.safetensors", "layer.1.output.dense.lora_B"
    folder = changed(tmp_path / "adapter", without(part), file)
    with pytest.raises(BaseEncoderError, match=r"lacks the weight encoder\.layer\.1\.output\.dense\.lora_B"):
        load_encoder(folder)
    shutil.rmtree(folder)

    def more(weights):
        return weights | {
            name.replace("layer.1", "layer.7"): each + 1 for name, each in weights.items() if ".1." in name
        }

    with pytest.raises(BaseEncoderError, match="has 12 weights that its base has no place for"):
        load_encoder(changed(tmp_path / "adapter", more, file))
    shutil.rmtree(folder)
    changed(tmp_path / "adapter", lambda weights: weights, file)
    assert torch.isfinite(load_encoder(folder).words.weight).all()
