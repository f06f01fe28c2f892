"""What is said, and done, where another library no longer has a name that is relied on."""

import logging

import pytest
import torch

import tiny
from selfsent.errors import BaseEncoderError
from selfsent.foreign import said, sentence_transformers, torch as ours, transformers
from selfsent.methods import get_method
from selfsent.models.assemble import put_head
from selfsent.models.heads.options import CnnPoolOptions
from selfsent.models.loading import load_encoder


@pytest.fixture
def lines(caplog):
    """What is said from now on, as if for the first time."""
    for cached in (said.say, ours._processor_has, ours.lays_out_bfloat16, ours._divides_by_grad_scale):
        cached.cache_clear()
    caplog.set_level(logging.WARNING, "selfsent")
    yield caplog
    for cached in (said.say, ours._processor_has, ours.lays_out_bfloat16, ours._divides_by_grad_scale):
        cached.cache_clear()


def test_a_processor_that_torch_says_nothing_of(lines, monkeypatch):
    for name in ("_is_avx512_bf16_supported", "_is_amx_tile_supported"):
        monkeypatch.delattr(torch.cpu, name)
    assert not ours.processor_multiplies_bfloat16()
    assert "torch " in lines.text
    assert "has no torch.cpu._is_avx512_bf16_supported: the processor is taken not to have it" in lines.text


@pytest.mark.parametrize("kind", [torch.optim.AdamW, torch.optim.Adam])
def test_a_fused_optimiser_divides_by_its_scale(kind, lines):
    assert ours._divides_by_grad_scale(kind, "cpu")
    assert not lines.text


def test_gradients_are_scaled_where_an_optimiser_ignores_the_scale(lines, monkeypatch):
    class Deaf(torch.optim.AdamW):
        """One whose next version no longer reads `grad_scale`."""

        def step(self, closure=None):
            self.grad_scale = None
            return super().step(closure)

    weight = torch.ones(3, requires_grad=True)
    weight.grad = torch.full((3,), 8.0)
    ours.scale_on_the_way(Deaf([weight], fused=True), [weight.grad], 0.25)
    assert weight.grad.tolist() == [2.0] * 3
    assert "division by grad_scale in a fused Deaf: gradients are scaled before the step" in lines.text


def test_an_architecture_that_does_not_run_packed_any_more(lines, base_of, monkeypatch):
    monkeypatch.setattr("selfsent.models.token_states.TokenStates._end_to_end", lambda *given: torch.zeros(1))
    model = load_encoder(base_of("bert"), "mean")
    assert not model.states.runs_packed
    assert "has no packed bert: it runs on padded batches" in lines.text
    with pytest.raises(BaseEncoderError, match=r"a bert has no tied decoder, as it had: .*--decoder-layers 2"):
        get_method("tsdae").learner(model, get_method("tsdae").options())
    learner = get_method("tsdae").learner(model, get_method("tsdae").options(decoder_layers=2))
    assert learner.paths == {"attention": "padded", "decoder": "SmallDecoder"}


def test_modules_of_our_own_without_the_private_constructor(lines, base_of, tmp_path, monkeypatch):
    from sentence_transformers import SentenceTransformer

    from selfsent.models.saved import load_sentence_transformer

    encoder = load_encoder(base_of("bert"), "mean")
    put_head(encoder, CnnPoolOptions())
    encoder.save(tmp_path / "model")
    assert len(load_sentence_transformer(tmp_path / "model").encode(["a b c"])) == 1
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
        load_encoder(base_of(name), "mean")
    assert transformers.has_masked_language_model(load_encoder(base_of("bert"), "mean").transformer.config)
    with transformers.silent():
        assert sentence_transformers.load_with(str(base_of("bert")), {}, device="cpu", local_files_only=True)
    assert not lines.text


def test_a_run_says_which_way_it_went(base_of, tmp_path):
    import selfsent

    run = selfsent.train(
        tiny.make_sentences(20), "tsdae", base_of("bert"), tmp_path / "run", steps=1, batch_size=4, quiet=True
    )
    assert run.record["paths"] == {"attention": "packed", "decoder": "TiedDecoder"}
