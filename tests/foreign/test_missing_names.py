"""What is reported, and done, where another library no longer has a private name that is relied on."""

import logging

import pytest
import torch

from selfsent.errors import BaseEncoderError
from selfsent.foreign import compat, sentence_transformers, torch as ours, transformers
from selfsent.methods import get_method
from selfsent.models.assemble import put_head
from selfsent.models.heads.options import CnnPoolOptions
from selfsent.models.loading import load_encoder
from selfsent.models.saved import load_sentence_transformer


@pytest.fixture
def lines(caplog):
    """What is reported from now on, as if for the first time."""
    cached = compat.warn_missing, ours._processor_has, ours.lays_out_bfloat16
    for function in cached:
        function.cache_clear()
    caplog.set_level(logging.WARNING, "selfsent")
    yield caplog
    for function in cached:
        function.cache_clear()


def test_a_processor_that_torch_says_nothing_of(lines, monkeypatch):
    for name in ("_is_avx512_bf16_supported", "_is_amx_tile_supported"):
        monkeypatch.delattr(torch.cpu, name)
    assert not ours.processor_multiplies_bfloat16()
    assert "torch " in lines.text
    assert "has no torch.cpu._is_avx512_bf16_supported: the processor is taken not to have it" in lines.text


@pytest.mark.parametrize("supports", [True, False])
@pytest.mark.parametrize("kind", [torch.optim.AdamW, torch.optim.SGD])
def test_gradients_are_scaled_once_whether_or_not_the_optimiser_does_it(kind, supports, lines):
    def step(gradient, factor):
        weight = torch.ones(3, requires_grad=True)
        weight.grad = torch.full((3,), gradient)
        optimizer = kind([weight], lr=1.0, fused=True, **({"eps": 1.0} if kind is torch.optim.AdamW else {}))
        if not supports:
            del optimizer._step_supports_amp_scaling
        if factor is not None:
            ours.scale_on_the_way(optimizer, [weight.grad], factor)
            assert weight.grad.tolist() == [gradient if supports else gradient * factor] * 3
        optimizer.step()
        return weight.detach()

    torch.testing.assert_close(step(8.0, 0.25), step(2.0, None))
    assert supports != ("gradients are scaled before the step" in lines.text)


def test_an_architecture_that_does_not_run_packed_any_more(lines, base_of, monkeypatch):
    monkeypatch.setattr("selfsent.models.token_states.TokenStates._end_to_end", lambda *given: torch.zeros(1))
    model = load_encoder(base_of("bert"), "mean")
    assert not model.states.runs_packed
    assert "has no packed bert: it runs padded" in lines.text
    with pytest.raises(BaseEncoderError, match=r"a bert has no tied decoder, as it had: .*decoder_layers=2"):
        get_method("tsdae").learner(model, get_method("tsdae").options())
    learner = get_method("tsdae").learner(model, get_method("tsdae").options(decoder_layers=2))
    assert type(learner.decoder).__name__ == "SmallDecoder"


def test_modules_of_our_own_without_the_private_constructor(base_of, tmp_path, monkeypatch):
    from sentence_transformers import SentenceTransformer

    encoder = load_encoder(base_of("bert"), "mean")
    put_head(encoder, CnnPoolOptions())
    encoder.save(tmp_path / "model")
    name = "_load_with_module_classes"
    monkeypatch.delattr(next(kind for kind in SentenceTransformer.__mro__ if name in vars(kind)), name)
    with pytest.raises(BaseEncoderError, match="has no _load_with_module_classes to load them with"):
        load_sentence_transformer(tmp_path / "model")


def test_nothing_is_missing_from_what_is_installed(lines, base_of):
    ours.processor_multiplies_bfloat16()
    ours.processor_multiplies_bytes()
    ours.lays_out_bfloat16()
    assert ours.has_flash_attention()
    for name in ("bert", "modernbert", "gpt2"):
        model = load_encoder(base_of(name), "mean")
        assert transformers.has_masked_language_model(model.transformer.config) == (name != "gpt2")
    with transformers.silent():
        assert sentence_transformers.load_with(str(base_of("bert")), {}, device="cpu", local_files_only=True)
    assert not lines.text
