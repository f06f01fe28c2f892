"""What every method keeps on every architecture."""

import copy
from contextlib import suppress

import numpy as np
import pytest
import torch
from cells import BATCH, GRID, SENTENCES

import tiny
from selfsent.data.packed import Packed
from selfsent.data.targets import IGNORED
from selfsent.data.views.view import View
from selfsent.errors import BaseEncoderError, SettingsError
from selfsent.fast.lookups import put_lookups
from selfsent.models.loading import load_encoder
from selfsent.training.checkpoint import distinct, restore
from selfsent.training.schedule import make_optimizer


def cells(wanted, soon=lambda cell: cell.in_slice):
    """The cells of the grid for which `wanted` holds, as parameters of a test; those that are not `soon` are `full`."""
    chosen = [
        pytest.param(cell, marks=() if soon(cell) else pytest.mark.full, id=str(cell)) for cell in GRID if wanted(cell)
    ]
    return pytest.mark.parametrize("cell", chosen, scope="module")


every_cell = cells(lambda cell: cell.has_steps)


@pytest.fixture(scope="module")
def made(cell, base_of):
    return cell.learner(base_of(cell.architecture))


@pytest.fixture
def learner(made):
    """A learner with dropout, in training mode; every test has its own copy, with gradients added in place."""
    learner = copy.deepcopy(made)
    put_lookups(learner, large=1)
    return learner


@pytest.fixture
def batches(cell, learner):
    return cell.batches(learner, BATCH, SENTENCES)


def seen(batches, count):
    """What the learner is given of so many sentences: the views, and the labels."""
    rows = count if isinstance(count, np.ndarray) else np.arange(count)
    return batches.views_of(rows, 0), batches.labels_of(rows)


def loss_of(learner, batch, seed=0):
    """Loss per item counted; dropout, where it is on, is that of the seed."""
    torch.manual_seed(seed)
    loss = learner(*batch)
    return loss.total / loss.count


@every_cell
def test_loss_is_a_sum_and_its_count(cell, learner, batches):
    batch = seen(batches, 8)
    loss = learner.eval()(*batch)
    assert (loss.total.shape, loss.total.dtype, bool(torch.isfinite(loss.total))) == ((), torch.float32, True)
    assert 0 < loss.count <= sum(view.tokens for view in batch[0])
    assert learner(*batch) == loss, "the loss changes without dropout"


@every_cell
def test_gradients_reach_every_trained_parameter(cell, learner, batches):
    # Behind a first step, for what begins as zero keeps the gradient from what stands before it.
    optimizer, batch = make_optimizer(learner, BATCH), seen(batches, 32)
    loss_of(learner, batch).backward()
    optimizer.step()
    optimizer.zero_grad()
    learner.after_step()
    loss_of(learner, batch).backward()
    for name, parameter in learner.named_parameters():
        assert (parameter.grad is not None) == parameter.requires_grad, name
        if parameter.requires_grad:
            assert torch.isfinite(parameter.grad).all(), name
            assert parameter.grad.any(), f"{name} gets no gradient"


@every_cell
def test_loss_depends_on_every_view(cell, learner, batches):
    """Tokens change, and no target with them: for tsdae in the damaged sentences alone, while the whole ones stay."""
    views, labels = seen(batches, 8)
    before = loss_of(learner.eval(), (views, labels))
    for number, view in enumerate(views):
        changed = [*views[:number], with_other_tokens(view), *views[number + 1 :]]
        # Without dropout the loss is exactly the same for the same input, so that the least difference shows.
        assert loss_of(learner, (changed, labels)) != before, f"view {number} does not matter"


def with_other_tokens(view):
    """The batch with other tokens in place of those that are not to be predicted; the first and the last stay."""
    ids, ends = view.given_ids.copy(), np.cumsum(view.given_lengths)
    free = np.ones(len(ids), bool) if view.given_targets is None else view.given_targets == IGNORED
    free[ends - view.given_lengths] = free[ends - 1] = False
    ids[free] = 10 + (ids[free] + 7) % (tiny.VOCABULARY - 10)
    kept = {"vectors": view.vectors, "given_types": view.given_types, "given_documents": view.given_documents}
    return Packed(ids, view.given_lengths, view.given_targets, **kept)


