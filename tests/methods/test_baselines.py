import math

import numpy as np
import pytest
import torch

import tiny
from naive import predictions, recurrence
from selfsent.methods import get_method
from selfsent.models.loading import load_encoder

FASTSENT, METHOD = get_method("fastsent"), get_method("sent2vec")
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


@pytest.fixture
def fastsent(base_of):
    torch.manual_seed(0)
    return lambda **options: FASTSENT.learner(load_encoder(base_of(tiny.STATIC)), FASTSENT.options(**options))


def test_fastsent_equals_loops_over_words(fastsent):
    made = fastsent()
    torch.nn.init.normal_(made.output.weight)
    sentences, beside = [[20, 21, 22, 20], [23], [24, 25]], [[30, 31], [20, 20, 32], [33]]
    loss = made([tiny.pack(sentences), tiny.pack(beside)])
    table, output = made.model.table.weight.tolist(), made.output.weight.tolist()
    total, count = predictions.fastsent(sentences, beside, table, output)
    assert loss.count == count
    assert loss.total.item() == pytest.approx(total, rel=1e-4)


def test_special_tokens_are_not_predicted(base_of, encoder_of):
    made = FASTSENT.learner(encoder_of("bert"), FASTSENT.options())
    first = made.model.tokenizer.all_special_ids[0]
    batch = [tiny.pack([[first, 20, 21]]), tiny.pack([[first, 22, first]])]
    assert made(batch).count == 1


WHOLE = [[2, 20, 21, 22, 20, 3], [2, 23, 3], [2, 24, 25, 26, 3]]
"""Of the tiny tokenizer, 2 stands before a sentence and 3 behind it."""
DAMAGED = [[2, 21, 20, 3], [2, 23, 3], [2, 26, 24, 3]]


@pytest.fixture
def recurrent(base_of):
    def of(method, base="gru", **options):
        torch.manual_seed(0)
        chosen = get_method(method)
        return chosen.learner(load_encoder(base_of(base)), chosen.options(**options)).eval()

    return of


def numbers(tensor):
    return tensor.detach().double().numpy()


def decoded(made, decoder, vector, sentence, reads):
    """The loss of a sentence by the learner's weights, word by word."""
    weights = [numbers(part) for part in decoder.network.parameters()]
    table, first = numbers(made.model.word_vectors(torch.arange(made.model.vocabulary_size))), None
    if reads == "both":
        first = np.tanh(numbers(decoder.begin.weight) @ vector + numbers(decoder.begin.bias))
    elif reads == "start":
        first = vector
    output = numbers(made.output.weight), numbers(made.output.bias)
    return recurrence.decoded(sentence, vector, table, weights, *output, first, reads != "start")


@pytest.mark.parametrize("reads", ["steps", "start", "both"])
def test_sdae_equals_loops_over_words(recurrent, reads):
    made = recurrent("sdae", reads=reads)
    if reads == "both":
        torch.nn.init.normal_(made.decoder.begin.weight, std=2.0)  # small numbers are nearly their own tanh
    loss = made([tiny.pack(DAMAGED), tiny.pack(WHOLE)])
    vectors = numbers(made.model(tiny.pack(DAMAGED)))
    slow = sum(decoded(made, made.decoder, *pair, reads) for pair in zip(vectors, WHOLE, strict=True))
    assert loss.total.item() == pytest.approx(slow, rel=1e-5)
    assert loss.count == sum(len(sentence) - 1 for sentence in WHOLE)


def test_without_a_prefix_the_decoder_begins_with_a_token(recurrent):
    made = recurrent("sdae", "static")
    plain, damaged = ([sentence[1:-1] for sentence in sentences] for sentences in (WHOLE, DAMAGED))
    loss = made([tiny.pack(damaged), tiny.pack(plain)])
    vectors = numbers(made.model(tiny.pack(damaged)))
    begin = [[made.decoder.start, *sentence] for sentence in plain]
    slow = sum(decoded(made, made.decoder, *pair, "both") for pair in zip(vectors, begin, strict=True))
    assert loss.total.item() == pytest.approx(slow, rel=1e-5)
    assert loss.count == sum(map(len, plain))


@pytest.mark.parametrize("reads", ["steps", "start"])
def test_skip_thoughts_equals_loops_over_the_words_that_are_there(recurrent, reads):
    made = recurrent("skip-thoughts", reads=reads)
    before, behind = [WHOLE[0], [2, 30, 31, 3], [2, 32, 3]], [[2, 33, 34, 3], WHOLE[1], [2, 35, 36, 37, 3]]
    loss = made([tiny.pack(WHOLE), tiny.pack(before), tiny.pack(behind)])
    vectors = numbers(made.model(tiny.pack(WHOLE)))
    slow, count = 0.0, 0
    for decoder, sides in zip(made.decoders, (before, behind), strict=True):
        for vector, own, other in zip(vectors, WHOLE, sides, strict=True):
            if other != own:  # where a document ends, the sentence itself is given
                slow += decoded(made, decoder, vector, other, reads)
                count += len(other) - 1
    assert loss.total.item() == pytest.approx(slow, rel=1e-5)
    assert loss.count == count == 12


def test_without_neighbours_all_gradients_are_zero(recurrent):
    made = recurrent("skip-thoughts")
    loss = made([tiny.pack(WHOLE)] * 3)
    loss.total.backward()
    assert (loss.total.item(), loss.count) == (0, 0)
    assert all(part.grad is not None and not part.grad.any() for part in made.parameters())
