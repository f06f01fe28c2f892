import pytest
import torch

import tiny
from selfsent.methods import get_method

SENTENCES = tiny.make_sentences(5, seed=9, words=(1, 6))


@pytest.fixture
def learner_of(encoder_of, base_of):
    """A learner without dropout on a tiny base."""

    def of(method, architecture="bert", dropout=0.0, pooling=None, **options):
        chosen = get_method(method)
        encoder = encoder_of(architecture, pooling or chosen.pooling, dropout)
        if method in tiny.FOLLOWING:
            options = {"teacher": str(base_of(architecture, seed=5)), **options}
        torch.manual_seed(0)
        return chosen.learner(encoder, chosen.options(**options)).train()

    return of


@pytest.fixture(scope="session")
def damaged_and_whole():
    """Token ids of sentences with every third token missing, and of the whole sentences, for a tokenizer."""

    def of(tokenizer):
        whole = tiny.encode(tokenizer, SENTENCES)
        return [[ids[0], *(t for n, t in enumerate(ids[1:-1]) if n % 3), ids[-1]] for ids in whole], whole

    return of
