import pytest
import torch

import tiny
from naive import comparisons
from selfsent.errors import SettingsError
from selfsent.methods import get_method
from selfsent.methods.bootstrap import BatchNorm, Predictor

FAST = {"width": 2, "delete_words": 0.3}


def two_views(learner, damaged_and_whole):
    return [tiny.pack(ids) for ids in damaged_and_whole(learner.model.tokenizer)]


def states(module):
    return [parameter.detach().clone() for parameter in module.sentence_transformer.parameters()]


def same(one, other):
    return all(torch.equal(a, b) for a, b in zip(one, other, strict=True))


def move_target(learner):
    with torch.no_grad():
        for parameter in learner.target.parameters():
            parameter += 0.05 * torch.randn_like(parameter)


def step(learner, views):
    optimizer = torch.optim.SGD([p for p in learner.parameters() if p.requires_grad], lr=0.1)
    loss = learner(views)
    (loss.total / loss.count).backward()
    optimizer.step()
    learner.after_step()


def test_batch_norm_is_that_of_its_equation():
    rows = torch.randn(7, 3, generator=torch.Generator().manual_seed(0)) + 5
    torch.testing.assert_close(BatchNorm(3)(rows), comparisons.batch_norm(rows, 1e-5), rtol=1e-4, atol=1e-5)


def test_the_predictor_is_linear_norm_relu_twice_and_linear():
    torch.manual_seed(0)
    predictor, rows = Predictor(3, 2), torch.randn(5, 3)
    first, norm, _, second, other, _, last = predictor
    inner = torch.relu(comparisons.batch_norm(first(rows), 1e-5) * norm.weight + norm.bias)
    inner = torch.relu(comparisons.batch_norm(second(inner), 1e-5) * other.weight + other.bias)
    torch.testing.assert_close(predictor(rows), last(inner), rtol=1e-4, atol=1e-5)
    shapes = [p.shape for p in Predictor(3, 10, chained=3, first_only=True).parameters()]
    assert len(shapes) == 3 * 8
    assert shapes[0] == (30, 3)
    assert not list(Predictor(3, 0).parameters())


@pytest.mark.parametrize("name", ["bert", "mpnet"])
def test_loss_and_gradients_equal_loops(name, learner_of, damaged_and_whole):
    learner = learner_of("bootstrap", name, **FAST)
    move_target(learner)
    views = two_views(learner, damaged_and_whole)
    loss = learner(views)
    online = [learner.predictor(learner.model(view)) for view in views]  # each view has its own batch statistics
    with torch.no_grad():
        targets = [learner.target(view) for view in views]
    slow = comparisons.bootstrap(*online, *targets)
    torch.testing.assert_close(loss.total / loss.count, slow, rtol=1e-4, atol=1e-5)
    wanted = [p for p in learner.parameters() if p.requires_grad and p.ndim > 1]
    ours, theirs = (torch.autograd.grad(x, wanted, allow_unused=True) for x in (loss.total / loss.count, slow))
    for a, b in zip(ours, theirs, strict=True):
        assert (a is None) == (b is None)
        if a is not None:
            torch.testing.assert_close(a, b, rtol=1e-3, atol=1e-5)


def test_the_paper_s_loss_has_a_quarter_of_the_gradient(learner_of, damaged_and_whole):
    code, paper = (learner_of("bootstrap", loss=loss, **FAST) for loss in ("distance", "cosine"))
    views = two_views(code, damaged_and_whole)
    first, second = (learner(views) for learner in (code, paper))
    torch.testing.assert_close(first.total / first.count, 4 + 4 * second.total / second.count)


def test_at_first_the_target_is_the_online_network(learner_of, damaged_and_whole):
    learner = learner_of("bootstrap", **FAST, momentum=1.0)
    before = states(learner.model)
    assert same(before, states(learner.target))
    assert not {p.data_ptr() for p in learner.target.parameters()} & {p.data_ptr() for p in learner.model.parameters()}
    assert not any(p.requires_grad for p in learner.target.parameters())
    step(learner, two_views(learner, damaged_and_whole))
    assert same(before, states(learner.target)), "with momentum 1 the target never moves"
    assert not same(before, states(learner.model))
    assert all(p.grad is None for p in learner.target.parameters())


def test_momentum_zero_copies_and_half_goes_half_way(learner_of, damaged_and_whole):
    for momentum in (0.0, 0.5):
        learner = learner_of("bootstrap", **FAST, momentum=momentum)
        before = states(learner.target)
        for _ in range(2):
            step(learner, two_views(learner, damaged_and_whole))
            after = states(learner.model)
            expected = [momentum * old + (1 - momentum) * new for old, new in zip(before, after, strict=True)]
            before = states(learner.target)
            for ours, theirs in zip(before, expected, strict=True):
                torch.testing.assert_close(ours, theirs, rtol=1e-6, atol=1e-7)


def test_dropout_in_the_target_is_an_option(learner_of, damaged_and_whole):
    def targets(**options):
        learner = learner_of("bootstrap", **FAST, dropout=0.3, **options)
        seen = []
        learner.target.register_forward_hook(lambda *call: seen.append(call[2]))
        learner.forward(two_views(learner, damaged_and_whole))
        learner.forward(two_views(learner, damaged_and_whole))
        assert learner.train().target.training == options["target_dropout"]
        return [vectors.requires_grad for vectors in seen], torch.equal(*seen)

    assert targets(target_dropout=False) == ([False, False], True)
    assert targets(target_dropout=True) == ([False, False], False)


CODE = [{"width": 10}, {"chained": 3}, {"norms": "first"}, {"loss": "cosine"}]


def test_views_may_be_two_columns_and_identical_ones_are_refused(learner_of):
    method = get_method("bootstrap")
    assert [view.column for view in method.options(columns=True).views()] == [0, 1]
    assert learner_of("bootstrap", columns=True, width=2)
    with pytest.raises(SettingsError, match=r"would be identical.*--dropout 0.1"):
        learner_of("bootstrap", width=2)


def test_the_predictor_has_a_rate_of_its_own(learner_of):
    learner = learner_of("bootstrap", "bert", predictor_rate=10.0, **FAST)
    settings = get_method("bootstrap").defaults.but(learning_rate=1e-3)
    rates = {
        id(each): group.get("lr", 1e-3) for group in learner.parameter_groups(settings) for each in group["params"]
    }
    assert {rates[id(each)] for each in learner.predictor.parameters()} == {1e-2}
    assert {rates[id(each)] for each in learner.model.parameters() if each.requires_grad} == {1e-3}
    assert len(rates) == sum(each.requires_grad for each in learner.parameters())


@pytest.mark.parametrize("temperature", [0.05, 1.0])
def test_ntxent_equals_loops_over_views(temperature, learner_of, damaged_and_whole):
    learner = learner_of("ntxent", **FAST, temperature=temperature)
    move_target(learner)
    views = two_views(learner, damaged_and_whole)
    loss = learner(views)
    online = torch.cat([learner.predictor(learner.model(view)) for view in views])
    targets = torch.cat([learner.target(view) for view in views])
    slow = comparisons.ntxent(online, targets, temperature)
    torch.testing.assert_close(loss.total / loss.count, slow, rtol=1e-4, atol=1e-5)
