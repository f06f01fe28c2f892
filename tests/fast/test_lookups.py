"""Gradients that are added to rows of a table equal torch's own."""

import pytest
import torch
from torch import nn

from selfsent.fast.gradients import Lookup, clear_gradients, gradient_of, put_lookups

ROWS = 1000
IDS = torch.tensor([[1, 3, 3], [0, 4, 1]])


def model(seed=0, padding=0):
    torch.manual_seed(seed)
    table = nn.Embedding(ROWS, 4, padding_idx=padding)
    output = nn.Linear(4, ROWS)
    output.weight = table.weight
    return nn.ModuleDict({"table": table, "output": output})


def loss(parts):
    """Two lookups and a tied output, so that three gradients meet in one table."""
    states = parts["table"](IDS) * torch.arange(4) + parts["table"](IDS.flip(0))
    return parts["output"](states).logsumexp(-1).sum()


@pytest.mark.parametrize("padding", [None, 0])
def test_gradients_over_several_backward_passes_are_those_of_torch(padding):
    ours, theirs = model(padding=padding), model(padding=padding)
    put_lookups(ours)
    assert type(ours["table"]) is Lookup
    assert type(theirs["table"]) is nn.Embedding
    for parts in (ours, theirs):
        for weight in (1.0, 0.5):
            (loss(parts) * weight).backward()
    torch.testing.assert_close(ours["table"].weight.grad, theirs["table"].weight.grad)
    torch.testing.assert_close(ours["output"].bias.grad, theirs["output"].bias.grad)


def test_steps_are_those_of_torch_and_the_gradient_stays_where_it_is():
    ours, theirs = model(), model()
    put_lookups(ours)
    places = set()
    for parts in (ours, theirs):
        optimizer = torch.optim.AdamW(parts.parameters(), lr=0.1, fused=True)
        for _ in range(3):
            loss(parts).backward()
            optimizer.step()
            if parts is theirs:
                optimizer.zero_grad()
                continue
            places.add(parts["table"].weight.grad.data_ptr())
            clear_gradients(optimizer)
            assert not parts["table"].weight.grad.any()
            assert parts["output"].bias.grad is None
    assert len(places) == 1
    torch.testing.assert_close(ours.state_dict(), theirs.state_dict())


def test_only_the_rows_looked_up_are_normed_and_cleared():
    """The norm is that of all rows; another step's rows are no longer those of this one."""
    table = nn.ModuleDict({"table": nn.Embedding(ROWS, 4)})
    put_lookups(table)
    optimizer = torch.optim.SGD(table.parameters(), lr=0.1)
    for ids in (IDS, IDS + 7):
        (table["table"](ids) ** 2).sum().backward()
        table["table"](ids[:1]).sum().backward()
        whole, part = table["table"].weight.grad, gradient_of(table["table"].weight)
        assert len(part) == len(ids.unique())
        torch.testing.assert_close(part.norm(), whole.norm())
        clear_gradients(optimizer)
        assert not whole.any()
    tied = model()
    put_lookups(tied)
    loss(tied).backward()
    assert gradient_of(tied["table"].weight) is tied["table"].weight.grad
