import numpy as np
import pytest
import torch

import tiny
from naive import recurrence
from selfsent.methods import get_method
from selfsent.models.loading import load_encoder

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
