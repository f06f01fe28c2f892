import pytest
import torch
from torch import nn

from selfsent.errors import TrainingError
from selfsent.training.best import Best


@pytest.fixture
def kept(tmp_path):
    """The best of two scores, and the learner as it was then."""
    learner, best = nn.Linear(3, 2), Best(tmp_path, keep=True)
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


@pytest.mark.parametrize("name", ["learner.safetensors", "best.json"])
def test_a_damaged_one_is_named_and_not_used(kept, name):
    best, learner, weights = kept
    file = best.directory / name
    data = bytearray(file.read_bytes())
    data[-3] ^= 1
    file.write_bytes(bytes(data))
    with pytest.raises(TrainingError, match=r"best is damaged, and the model of the best score is lost: remove it"):
        best.put_back(learner)
    assert not torch.equal(learner.weight, weights)


def test_one_that_a_kill_left_between_two_renames_is_put_back(kept):
    from selfsent.files import sweep_half_written

    best, learner, weights = kept
    best.directory.rename(best.directory.with_name(".best.selfsent-0123abcd.old"))
    sweep_half_written(best.directory.parent)
    assert best.put_back(learner)["step"] == 4
    assert torch.equal(learner.weight, weights)


@pytest.mark.parametrize(
    ("keep", "score", "was", "begins", "said"),
    [
        (True, 50.0, "stsb-dev", 50.0, None),
        (True, 45.0, "stsb-dev", 45.0, None),  # a better one was kept behind the checkpoint, and comes again
        (True, 60.0, "stsb-dev", float("-inf"), "no earlier best model was kept"),
        (True, 50.0, "context", float("-inf"), "was chosen by context"),
        (False, 60.0, "stsb-dev", 60.0, None),
        (False, 60.0, "context", float("-inf"), None),
        (True, None, "stsb-dev", float("-inf"), None),
    ],
)
def test_going_on_trusts_only_what_was_kept(kept, keep, score, was, begins, said):
    directory = kept[0].directory.parent
    best = Best(directory, keep)
    line = best.go_on(score, "stsb-dev", was)
    assert best.score == begins
    assert (line is None) if said is None else (said in line)
