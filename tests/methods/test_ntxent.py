import math

import pytest
import torch

import tiny
from naive import comparisons
from selfsent.methods import get_method

FAST = {"width": 2, "delete_words": 0.3}


@pytest.mark.parametrize("temperature", [0.05, 1.0])
def test_loss_equals_loops_over_views(temperature, learner_of, damaged_and_whole):
    learner = learner_of("ntxent", **FAST, temperature=temperature)
    with torch.no_grad():
        for parameter in learner.target.parameters():
            parameter += 0.05 * torch.randn_like(parameter)
    views = [tiny.pack(ids) for ids in damaged_and_whole(learner.model.tokenizer)]
    loss = learner(views)
    online = torch.cat([learner.predictor(learner.model(view)) for view in views])
    targets = torch.cat([learner.target(view) for view in views])
    slow = comparisons.ntxent(online, targets, temperature)
    torch.testing.assert_close(loss.total / loss.count, slow, rtol=1e-4, atol=1e-5)


def test_one_positive_and_twice_as_many_negatives_as_other_sentences(learner_of):
    learner = learner_of("ntxent", **FAST)
    ones, views = torch.ones(5, 3), [tiny.pack([[2, 5 + 5 * view + row, 3] for row in range(5)]) for view in (0, 1)]
    loss = learner.compare(views, ones, ones, ones, ones)
    assert loss.total.item() / loss.count == pytest.approx(math.log(1 + 2 * 4), rel=1e-5)


def test_everything_but_the_loss_is_shared(learner_of):
    bootstrap, ntxent = get_method("bootstrap"), get_method("ntxent")
    assert (ntxent.published, ntxent.pooling, ntxent.views) == (bootstrap.published, bootstrap.pooling, bootstrap.views)
    one, other = learner_of("bootstrap", **FAST), learner_of("ntxent", **FAST)
    assert [name for name, _ in one.named_parameters()] == [name for name, _ in other.named_parameters()]
