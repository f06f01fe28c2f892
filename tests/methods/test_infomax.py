import math

import pytest
import torch

import tiny
from naive import comparisons
from selfsent.errors import BaseEncoderError, SettingsError
from selfsent.methods import get_method
from selfsent.methods.infomax import jensen_shannon
from selfsent.models.loading import load_encoder

LENGTHS = [3, 1, 4, 2]


def random_scores():
    generator = torch.Generator().manual_seed(0)
    return torch.randn(sum(LENGTHS), len(LENGTHS), generator=generator, requires_grad=True)


OWN = torch.repeat_interleave(torch.arange(len(LENGTHS)), torch.tensor(LENGTHS))


def test_the_estimator_and_its_gradients_equal_loops_over_pairs():
    scores = random_scores()
    fast = jensen_shannon(scores, OWN) / len(OWN)
    slow = comparisons.average(comparisons.jensen_shannon([list(part) for part in scores.split(LENGTHS)]), "token")
    torch.testing.assert_close(fast, slow)
    ours, theirs = (torch.autograd.grad(loss, scores)[0] for loss in (fast, slow))
    torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-6)


def test_scores_of_zero_give_zero_and_perfect_ones_two_logs_of_two():
    assert jensen_shannon(torch.zeros(len(OWN), len(LENGTHS)), OWN) == 0
    apart = 200 * torch.nn.functional.one_hot(OWN, len(LENGTHS)).float() - 100
    assert jensen_shannon(apart, OWN) / len(OWN) == pytest.approx(-2 * math.log(2))


def tokens_of(learner):
    return tiny.pack(tiny.encode(learner.model.tokenizer, tiny.make_sentences(5, seed=9, words=(1, 6))))


def vectors(learner, packed):
    """Local and global vectors, sentence by sentence."""
    tokens = learner.model.token_vectors(packed)
    locals_ = [tokens[packed.sentence == number] for number in range(len(packed))]
    return locals_, [local.mean(0) for local in locals_]


@pytest.mark.parametrize("average", ["token", "sum"])
@pytest.mark.parametrize("name", ["bert", "mpnet"])
def test_learner_equals_loops_over_tokens(name, average, learner_of):
    learner = learner_of("infomax", name, average=average, temperature=0.5)
    packed = tokens_of(learner)
    locals_, globals_ = vectors(learner, packed)
    scores = [[[comparisons.cosine(token, g) / 0.5 for g in globals_] for token in local] for local in locals_]
    loss = learner([packed])
    expected = comparisons.average(comparisons.jensen_shannon(scores), average)
    torch.testing.assert_close(loss.total / loss.count, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("kind", ["dot", "mlp"])
def test_discriminators(kind, learner_of):
    learner = learner_of("infomax", discriminator=kind, temperature=0.0, filters=4)
    packed = tokens_of(learner)
    locals_, globals_ = vectors(learner, packed)
    if kind == "mlp":
        locals_ = [learner.local_head.shortcut(x) + learner.local_head.deep(x) for x in locals_]
        globals_ = [learner.global_head.shortcut(x) + learner.global_head.deep(x) for x in globals_]
    scores = [[[token @ g for g in globals_] for token in local] for local in locals_]
    expected = comparisons.average(comparisons.jensen_shannon(scores), "token")
    loss = learner([packed])
    torch.testing.assert_close(loss.total / loss.count, expected, rtol=1e-4, atol=1e-3)
    assert sum(p.numel() for p in learner.local_head.parameters()) == (4 * 12 * 13 if kind == "mlp" else 0)


def test_the_head_is_saved_and_reads_its_windows(learner_of, tmp_path):
    learner = learner_of("infomax", windows="3,5,7", filters=4)
    learner.model.save(tmp_path / "model")
    again = load_encoder(tmp_path / "model")
    assert again.token_modules[1].kernel_sizes == [3, 5, 7]
    assert again.embedding_size == 12
    packed = tokens_of(learner)
    torch.testing.assert_close(again.eval()(packed), learner.eval().model(packed))


def test_a_base_that_has_the_head_keeps_it(learner_of, tmp_path):
    learner = learner_of("infomax", filters=4)
    learner.model.save(tmp_path / "model")
    method = get_method("infomax")
    again = method.learner(load_encoder(tmp_path / "model"), method.options(filters=4))
    torch.testing.assert_close(
        again.model.token_modules[1].convs[0].weight, learner.model.token_modules[1].convs[0].weight
    )
    with pytest.raises(SettingsError, match="n-gram CNN of another shape"):
        method.learner(load_encoder(tmp_path / "model"), method.options(filters=5))


FAITHFUL = [{"masked": False}, {"activation": "relu"}, {"discriminator": "mlp"}, {"average": "sum"}]


@pytest.mark.parametrize("option", FAITHFUL, ids=lambda option: next(iter(option)))
def test_what_code_and_paper_differ_in_changes_the_loss(option, learner_of):
    plain, other = (learner_of("infomax", filters=4, **chosen) for chosen in ({}, option))
    packed = tokens_of(plain)
    first, second = (loss.total / loss.count for loss in (plain([packed]), other([packed])))
    assert abs(first - second) > 1e-4


def test_a_base_whose_vectors_are_narrower_than_its_states_is_refused(encoder_of):
    from sentence_transformers.sentence_transformer.modules import Dense

    model, options = encoder_of("bert"), get_method("infomax").options(filters=8)
    model.sentence_transformer.append(Dense(24, 8))
    with pytest.raises(BaseEncoderError, match="narrows its vectors from 24 to 8 numbers"):
        get_method("infomax").learner(model, options)
