"""Padded rows: padding changes nothing."""

import numpy as np
import pytest
import torch

import tiny
from selfsent.fast import padding
from selfsent.methods import get_method
from selfsent.models.loading import load_encoder

SENTENCES = tiny.make_sentences(11, seed=3)


@pytest.fixture
def filling(monkeypatch):
    monkeypatch.setattr(padding, "compiles", lambda device: True)


def test_a_row_gets_longer_by_an_eighth_at_most_and_rows_share_few_lengths(filling):
    lengths = [len(padding.pad_rows(torch.ones(count))) for count in range(1, 2049)]
    spare = np.array(lengths) - np.arange(1, 2049)
    assert spare.min() == 0
    assert all(extra < 8 or extra < length / 8 for length, extra in zip(lengths, spare, strict=True))
    assert len(set(lengths)) < 60
    assert padding.pad_rows(torch.ones(3, 2)).tolist() == [[1.0, 1.0]] * 3 + [[0.0, 0.0]] * 5
    assert len(padding.pad_rows(torch.ones(0, 2))) == 0


@pytest.mark.parametrize(
    ("learns", "low", "device", "longer"),
    [(True, True, "cpu", True), (False, True, "cpu", False), (True, False, "cpu", False), (True, True, "meta", False)],
)
def test_rows_are_filled_in_training_in_bfloat16_on_a_cpu(learns, low, device, longer):
    with torch.set_grad_enabled(learns), torch.autocast("cpu", torch.bfloat16, enabled=low):
        assert (len(padding.pad_rows(torch.ones(3, device=device))) > 3) == longer


@pytest.mark.parametrize("name", ["bert", "roberta", "albert", "modernbert", "gpt2"])
@pytest.mark.parametrize("method", ["tsdae", "mlm", "mnrl"])
def test_loss_and_gradients_are_those_of_rows_that_are_not_filled(name, method, base_of, monkeypatch):
    if method == "mlm" and name in tiny.CAUSAL:
        pytest.skip("it predicts no hidden words")
    results = []
    for fills in (False, True):
        monkeypatch.setattr(padding, "compiles", lambda device, fills=fills: fills)
        model = load_encoder(base_of(name), "mean", dropout=0.0)
        torch.manual_seed(0)
        learner = get_method(method).learner(model, get_method(method).options())
        batch = tiny.pack([ids for ids in tiny.encode(model.tokenizer, SENTENCES) if ids])
        if method == "mlm":
            batch.given_targets = np.where(np.arange(batch.tokens) % 3, -1, batch.given_ids)
        loss = learner([batch] if method == "mlm" else [batch, batch])
        loss.total.backward()
        results.append([loss.total.detach(), *(part.grad for part in learner.parameters() if part.grad is not None)])
    assert len(results[0]) == len(results[1]) > 5
    for plain, filled in zip(*results, strict=True):
        torch.testing.assert_close(filled, plain, atol=2e-5, rtol=2e-4)
