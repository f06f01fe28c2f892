"""An encoder that is only run in 8 bits: each layer as its equations say, the vectors near to float32's."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch

import tiny
from naive.int8 import linear
from selfsent.errors import BaseEncoderError
from selfsent.models.bfloat16 import into_bfloat16
from selfsent.models.encoding import encode
from selfsent.models.int8 import Int8Linear, Int8States, Latest, into_int8
from selfsent.models.precision import computes_int8

pytestmark = pytest.mark.skipif(not computes_int8("cpu"), reason="this processor has no AVX-512 VNNI")
SENTENCES = [*tiny.make_sentences(30, seed=1), " ".join(tiny.make_sentences(20, seed=2)), "ba", ""]


def in_8_bits(model):
    """Names of the layers."""
    return [name for name, part in model.transformer.named_modules() if isinstance(part, Int8Linear)]


def ranged(examples, channels, latest=None):
    """`Int8States` for the range of examples."""
    return Int8States(examples.amin(0), examples.amax(0), channels, latest or Latest())


@pytest.mark.parametrize("offset", [0.0, 3.0, -3.0])
def test_a_layer_is_its_equations(offset):
    draw = torch.Generator().manual_seed(0)
    examples = torch.randn(200, 32, generator=draw) * torch.linspace(0.1, 8, 32) + offset
    weight, bias = torch.randn(48, 32, generator=draw), torch.randn(48, generator=draw)
    channels = examples.abs().amax(0) ** 0.5
    states = ranged(examples, channels)
    layer = Int8Linear(weight, bias, channels, states)
    # Far out of what was measured, too: there bytes must stop, not begin anew.
    for given in (examples, torch.randn(7, 32, generator=draw) * 100):
        expected = linear(given, weight, bias, channels, states.scale, states.zero)
        near = layer(given).double().numpy()
        # A number between two bytes may become either: no more than a step of one channel or two.
        np.testing.assert_allclose(near, expected, atol=states.scale * float((weight * channels).abs().max()) * 2.5)
        assert np.abs(near - expected).mean() < 1e-3
    exact = examples @ weight.T + bias
    assert (layer(examples) - exact).norm() < 0.03 * exact.norm()


@pytest.mark.parametrize("name", tiny.ARCHITECTURES)
def test_8_bits_are_near(name, encoder_of):
    model = encoder_of(name)
    exact = encode(model, SENTENCES)
    near = encode(into_int8(model), SENTENCES)
    assert in_8_bits(model)
    assert near.dtype == np.float32
    assert tiny.cosines(exact, near).min() > 0.998
    assert tiny.cosines(exact, encode(into_bfloat16(model), SENTENCES)).min() > 0.998


def test_the_vector_of_a_text_is_the_same_alone_and_in_a_batch(encoder_of):
    model = into_int8(encoder_of("bert"))
    alone = np.concatenate([encode(model, [text]) for text in SENTENCES])
    assert tiny.cosines(encode(model, SENTENCES), alone).min() > 0.99999


def test_threads_do_not_take_the_latest_states_from_each_other():
    latest, channels = Latest(), torch.ones(4)
    small = ranged(torch.linspace(-1, 1, 8).view(2, 4), channels, latest)
    states = torch.tensor([[0.0, 0.5, -0.5, 1.0]])
    first = small(states)
    with ThreadPoolExecutor(1) as thread:
        assert thread.submit(small, states + 1).result() is not first
    assert small(states) is first


def test_layers_that_read_a_norm_are_in_8_bits(encoder_of):
    model = into_int8(encoder_of("bert"))
    kinds = {name.split(".", 3)[-1] for name in in_8_bits(model)}
    assert kinds == {"attention.self.query", "attention.self.key", "attention.self.value", "intermediate.dense"}
    first = model.transformer.encoder.layer[0].attention.self
    assert first.query.states is first.key.states is first.value.states
    states = model.transformer.state_dict()
    assert {states[f"{name}.weight"].dtype for name in in_8_bits(model)} == {torch.int8}


def test_an_encoder_that_8_bits_are_too_few_for_is_refused(encoder_of):
    with pytest.raises(BaseEncoderError, match="leave out `int8`"):
        into_int8(encoder_of("bert"), min_cosine=1.1)


def test_an_encoder_in_8_bits_is_not_saved(encoder_of, tmp_path):
    with pytest.raises(BaseEncoderError, match="8 bits cannot be saved"):
        into_int8(encoder_of("bert")).save(tmp_path / "model")
    assert not list(tmp_path.iterdir())
