"""Methods with adapters in place of the transformer's own weights."""

import copy

import pytest
import torch
from cells import BATCH, SENTENCES, Cell
from test_contract import kept_and_brought_back, loss_of, seen

import tiny
from selfsent.methods import METHODS
from selfsent.training.schedule import make_optimizer

OTHERS = ("flow", "sent2vec", "sent2vec-bigrams")
EVERY = [name for name, method in METHODS.items() if not method.closed_form and name not in OTHERS]
"""The methods that train a transformer."""
SOON = ("simcse-bert", "tsdae-bert", "mlm-albert", "bootstrap-qwen3", "ct-modernbert")
CELLS = [
    *(Cell(name, "bert") for name in EVERY),
    *(Cell(name, other) for name in ("simcse", "tsdae") for other in tiny.ARCHITECTURES if other != "bert"),
    *(Cell(*names) for names in (("mlm", "albert"), ("bootstrap", "qwen3"), ("ct", "modernbert"))),
]


@pytest.fixture(
    scope="module",
    params=[pytest.param(cell, id=str(cell), marks=() if str(cell) in SOON else pytest.mark.full) for cell in CELLS],
)
def cell(request):
    return request.param


@pytest.fixture(scope="module")
def made(cell, base_of):
    return cell.learner(base_of(cell.architecture), lora=4)


@pytest.fixture
def learner(made):
    return copy.deepcopy(made)


@pytest.fixture
def batch(cell, learner):
    return seen(cell.batches(learner, BATCH, SENTENCES), 16)


def test_adapters_change_nothing_at_first(cell, learner, batch, base_of):
    plain = cell.learner(base_of(cell.architecture))
    state = {name.replace(".base_layer", ""): tensor for name, tensor in learner.state_dict().items()}
    plain.load_state_dict({name: tensor for name, tensor in state.items() if "lora_" not in name})
    torch.testing.assert_close(loss_of(learner.eval(), batch), loss_of(plain.eval(), batch))


def test_gradients_reach_adapters_alone(learner, batch):
    before = [weight.clone() for weight in learner.frozen]
    assert before
    optimizer = make_optimizer(learner, BATCH)
    for _ in range(2):  # in the first step B is zero, and A gets none
        optimizer.zero_grad()
        loss_of(learner, batch).backward()
        optimizer.step()
        learner.after_step()
    own = dict(learner.model.transformer.named_parameters())
    assert all(("lora_" in name) == weight.requires_grad for name, weight in own.items())
    for name, weight in learner.named_parameters():
        assert (weight.grad is not None) == weight.requires_grad, name
        assert weight.grad is None or weight.grad.any(), f"{name} gets no gradient"
    assert all(torch.equal(*pair) for pair in zip(before, learner.frozen, strict=True))


def test_a_snapshot_holds_no_frozen_weight_and_brings_the_loss_back(learner, batch):
    kept = kept_and_brought_back(learner, batch)
    frozen = sum(weight.numel() for weight in learner.frozen)
    whole = sum(tensor.numel() for tensor in {each.data_ptr(): each for each in learner.state_dict().values()}.values())
    assert sum(tensor.numel() for tensor in kept.values()) <= whole - frozen
