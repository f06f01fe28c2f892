import math

import pytest
import torch

import tiny
from naive import predictions
from selfsent.methods import get_method
from selfsent.models.loading import load_encoder

METHOD = get_method("sent2vec")
SENTENCES = [[20, 21, 22, 20, 20], [24, 25], [23]]
"""The longest first: packed batches hold them so, and random numbers are drawn in their order."""


@pytest.fixture
def learner(base_of):
    def of(**options):
        torch.manual_seed(0)
        made = METHOD.learner(load_encoder(base_of(tiny.STATIC)), METHOD.options(**options)).eval()
        torch.nn.init.normal_(made.output.weight)
        made.prepare([[tiny.pack(SENTENCES)]])
        return made

    return of


@pytest.mark.parametrize("threshold", [0.02, 1.0])
def test_the_loss_equals_loops_over_words(learner, threshold):
    negatives = 3
    made = learner(negatives=negatives, threshold=threshold)
    loss = made([tiny.pack(SENTENCES)])
    frequency = made.frequency
    chances = torch.rand(8, generator=torch.Generator().manual_seed(0)).tolist()
    drawn = torch.Generator().manual_seed(0)
    others = torch.multinomial(frequency.sqrt(), loss.count * negatives, True, generator=drawn)
    others = others.view(-1, negatives).tolist()
    parts = made.model.table.weight.tolist(), made.output.weight.tolist()
    total, count = predictions.sent2vec(SENTENCES, *parts, frequency.tolist(), threshold, chances, others)
    assert loss.count == count
    assert (count == 7) == (threshold == 1.0)  # the sentence of one word predicts nothing
    assert loss.total.item() == pytest.approx(total, rel=1e-4)


def test_negatives_are_words_of_the_text_by_the_root_of_their_frequency(learner, monkeypatch):
    made = learner(negatives=4000, threshold=1.0)
    seen = []
    lookup = torch.nn.Embedding.forward
    monkeypatch.setattr(torch.nn.Embedding, "forward", lambda self, ids: (seen.append(ids), lookup(self, ids))[1])
    made([tiny.pack(SENTENCES)])
    counts = torch.bincount(seen[-1].flatten(), minlength=30)
    assert counts[[20, 21, 22, 23, 24, 25]].sum() == counts.sum()
    assert (counts[20] / counts[21]).item() == pytest.approx(math.sqrt(3), rel=0.05)


def test_a_batch_of_single_words_has_no_loss(learner):
    loss = learner(negatives=3)([tiny.pack([[20], [21]])])
    assert (loss.total.item(), loss.count) == (0, 0)
    loss.total.backward()
