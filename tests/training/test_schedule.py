import pytest
import torch

from selfsent.settings import Settings
from selfsent.training.schedule import make_optimizer, rate_at


def rates(steps, **settings):
    return [rate_at(step, steps, Settings(**settings)) for step in range(steps)]


def test_a_constant_rate():
    assert rates(5, schedule="constant", warmup=0) == [1, 1, 1, 1, 1]


def test_a_linear_rate_falls_to_its_last_share():
    assert rates(4, schedule="linear", warmup=0) == [1, 0.75, 0.5, 0.25]


def test_a_cosine_rate_is_half_in_the_middle():
    found = rates(8, schedule="cosine", warmup=0)
    assert found[0] == 1
    assert found[4] == pytest.approx(0.5)
    assert found == sorted(found, reverse=True)


@pytest.mark.parametrize("warmup", [0.4, 4])
def test_warm_up_as_a_share_and_as_steps(warmup):
    found = rates(10, schedule="constant", warmup=warmup)
    assert found[:4] == pytest.approx([0.2, 0.4, 0.6, 0.8])
    assert found[4:] == [1] * 6


def test_a_warm_up_longer_than_the_run_never_arrives():
    assert max(rates(5, schedule="linear", warmup=100)) < 0.06


class Layer(torch.nn.Linear):
    def parameter_groups(self, settings):
        return [{"params": [self.weight]}, {"params": [self.bias], "lr": 0.5}]


def test_a_group_may_bring_its_own_rate():
    groups = make_optimizer(Layer(2, 2), Settings(learning_rate=0.1)).param_groups
    assert [group["peak"] for group in groups] == [0.1, 0.5]


def test_stairs_go_down_by_a_fifth_every_500_steps_to_a_fifth():
    found = rates(2600, schedule="step", warmup=0)
    assert [found[step] * 1e-5 for step in (0, 499, 500, 1000, 1500, 2000, 2599)] == pytest.approx(
        [1e-5, 1e-5, 8e-6, 6e-6, 4e-6, 2e-6, 2e-6]
    )


def test_sgd_goes_down_the_gradient():
    layer = torch.nn.Linear(2, 1, bias=False)
    layer.parameter_groups = lambda settings: [{"params": [layer.weight]}]
    optimizer = make_optimizer(layer, Settings(learning_rate=0.1, optimizer="sgd"))
    before = layer.weight.detach().clone()
    layer(torch.tensor([[1.0, -2.0]])).sum().backward()
    optimizer.step()
    torch.testing.assert_close(layer.weight.detach(), before - 0.1 * torch.tensor([[1.0, -2.0]]))


def test_rmsprop_is_that_of_its_equation():
    layer = Layer(1, 1, bias=False)
    layer.parameter_groups = lambda settings: [{"params": [layer.weight]}]
    optimizer = make_optimizer(layer, Settings(learning_rate=0.1, optimizer="rmsprop", alpha=0.9, epsilon=1e-3))
    weight, square = layer.weight.item(), 0.0
    for gradient in (0.5, -2.0, 1.0):
        layer.weight.grad = torch.full_like(layer.weight, gradient)
        optimizer.step()
        square = 0.9 * square + 0.1 * gradient**2
        weight -= 0.1 * gradient / (square**0.5 + 1e-3)
    assert layer.weight.item() == pytest.approx(weight, rel=1e-5)
