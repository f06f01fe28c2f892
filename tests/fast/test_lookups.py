"""Gradients that are added to rows of a table equal torch's own."""

import pytest
import torch
from torch import nn

from selfsent.fast.lookups import LARGE, Lookup, put_lookups
from selfsent.methods.losses import linear_cross_entropy

IDS = torch.tensor([[1, 3, 3], [0, 4, 1]])


def model(padding=0):
    torch.manual_seed(0)
    table = nn.Embedding(LARGE, 4, padding_idx=padding)
    output = nn.Linear(4, LARGE)
    output.weight = table.weight
    return nn.ModuleDict({"table": table, "output": output})


def loss(parts):
    """Two lookups and a tied output, so that three gradients meet in one table."""
    states = parts["table"](IDS) * torch.arange(4) + parts["table"](IDS.flip(0))
    return linear_cross_entropy(states.flatten(0, 1), parts["output"].weight, parts["output"].bias, IDS.flatten())


@pytest.mark.parametrize("padding", [None, 0])
def test_gradients_over_several_backward_passes_are_those_of_torch(padding):
    ours, theirs = model(padding), model(padding)
    put_lookups(ours)
    assert type(ours["table"]) is Lookup
    assert type(theirs["table"]) is nn.Embedding
    for parts in (ours, theirs):
        for weight in (1.0, 0.5):
            (loss(parts) * weight).backward()
        parts["table"](IDS).square().sum().backward()
    torch.testing.assert_close(ours["table"].weight.grad, theirs["table"].weight.grad)
    torch.testing.assert_close(ours["output"].bias.grad, theirs["output"].bias.grad)


def test_one_block_of_the_table_s_size_is_made(monkeypatch):
    """However many lookups and projections there are."""
    parts, made = model(), []
    put_lookups(parts)
    for name in ("zeros_like", "empty_like"):
        make = getattr(torch, name)
        monkeypatch.setattr(
            torch, name, lambda like, *a, make=make, **k: made.append(like.shape) or make(like, *a, **k)
        )
    loss(parts).backward()
    assert made.count(parts["table"].weight.shape) == 1


def test_small_and_special_tables_stay():
    few = nn.Embedding(LARGE - 1, 4)
    frozen = nn.Embedding(LARGE, 4).requires_grad_(False)
    parts = nn.ModuleList([few, frozen, nn.Embedding(LARGE, 4, max_norm=1.0)])
    put_lookups(parts)
    assert {type(part) for part in parts} == {nn.Embedding}
