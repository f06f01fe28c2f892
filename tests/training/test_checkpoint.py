import pytest
import torch

import tiny
from selfsent.errors import TrainingError
from selfsent.files import sweep_half_written
from selfsent.training.checkpoint import BestCheckpoint, load_checkpoint, progress_in, restore, save_checkpoint


class Learner(torch.nn.Module):
    """Two layers with tied weights, and a buffer."""

    def __init__(self):
        super().__init__()
        self.first, self.last = torch.nn.Linear(4, 4), torch.nn.Linear(4, 4)
        self.last.weight = self.first.weight
        self.register_buffer("average", torch.zeros(4))

    def forward(self, x):
        return self.last(self.first(x))


def trained(steps=3, learner=None, optimizer=None):
    torch.manual_seed(0)
    learner = learner or Learner()
    optimizer = optimizer or torch.optim.AdamW(learner.parameters(), fused=True)
    for _ in range(steps):
        learner(torch.randn(5, 4)).square().sum().backward()
        optimizer.step()
        optimizer.zero_grad()
        learner.average += 1
    return learner, optimizer


def same(one, other):
    return all(torch.equal(a, b) for a, b in zip(one.state_dict().values(), other.state_dict().values(), strict=True))


def test_learner_optimiser_and_progress_come_back(tmp_path):
    learner, optimizer = trained()
    save_checkpoint(tmp_path / "a", learner, optimizer, {"step": 3, "best": None})
    fresh = Learner()
    fresh_optimizer = torch.optim.AdamW(fresh.parameters(), fused=True)
    assert load_checkpoint(tmp_path / "a", fresh, fresh_optimizer).items() >= {"step": 3, "best": None}.items()
    assert same(learner, fresh)
    assert fresh.last.weight is fresh.first.weight
    trained(2, learner, optimizer)
    trained(2, fresh, fresh_optimizer)
    assert same(learner, fresh)


def test_a_checkpoint_of_another_learner_does_not_fit():
    with pytest.raises(ValueError, match="does not fit the learner: bias"):
        restore(torch.nn.Linear(2, 2), torch.nn.Linear(2, 2, bias=False).state_dict())


@pytest.mark.parametrize("file", ["learner.safetensors", "optimizer.safetensors", "progress.json"])
def test_cut_short_changed_or_absent_is_not_whole(tmp_path, file):
    save_checkpoint(tmp_path / "a", *trained(), {"step": 3})
    assert progress_in(tmp_path / "a")["step"] == 3
    content = (tmp_path / "a" / file).read_bytes()
    for damaged in (content[:-1], b"", content[:-2] + b"x" + content[-1:]):
        (tmp_path / "a" / file).write_bytes(damaged)
        assert progress_in(tmp_path / "a") == {}
    (tmp_path / "a" / file).unlink()
    assert progress_in(tmp_path / "a") == {}


def test_nothing_is_no_checkpoint(tmp_path):
    assert progress_in(tmp_path) == {}
    (tmp_path / "progress.json").write_text('{"step": 3}')
    assert progress_in(tmp_path) == {}


@pytest.fixture
def kept(tmp_path):
    """The best of two scores, and the learner as it was then."""
    learner, best = torch.nn.Linear(3, 2), BestCheckpoint(tmp_path, keep=True)
    best.offer(50.0, 4, learner)
    weights = learner.weight.detach().clone()
    with torch.no_grad():
        learner.weight += 1
    best.offer(40.0, 8, learner)
    return best, learner, weights


def test_the_best_is_put_back(kept):
    best, learner, weights = kept
    assert best.put_back(learner) == {"step": 4, "score": 50.0}
    assert torch.equal(learner.weight, weights)


@pytest.mark.parametrize("name", ["learner.safetensors", "progress.json"])
def test_a_damaged_one_is_named_and_not_used(kept, name):
    best, learner, weights = kept
    file = best.directory / name
    tiny.flip_bit(file)
    with pytest.raises(TrainingError, match=r"best is damaged, and the model of the best score is lost: remove it"):
        best.put_back(learner)
    assert not torch.equal(learner.weight, weights)


def test_one_that_a_kill_left_between_two_renames_is_put_back(kept):
    best, learner, weights = kept
    best.directory.rename(best.directory.with_name(".best.selfsent-0123abcd.old"))
    sweep_half_written(best.directory.parent)
    assert best.put_back(learner)["step"] == 4
    assert torch.equal(learner.weight, weights)


@pytest.mark.parametrize(
    ("keep", "score", "was", "begins"),
    [
        (True, 50.0, "stsb-dev", 50.0),
        (True, 45.0, "stsb-dev", 45.0),  # a better one was kept behind the checkpoint, and comes again
        (True, 60.0, "stsb-dev", float("-inf")),
        (True, 50.0, "context", float("-inf")),
        (False, 60.0, "stsb-dev", 60.0),
        (False, 60.0, "context", float("-inf")),
        (True, None, "stsb-dev", float("-inf")),
    ],
)
def test_going_on_trusts_only_what_was_kept(kept, keep, score, was, begins):
    directory = kept[0].directory.parent
    best = BestCheckpoint(directory, keep)
    best.resume(score, "stsb-dev", was)
    assert best.score == begins