def trains_encoder(cell):
    """Whether sentences go through a network with dropout in every step, instead of once before the first."""
    still = not cell.has_steps or cell.architecture == tiny.STATIC
    return not still and not any(view.precomputed for view in cell.options().views())


@cells(trains_encoder)
def test_no_sentence_is_seen_twice_in_the_same_way(cell, learner, batches, base_of):
    models = [learner.model]
    if len(batches.views) > 1 or batches.views[0].noise:  # a single look is compared with nothing
        with suppress(SettingsError):  # the views would be identical
            models.append(cell.learner(base_of(cell.architecture), dropout=0.0).model)
    batches.views = [*batches.views, View()][:2]
    for model in models:
        torch.manual_seed(0)
        with torch.no_grad():
            first, second = (model(view) for view in batches.views_of(np.arange(32), 0))
        assert (first - second).abs().amax(1).median() > 1e-3


@cells(lambda cell: cell.has_steps, soon=lambda cell: cell.in_slice and cell.architecture == "bert")
def test_a_few_sentences_can_be_learned_by_heart(cell, base_of):
    # Two equal encoders find each other's sentences too easily.
    learner = cell.learner(base_of(cell.architecture), 0.3 if cell.method == "ct-inbatch" else 0.1)
    batches = cell.batches(learner, cell.settings, SENTENCES)
    everything = seen(batches, batches.rows)
    before = loss_of(learner, everything).item()
    optimizer = make_optimizer(learner, cell.settings)
    for step in range(cell.settings.steps):
        loss_of(learner, seen(batches, batches.rows_at(step)), seed=step).backward()
        torch.nn.utils.clip_grad_norm_(learner.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        learner.after_step()
    assert loss_of(learner, everything).item() < 0.85 * before


@every_cell
def test_bfloat16_is_near_float32(cell, learner, batches):
    batch = seen(batches, 6)
    exact = loss_of(learner.eval(), batch)
    with torch.autocast("cpu", torch.bfloat16):
        low = loss_of(learner, batch)
    assert low.dtype == torch.float32
    torch.testing.assert_close(low, exact, atol=0.1, rtol=0.05)
    gradients = []
    for loss in (low, exact):
        learner.zero_grad()
        loss.backward()
        gradients.append(torch.cat([p.grad.flatten().float() for p in learner.parameters() if p.grad is not None]))
    assert torch.nn.functional.cosine_similarity(*gradients, dim=0) > 0.9


def kept_and_brought_back(learner, batch):
    """The state of a learner, which is brought back after a step: its loss is the same again."""
    kept = {name: tensor.clone() for name, tensor in distinct(learner).items()}
    before = loss_of(learner, batch)
    optimizer = make_optimizer(learner, BATCH)
    before.backward()
    optimizer.step()
    learner.after_step()
    assert loss_of(learner, batch) != before
    restore(learner, kept)
    assert loss_of(learner, batch) == before
    return kept


@every_cell
def test_state_can_be_kept_and_brought_back(cell, learner, batches):
    assert kept_and_brought_back(learner, seen(batches, 16))


@cells(lambda cell: cell.described.closed_form and not cell.refusal)
def test_a_fit_changes_the_vectors_and_is_saved_with_them(cell, learner, batches, tmp_path):
    (view,) = batches.views_of(np.arange(16), 0)
    with torch.no_grad():
        before = learner.eval().model(view)
        learner.prepare([batches.views_of(batches.rows, 0)])
        after = learner.model(view)
        learner.model.save(tmp_path / "model")
        again = load_encoder(tmp_path / "model").eval()(view)
    assert torch.isfinite(after).all()
    assert after.shape != before.shape or (after - before).abs().max() > 1e-2
    torch.testing.assert_close(again, after, atol=1e-4, rtol=1e-4)


@cells(lambda cell: cell.refusal)
def test_what_cannot_be_is_refused(cell, base_of):
    with pytest.raises(BaseEncoderError) as caught:
        cell.learner(base_of(cell.architecture))
    told = cell.architecture == tiny.STATIC or cell.method == "sent2vec-bigrams"
    reason = cell.refusal.removeprefix("it is a ") if told else cell.architecture
    assert reason in str(caught.value)
    assert "\n" not in str(caught.value)
