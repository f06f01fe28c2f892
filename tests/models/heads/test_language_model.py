import copy
import shutil
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

import tiny
from selfsent.errors import BaseEncoderError
from selfsent.models.heads.language_model import HEAD_FILE, load_head, new_head
from selfsent.models.loading import load_encoder

MASKED = [name for name in tiny.ARCHITECTURES if name not in (*tiny.UNMASKED, *tiny.ENCODER_DECODER)]
SENTENCES = tiny.make_sentences(6, seed=1)


@pytest.mark.parametrize("name", MASKED)
@torch.no_grad()
def test_head_and_encoder_give_the_scores_of_the_language_model(name, base_of, encoder_of):
    from transformers import AutoModelForMaskedLM

    reference = AutoModelForMaskedLM.from_pretrained(base_of(name)).eval()
    model = encoder_of(name)
    batch = tiny.pack(tiny.encode(model.tokenizer, SENTENCES))
    head = model.language_model_head
    scores = head.output(head(model.states(batch)))
    for number, ids in enumerate(tiny.encode(model.tokenizer, SENTENCES)):
        expected = reference(input_ids=torch.tensor([ids])).logits[0]
        torch.testing.assert_close(scores[batch.sentence == number], expected, atol=2e-5, rtol=1e-4)
    assert (head.output.weight is model.words.weight) == model.transformer.config.tie_word_embeddings
    own = [tensor.data_ptr() for tensor in head.own_tensors(model.transformer).values()]
    assert len(set(own)) == len(own)
    assert not set(own) & {tensor.data_ptr() for tensor in model.transformer.state_dict().values()}


@pytest.mark.parametrize("name", tiny.CAUSAL)
def test_a_causal_model_has_no_head_for_hidden_words(name, encoder_of):
    model = encoder_of(name)
    assert model.language_model_head is None
    with pytest.raises(BaseEncoderError, match=r"mlm hides words.*choose another base or method"):
        model.require_head("mlm")
    model.require_head("tsdae", hidden=False)
    with pytest.raises(BaseEncoderError, match="mlm hides words"):
        model.require_head("mlm")


@pytest.mark.parametrize("name", tiny.CAUSAL)
@torch.no_grad()
def test_a_causal_model_scores_words_by_its_embeddings(name, encoder_of, tmp_path, caplog):
    """As the language model of transformers with tied weights does; there is nothing untrained, and nothing to save."""
    from transformers import AutoModelForCausalLM

    model = encoder_of(name)
    head = model.require_head("tsdae", hidden=False)
    assert not caplog.text
    assert head.output.weight is model.transformer.get_input_embeddings().weight
    config = copy.deepcopy(model.transformer.config)
    config.tie_word_embeddings = True
    reference = AutoModelForCausalLM.from_config(config).eval()
    reference.base_model.load_state_dict(model.transformer.state_dict())
    reference.tie_weights()
    ids = tiny.encode(model.tokenizer, SENTENCES)[0]
    states = reference.base_model(input_ids=torch.tensor([ids])).last_hidden_state[0]
    torch.testing.assert_close(head.output(head(states)), reference(input_ids=torch.tensor([ids])).logits[0])
    model.save(tmp_path / "model")
    assert not (tmp_path / "model" / HEAD_FILE).exists()
    assert load_encoder(tmp_path / "model").language_model_head is None


def test_a_base_without_a_head_gets_a_new_one(base_of, tmp_path, caplog):
    from transformers import AutoModel

    shutil.copytree(base_of("bert"), tmp_path / "plain")
    AutoModel.from_pretrained(base_of("bert")).save_pretrained(tmp_path / "plain")
    model = load_encoder(tmp_path / "plain")
    assert model.language_model_head is None
    head = model.require_head("tsdae")
    assert "tsdae starts with a new, untrained one" in caplog.text
    assert head.output.weight is model.transformer.get_input_embeddings().weight
    assert model.require_head("tsdae") is head


def test_a_head_of_another_model_is_refused(encoder_of, tmp_path):
    encoder_of("bert").save(tmp_path / "model")
    path = tmp_path / "model" / HEAD_FILE
    tensors = {name: tensor.clone() for name, tensor in load_file(str(path)).items()}  # not mapped: it is overwritten
    for others in ({name: torch.zeros(3) for name in tensors}, dict(list(tensors.items())[1:])):
        save_file(others, str(path))
        with pytest.raises(BaseEncoderError, match=r"does not fit the model next to it|cannot be loaded as"):
            load_encoder(tmp_path / "model")


def test_a_new_head_leaves_the_transformer_alone(encoder_of):
    transformer = encoder_of("roberta").transformer
    before = {name: tensor.clone() for name, tensor in transformer.state_dict().items()}
    new_head(transformer)
    for name, tensor in transformer.state_dict().items():
        assert torch.equal(tensor, before[name]), name
    assert load_head(Path("nowhere"), encoder_of("gpt2").transformer) is None
