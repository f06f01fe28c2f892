import threading

import numpy as np
import pytest
import torch

import tiny
from selfsent.models.encoding import encode, encode_stream


@pytest.fixture(scope="module")
def sentences():
    return tiny.make_sentences(70)


@pytest.fixture
def encoder(encoder_of):
    return encoder_of("bert", initializer_range=0.5)


@pytest.mark.parametrize(("chunk", "characters"), [(7, 1 << 22), (4096, 1 << 22), (4096, 50)])
def test_the_order_of_the_sentences_is_kept(encoder, sentences, chunk, characters):
    sentences = sentences[:30]
    alone = np.concatenate([encode(encoder, [sentence]) for sentence in sentences])
    np.testing.assert_allclose(encode(encoder, sentences), alone, atol=2e-5)
    parts = list(encode_stream(encoder, iter(sentences), chunk_size=chunk, max_characters=characters))
    np.testing.assert_allclose(np.concatenate(parts), alone, atol=2e-5)
    assert len(parts) == {(7, 1 << 22): 5, (4096, 1 << 22): 1}.get((chunk, characters), len(parts))
    assert characters > 50 or len(parts) > 10


@pytest.fixture
def two_at_work(encoder, two_threads):
    """Two threads, and those that took a batch; neither goes on before the other has one, too."""
    seen, both = set(), threading.Barrier(2)

    def meet(*_):
        if threading.current_thread() not in {*seen, threading.main_thread()}:
            seen.add(threading.current_thread())
            both.wait(20)

    encoder.register_forward_pre_hook(meet)
    return seen


@pytest.mark.parametrize("layers", ["last", "first+last"])
def test_two_threads_share_the_work_and_change_nothing(layers, encoder, two_at_work):
    sentences = tiny.make_sentences(900)  # more tokens than one pass has
    encoder.average_layers(layers)
    shared = encode(encoder, sentences)
    assert len(two_at_work) == 2
    torch.set_num_threads(1)
    np.testing.assert_array_equal(shared, encode(encoder, sentences))


def test_encoding_leaves_the_mode_alone_and_has_no_dropout(encoder_of, sentences):
    encoder = encoder_of("bert", dropout=0.5).train()
    first = encode(encoder, sentences)
    assert encoder.training
    np.testing.assert_array_equal(first, encode(encoder, sentences))


def test_a_fault_of_the_sentences_is_not_swallowed_by_the_thread(encoder):
    def texts():
        yield "ba"
        raise OSError("the disk is gone")

    with pytest.raises(OSError, match="the disk is gone"):
        list(encode_stream(encoder, texts()))


def test_nothing_to_encode(encoder):
    assert encode(encoder, []).shape == (0, 32)
    assert list(encode_stream(encoder, [])) == []
