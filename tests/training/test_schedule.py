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
