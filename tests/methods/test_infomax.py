import pytest
import torch

import tiny
from naive import comparisons
from selfsent.errors import BaseEncoderError
from selfsent.methods import get_method
from selfsent.methods.infomax import jensen_shannon

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
    tiny.assert_equal_gradients(fast, slow, scores, rtol=1e-4, atol=1e-6)


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


def test_a_base_whose_vectors_are_narrower_than_its_states_is_refused(encoder_of):
    from sentence_transformers.sentence_transformer.modules import Dense

    model, options = encoder_of("bert"), get_method("infomax").options(filters=8)
    model.sentence_transformer.append(Dense(24, 8))
    with pytest.raises(BaseEncoderError, match="narrows its vectors from 24 to 8 numbers"):
        get_method("infomax").learner(model, options)
