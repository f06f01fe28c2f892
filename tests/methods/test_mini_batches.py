"""A batch that goes through the encoder in parts, of which vectors alone are kept (GradCache)."""

import pytest
import torch
from safetensors.torch import load_file
from torch.nn import functional as F

import selfsent
import tiny
from naive import gradcache
from selfsent.errors import SettingsError
from selfsent.methods import get_method
from selfsent.methods.contrast import in_batch_cross_entropy
from selfsent.models.encoder import Encoder
from selfsent.models.packing import pack
from selfsent.training.plan import Plan

SENTENCES = tiny.make_sentences(22, seed=5, words=(1, 9))


def loss(vectors):
    one, other = F.normalize(vectors, dim=-1).chunk(2)
    return in_batch_cross_entropy(20 * one @ other.T)


def gradients(model):
    found = {name: weight.grad.clone() for name, weight in model.named_parameters() if weight.grad is not None}
    model.zero_grad()
    return found


def assert_same(mine, theirs):
    """To the last digits of float32, for which the largest number of a gradient is the measure."""
    assert mine.keys() == theirs.keys()
    assert len(mine) > 10
    largest = max(gradient.abs().max() for gradient in theirs.values())
    for name, gradient in mine.items():
        difference = (gradient - theirs[name]).abs().max()
        assert difference <= 1e-5 * theirs[name].abs().max() + 3e-6 * largest, name


@pytest.mark.parametrize("architecture", ["bert", "modernbert", "gpt2", "t5"])
@pytest.mark.parametrize("dropout", [0.0, 0.3])
def test_loss_and_gradient_are_those_of_the_naive_cache_and_of_the_whole_batch(encoder_of, architecture, dropout):
    model = encoder_of(architecture, dropout=dropout).train()
    batch = pack(model, SENTENCES)
    parts = [batch.take(range(start, min(start + 5, 22))) for start in range(0, 22, 5)]
    model.mini_batch_size = 5
    torch.manual_seed(3)
    value = loss(model(batch))
    after = torch.get_rng_state()
    value.backward()
    mine = gradients(model)
    assert torch.equal(after, torch.get_rng_state())  # what comes later is drawn as without the second pass
    torch.manual_seed(3)
    assert value.item() == pytest.approx(gradcache.backward(model, parts, loss), rel=1e-6)
    assert_same(mine, gradients(model))
    torch.manual_seed(3)
    whole = loss(torch.cat([model(part) for part in parts]))  # all activations at once
    whole.backward()
    assert value.item() == pytest.approx(whole.item(), rel=1e-6)
    assert_same(mine, gradients(model))
    if not dropout:
        model.mini_batch_size = None
        loss(model(batch)).backward()
        assert_same(mine, gradients(model))


def test_vectors_alone_are_kept(encoder_of):
    model = encoder_of("bert", dropout=0.1).train()
    batch, kept = pack(model, SENTENCES), []

    def saved(tensor):
        kept[-1] += tensor.nbytes
        return tensor

    for model.mini_batch_size in (None, 4):
        kept.append(0)
        with torch.autograd.graph.saved_tensors_hooks(saved, lambda tensor: tensor):
            value = model(batch).sum()
        value.backward()
    assert kept[1] * 20 < kept[0]
    with torch.no_grad():
        in_parts = model.eval()(batch)
        model.mini_batch_size = None
        torch.testing.assert_close(in_parts, model(batch), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("kept", ["none", "kept", "both"])
def test_a_network_without_dropout_has_none_in_the_second_pass(learner_of, kept):
    found = []
    for size in (None, 4):
        learner = learner_of("ct-inbatch", dropout=0.3, dropout_in=kept)
        learner.model.mini_batch_size = learner.first.mini_batch_size = size
        batch = pack(learner.model, SENTENCES[:9])
        parts = [batch.take(range(start, min(start + 4, 9))) for start in range(0, 9, 4)]
        if size is None:  # the same draws, all activations at once
            for encoder in (learner.first, learner.model):
                encoder.forward = lambda _, left, f=encoder.forward, of=parts: torch.cat([f(part, left) for part in of])
        torch.manual_seed(1)
        value = learner([batch, batch]).total
        value.backward()
        found.append(gradients(learner))
    assert_same(*found)


def test_a_run_in_parts_learns_the_same_and_is_resumed(base_of, tmp_path, monkeypatch):
    how = {"base": base_of("bert"), "steps": 4, "batch_size": 8, "max_length": 32, "precision": "float32"}
    how |= {"delete_words": 0.3, "checkpoint_every": 2, "learning_rate": 1e-2, "epsilon": 1e-2, "quiet": True}
    monkeypatch.setenv("SELFSENT_CACHE", str(tmp_path / "cache"))

    def weights(name, **more):
        selfsent.train(tiny.make_sentences(40), "simcse", output=tmp_path / name, **how, **more)
        return load_file(tmp_path / name / "model" / "model.safetensors")

    whole, parts = weights("whole", dropout=0.0), weights("parts", dropout=0.0, mini_batch_size=3)
    for name, weight in whole.items():
        torch.testing.assert_close(parts[name], weight, rtol=1e-5, atol=2e-5)
    drawn = weights("drawn", dropout=0.2, mini_batch_size=3)
    assert any(not torch.equal(drawn[name], weight) for name, weight in whole.items())
    encode, count = Encoder.forward, [0]

    def stop(model, packed, leave_out=0):
        count[0] += model.training and len(packed) > 3
        if count[0] > 2:
            raise KeyboardInterrupt
        return encode(model, packed, leave_out)

    with monkeypatch.context() as patch:
        patch.setattr(Encoder, "forward", stop)
        with pytest.raises(KeyboardInterrupt):
            weights("again", dropout=0.2, mini_batch_size=3)
    again = weights("again", dropout=0.2, mini_batch_size=3, resume=True)
    assert all(torch.equal(again[name], weight) for name, weight in drawn.items())


@pytest.mark.parametrize(
    ("method", "complaint"),
    [
        ("tsdae", "tsdae does not compare the sentences of a batch: give accumulate instead"),
        ("infomax", "infomax compares all tokens of a batch, not vectors alone: lower batch_size instead"),
    ],
)
def test_methods_that_have_no_vectors_to_cache(method, complaint):
    with pytest.raises(SettingsError, match=complaint):
        Plan.resolve(get_method(method), mini_batch_size=4)
