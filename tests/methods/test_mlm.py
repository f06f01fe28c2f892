import numpy as np
import pytest
import torch

import tiny
from naive import objectives
from selfsent.data.packed import IGNORED, Packed
from selfsent.data.views.noise import MaskTokens
from selfsent.errors import SettingsError
from selfsent.methods import get_method
from selfsent.methods.mlm import MLM
from selfsent.models.encoding import pack


def masked_batch(tokenizer, whole):
    """Every fourth token hidden: lists of ids and targets, and the packed batch."""
    inputs = [[tokenizer.mask_token_id if n % 4 == 1 else t for n, t in enumerate(ids)] for ids in whole]
    targets = [[t if n % 4 == 1 else IGNORED for n, t in enumerate(ids)] for ids in whole]
    lengths = np.array([len(ids) for ids in whole])
    return inputs, targets, Packed(np.concatenate(inputs), lengths, np.concatenate(targets))


@pytest.mark.parametrize("name", ["bert", "albert", "distilbert", "mpnet", "modernbert"])
def test_loss_and_gradients_equal_full_scores_position_by_position(name, base_of, learner_of, damaged_and_whole):
    from transformers import AutoModelForMaskedLM

    learner = learner_of("mlm", name)
    model = AutoModelForMaskedLM.from_pretrained(base_of(name), attn_implementation="eager").eval()
    _, whole = damaged_and_whole(learner.model.tokenizer)
    inputs, targets, packed = masked_batch(learner.model.tokenizer, whole)
    loss = learner([packed])
    expected = objectives.mlm(model, inputs, targets, IGNORED)
    assert loss.count == sum(goal != IGNORED for goals in targets for goal in goals)
    torch.testing.assert_close(loss.total, expected, rtol=1e-5, atol=1e-4)

    loss.total.backward()
    expected.backward()
    theirs = dict(model.base_model.named_parameters())
    for key, parameter in learner.model.transformer.named_parameters():
        if parameter.requires_grad and key in theirs and theirs[key].grad is not None:
            torch.testing.assert_close(parameter.grad, theirs[key].grad, rtol=1e-3, atol=2e-4, msg=key)
    own = learner.model.language_model_head.output
    if own.bias is not None:
        torch.testing.assert_close(own.bias.grad, model.get_output_embeddings().bias.grad, rtol=1e-3, atol=2e-4)


def test_only_hidden_positions_are_scored(learner_of, damaged_and_whole):
    learner = learner_of("mlm")
    _, whole = damaged_and_whole(learner.model.tokenizer)
    seen = []
    learner.model.language_model_head.register_forward_hook(lambda module, given, out: seen.append(len(out)))
    loss = learner([masked_batch(learner.model.tokenizer, whole)[2]])
    assert seen == [loss.count]


def test_a_base_without_a_masked_language_model_is_refused(learner_of):
    with pytest.raises(Exception, match="choose another base or method"):
        learner_of("mlm", "gpt2")


def test_views_follow_the_options():
    assert MLM(ratio=0.3, whole_words=True).views()[0].noise == MaskTokens(0.3, True)
    with pytest.raises(SettingsError, match="--ratio"):
        MLM(ratio=0.0)


def test_a_head_that_starts_from_nothing_is_announced(base_of, tmp_path, caplog):
    """A sentence-transformers model came without its language-model head: words are then predicted by a new one."""
    from sentence_transformers import SentenceTransformer

    from selfsent.models.loading import load_encoder

    with_head = load_encoder(base_of("bert"))
    get_method("mlm").learner(with_head, MLM())
    assert not caplog.records
    SentenceTransformer(str(base_of("bert")), device="cpu").save(str(tmp_path / "model"), create_model_card=False)
    without = load_encoder(tmp_path / "model")
    assert without.language_model_head is None
    get_method("mlm").learner(without, MLM())
    assert "this base has no language-model head: mlm starts with a new, untrained one" in caplog.text
    assert without.language_model_head.output.weight is without.transformer.get_input_embeddings().weight


def test_what_stands_behind_the_transformer_is_left_as_it_is(encoder_of):
    """Or several processes would wait for its gradients."""
    from sentence_transformers.sentence_transformer.modules import Dense

    model = encoder_of("bert")
    model.sentence_transformer.append(Dense(tiny.SIZE, 8))
    learner = get_method("mlm").learner(model, MLM())
    packed = pack(model, tiny.make_sentences(4))
    packed.given_targets = packed.given_ids.copy()
    learner([packed]).total.backward()
    assert [name for name, each in learner.named_parameters() if each.requires_grad and each.grad is None] == []
