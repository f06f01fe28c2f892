import pytest
import torch

import selfsent
from selfsent.foreign.torch import without_compiler
from selfsent.methods import METHODS
from selfsent.models.loading import load_encoder
from selfsent.settings import Settings
from selfsent.training.schedule import make_optimizer, rate_at


def rates(steps, **settings):
    return [rate_at(step, steps, Settings(**settings)) for step in range(steps)]


FIFTHS = {0: 1.0, 499: 1.0, 500: 0.8, 1000: 0.6, 1500: 0.4, 2000: 0.2, 2599: 0.2}


@pytest.mark.parametrize(
    ("steps", "settings", "expected"),
    [
        (5, {"schedule": "constant", "warmup": 0}, dict.fromkeys(range(5), 1.0)),
        (4, {"schedule": "linear", "warmup": 0}, {0: 1, 1: 0.75, 2: 0.5, 3: 0.25}),
        (8, {"schedule": "cosine", "warmup": 0}, {0: 1, 2: 0.853553, 4: 0.5, 6: 0.146447}),
        (10, {"schedule": "constant", "warmup": 0.4}, {0: 0.2, 1: 0.4, 2: 0.6, 3: 0.8, 4: 1, 9: 1}),
        (10, {"schedule": "constant", "warmup": 4}, {0: 0.2, 1: 0.4, 2: 0.6, 3: 0.8, 4: 1, 9: 1}),
        (5, {"schedule": "linear", "warmup": 100}, {0: 1 / 101, 4: 5 / 101}),
        (2600, {"schedule": "step", "warmup": 0}, FIFTHS),
    ],
)
def test_rates(steps, settings, expected):
    found = rates(steps, **settings)
    assert {step: found[step] for step in expected} == pytest.approx(expected, abs=1e-6)


class Layer(torch.nn.Linear):
    def parameter_groups(self, settings):
        return [{"params": [self.weight]}, {"params": [self.bias], "lr": 0.5}]


def test_a_group_may_bring_its_own_rate():
    groups = make_optimizer(Layer(2, 2), Settings(learning_rate=0.1)).param_groups
    assert [group["peak"] for group in groups] == [0.1, 0.5]


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
    assert layer.weight.item() == pytest.approx(weight, rel=1e-5, abs=1e-7)


@pytest.mark.parametrize("kind", [torch.optim.AdamW, torch.optim.RMSprop, torch.optim.SGD])
def test_an_optimiser_without_compiler_takes_the_steps_of_torch_s_own(kind):
    """Also with a state that was read, and hooks around a step; no step is part of a gradient."""
    sides, hooked = [], []
    for made in (kind, without_compiler(kind)):
        weight = torch.nn.Parameter(torch.linspace(-1, 1, 6))
        optimizer = made([{"params": [weight], "lr": 0.1}])
        optimizer.register_step_post_hook(lambda *_: hooked.append(torch.is_grad_enabled()))
        for step in range(4):
            (weight**3).sum().backward()
            optimizer.step()
            optimizer.zero_grad()
            if step == 1:
                optimizer.load_state_dict(optimizer.state_dict())
        assert weight.grad is None
        sides.append(weight.detach())
    assert torch.equal(*sides)
    assert not torch.equal(sides[0], torch.linspace(-1, 1, 6))
    assert hooked == [True] * 8


def test_rows_of_a_table_step_in_proportion_to_their_length(tmp_path):
    table = load_encoder(selfsent.make_table(None, tmp_path / "table", tokenizer="bundled", size=2))
    learner = METHODS["neighbours"].learner(table, METHODS["neighbours"].options())
    start = table.table.weight.data[:4] = torch.tensor([[0.03, 0.04], [3.0, 4.0], [0.0, 0.0], [6.0, 8.0]])
    start, lengths = start.clone(), table.table.weight.norm(dim=1)
    optimizer = make_optimizer(learner, Settings(learning_rate=0.1, weight_decay=0.0, beta2=0.98))
    mean, square, expected = 0.0, 0.0, start
    for number, gradient in enumerate((0.5, -2.0, 1.0), start=1):
        table.table.weight.grad = torch.full_like(table.table.weight, gradient)
        optimizer.step()
        mean, square = 0.9 * mean + 0.1 * gradient, 0.98 * square + 0.02 * gradient**2
        step = 0.1 * (mean / (1 - 0.9**number)) / ((square / (1 - 0.98**number)) ** 0.5 + 1e-6)
        expected = expected - step * (lengths[:4] / lengths.mean())[:, None]
    assert torch.allclose(table.table.weight[:4], expected, rtol=1e-4)
    assert table.table.weight[2].tolist() == [0.0, 0.0]
