"""Linear layers whose gradient needs no new memory compute what autocast does."""

import copy

import pytest
import torch
from torch import nn

from selfsent.fast import gradients as autograd
from selfsent.fast.gradients import block_for, clear_gradients, release
from selfsent.fast.linear import Linear, put_linears
from selfsent.fast.lookups import put_lookups

WORDS = 1000


class Net(nn.Module):
    """A shared layer, one without bias, and an output tied to a table."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.table = nn.Embedding(WORDS, 16)
        self.shared = nn.Linear(16, 16)
        self.last = nn.Linear(16, 8, bias=False)
        self.output = nn.Linear(16, WORDS)
        self.output.weight = self.table.weight

    def forward(self, ids):
        with torch.autocast("cpu", torch.bfloat16):
            states = self.shared(torch.tanh(self.shared(self.table(ids))))
            return self.last(states).float().pow(2).sum() + self.output(states).float().logsumexp(-1).sum()


IDS = torch.arange(21).view(3, 7) % 11


def ours():
    net = Net()
    put_lookups(net)
    put_linears(net, 1)
    assert [type(part) for part in (net.shared, net.last, net.output)] == [Linear] * 3
    return net


def assert_near(own, other):
    """As a whole: an element may be all rounding."""
    assert own.dtype == torch.float32
    assert (own - other).norm() < 1e-2 * other.norm()


def gradients(net):
    return {name: parameter.grad for name, parameter in net.named_parameters()}


def test_losses_and_gradients_are_those_of_autocast():
    mine, theirs = ours(), Net()
    for factor in (1.0, 0.5):  # two micro-batches
        losses = [net(IDS) * factor for net in (mine, theirs)]
        assert losses[0] == losses[1]
        for loss in losses:
            loss.backward()
        for own, other in zip(gradients(mine).values(), gradients(theirs).values(), strict=True):
            assert_near(own, other)


def test_steps_are_those_of_autocast_and_gradients_stay_where_they_are():
    """The fused optimiser does not tell that it moved a weight."""
    mine, theirs = ours(), Net()
    places = []
    optimizers = [torch.optim.AdamW(net.parameters(), lr=0.01, fused=True) for net in (mine, theirs)]
    for _ in range(4):
        losses = []
        for net, optimizer in zip((mine, theirs), optimizers, strict=True):
            losses.append(net(IDS))
            losses[-1].backward()
            if net is mine:
                places.append({name: gradient.data_ptr() for name, gradient in gradients(net).items()})
                kept = net.shared.weight.grad
            optimizer.step()
            if net is mine:
                clear_gradients(optimizer)
                assert net.shared.weight.grad is None
                assert block_for(net.shared.weight) is kept
                autograd._IN_PLACE[net.shared.weight].spare.append(kept)
            else:
                optimizer.zero_grad()
        assert losses[0].item() == pytest.approx(losses[1].item(), rel=2e-3)
    assert losses[0] < 0.98 * ours()(IDS)
    assert len({place["shared.weight"] for place in places}) == 1
    assert len({place["table.weight"] for place in places}) == 1


def test_a_weight_that_is_set_between_two_steps_is_read_again():
    net = ours()
    before = net(IDS)
    with torch.no_grad():
        net.shared.weight.mul_(2)
    other = Net()
    with torch.no_grad():
        other.shared.weight.mul_(2)
    assert net(IDS) == other(IDS)
    assert net(IDS) != before


def test_copies_frozen_and_small_layers_and_float32_are_torch_s_own():
    net = ours()
    twin = copy.deepcopy(net)
    twin(IDS).backward()
    other = Net()
    other(IDS).backward()
    for own, grad in zip(gradients(twin).values(), gradients(other).values(), strict=True):
        assert_near(own, grad)
    assert all(gradient is None for gradient in gradients(net).values())

    states = torch.randn(2, 16)
    assert net.shared(states).dtype == torch.float32
    frozen = Net()
    frozen.shared.requires_grad_(False)
    put_linears(frozen, 17 * 16)
    assert type(frozen.output) is Linear
    assert type(frozen.shared) is type(frozen.last) is nn.Linear


def test_features_that_need_no_gradient_get_none():
    net = ours()
    states = torch.randn(5, 16)
    with torch.autocast("cpu", torch.bfloat16):
        net.last(states).float().sum().backward()
    torch.testing.assert_close(net.last.weight.grad, states.sum(0).expand(8, 16), atol=0.05, rtol=0.02)


def test_what_is_kept_is_given_back():
    net = ours()
    optimizer = torch.optim.AdamW(net.parameters(), lr=0.01, fused=True)
    net(IDS).backward()
    release(optimizer)
    assert not any(weight in autograd._IN_PLACE for weight in net.parameters())
    assert all(gradient is None for gradient in gradients(net).values())
    before = net(IDS)
    before.backward()
    optimizer.step()
    assert net(IDS) < before, "torch's own way again"
    put_linears(net, 1)
    assert net.shared.weight in autograd._IN_PLACE
