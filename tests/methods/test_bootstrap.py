import pytest
import torch

import tiny
from naive import comparisons
from selfsent.methods import get_method
from selfsent.methods.bootstrap import BatchNorm, Predictor

FAST = {"width": 2, "delete_words": 0.3}


@pytest.fixture
def made(learner_of, damaged_and_whole):
    """A learner, whose target has gone its own way if it is to, and a batch of two views."""

    def of(method, *arguments, apart=False, **options):
        learner = learner_of(method, *arguments, **{**FAST, **options})
        with torch.no_grad():
            for parameter in learner.target.parameters() if apart else ():
                parameter += 0.05 * torch.randn_like(parameter)
        return learner, [tiny.pack(ids) for ids in damaged_and_whole(learner.model.tokenizer)]

    return of


def states(module):
    return [parameter.detach().clone() for parameter in module.sentence_transformer.parameters()]


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
    assert (len(shapes), shapes[0]) == (3 * 8, (30, 3))
    assert not list(Predictor(3, 0).parameters())


@pytest.mark.parametrize("name", ["bert", "mpnet"])
def test_loss_and_gradients_equal_loops(name, made):
    learner, views = made("bootstrap", name, apart=True)
    loss = learner(views)
    online = [learner.predictor(learner.model(view)) for view in views]  # each view has its own batch statistics
    with torch.no_grad():
        targets = [learner.target(view) for view in views]
    slow = comparisons.bootstrap(*online, *targets)
    torch.testing.assert_close(loss.total / loss.count, slow, rtol=1e-4, atol=1e-5)
    wanted = [p for p in learner.parameters() if p.requires_grad and p.ndim > 1]
    tiny.assert_equal_gradients(loss.total / loss.count, slow, wanted, some_unused=True, rtol=1e-3, atol=1e-5)


def test_the_paper_s_loss_has_a_quarter_of_the_gradient(made):
    (code, views), (paper, _) = (made("bootstrap", loss=loss) for loss in ("distance", "cosine"))
    first, second = (learner(views) for learner in (code, paper))
    torch.testing.assert_close(first.total / first.count, 4 + 4 * second.total / second.count)


@pytest.mark.parametrize("temperature", [0.05, 1.0])
def test_ntxent_equals_loops_over_views(temperature, made):
    learner, views = made("ntxent", apart=True, temperature=temperature)
    loss = learner(views)
    online = torch.cat([learner.predictor(learner.model(view)) for view in views])
    targets = torch.cat([learner.target(view) for view in views])
    slow = comparisons.ntxent(online, targets, temperature)
    torch.testing.assert_close(loss.total / loss.count, slow, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("momentum", [0.0, 0.5, 1.0])
def test_the_target_begins_as_the_online_network_and_follows_it(momentum, made):
    learner, views = made("bootstrap", momentum=momentum)
    before = states(learner.target)
    assert all(map(torch.equal, before, states(learner.model)))
    assert not {p.data_ptr() for p in learner.target.parameters()} & {p.data_ptr() for p in learner.model.parameters()}
    for _ in range(2):
        step(learner, views)
        after = states(learner.target)
        for old, new, found in zip(before, states(learner.model), after, strict=True):
            torch.testing.assert_close(found, momentum * old + (1 - momentum) * new, rtol=1e-6, atol=1e-7)
        before = after
    assert all(p.grad is None and not p.requires_grad for p in learner.target.parameters())


@pytest.mark.parametrize("wanted", [False, True])
def test_dropout_in_the_target_is_an_option(wanted, made):
    learner, views = made("bootstrap", dropout=0.3, target_dropout=wanted)
    seen = []
    learner.target.register_forward_hook(lambda *call: seen.append(call[2]))
    learner(views)
    learner(views)
    assert (learner.train().target.training, torch.equal(*seen)) == (wanted, not wanted)
    assert [vectors.requires_grad for vectors in seen] == [False, False]


def test_the_predictor_has_a_rate_of_its_own(made):
    learner, _ = made("bootstrap", predictor_rate=10.0)
    groups = learner.parameter_groups(get_method("bootstrap").defaults.replace(learning_rate=1e-3))
    rates = {each: group.get("lr", 1e-3) for group in groups for each in group["params"]}
    assert {rates[each] for each in learner.predictor.parameters()} == {1e-2}
    assert {rates[each] for each in learner.model.parameters() if each.requires_grad} == {1e-3}
    assert len(rates) == sum(each.requires_grad for each in learner.parameters())
