"""A run that trains only the rows of a table that its texts hold ends as one that trains all of them."""

import json

import pytest
import torch
from safetensors.torch import load_file

import selfsent
from selfsent.models.loading import load_encoder
from selfsent.progress import Progress
from selfsent.training import loop as loop_module

PAIRS = [(f"room {n} is {'cold' if n % 2 else 'warm'}", f"the heating of {n} was {'lost' if n % 2 else 'mended'}")
         for n in range(40)]  # fmt: skip
RUN = {"steps": 6, "batch_size": 8, "hold_out": 0, "checkpoint_every": 2, "quiet": True, "learning_rate": 0.02}
EVERY_ROW = 27_625


class Killed(Progress):
    def step(self, step, steps, figures):
        if step == 3:
            raise KeyboardInterrupt


@pytest.fixture
def trained(tmp_path, monkeypatch):
    """Trains as pairs: by the rows in use or by all of them; returns losses, weights and moments of a checkpoint."""
    seen = []
    found, save = loop_module.rows_in_use, loop_module.save_checkpoint
    monkeypatch.setattr(loop_module, "rows_in_use", lambda *given: seen.append(found(*given)) or seen[-1])

    def saved(directory, *given):
        save(directory, *given)
        (tmp_path / "moments.safetensors").write_bytes((directory / "optimizer.safetensors").read_bytes())

    monkeypatch.setattr(loop_module, "save_checkpoint", saved)

    def train(name, most, **changes):
        monkeypatch.setattr(loop_module, "MOST_ROWS", most)
        given = {**RUN, "method": "mnrl", **changes}
        if given["method"] == "mnrl":
            (tmp_path / "pairs.jsonl").write_text("".join(json.dumps({"a": a, "b": b}) + "\n" for a, b in PAIRS))
            corpus = selfsent.read_corpus(tmp_path / "pairs.jsonl", text_columns=["a", "b"], cache=tmp_path / "cache")
        else:
            corpus = [text for pair in PAIRS for text in pair]
        selfsent.train(corpus, base="bundled", output=tmp_path / name, **given)
        log = map(json.loads, (tmp_path / name / "metrics.jsonl").read_text().splitlines())
        losses = [row["loss"] for row in log if "loss" in row]
        weights = load_file(tmp_path / name / "model" / "model.safetensors")["embedding.weight"]
        moments = load_file(tmp_path / "moments.safetensors")
        return losses, weights, moments

    train.seen = seen
    return train


def same(one, other):
    return one[0] == other[0] and torch.equal(one[1], other[1]) and all(
        torch.equal(each, other[2][name]) for name, each in one[2].items()
    )  # fmt: skip


@pytest.mark.parametrize(
    "changes",
    [{}, {"clip": 0.01, "matryoshka": [64]}, {"mini_batch_size": 4, "precision": "bfloat16"}, {"method": "ct"}],
    ids=str,
)
def test_losses_weights_and_checkpoints_are_those_of_the_whole_table(trained, changes):
    some, every = trained("some", 0.8, **changes), trained("all", 0.0, **changes)
    few, none = trained.seen
    assert 20 < len(few.used) < 100
    assert none is None
    assert some[2]["0.exp_avg"].shape == (EVERY_ROW, 256)
    assert same(some, every)
    still = load_encoder("bundled").table.weight.detach()
    moved = (some[1] != still).any(dim=1)
    assert 20 < int(moved.sum()) <= len(few.used)
    assert not moved[few.place < 0].any()


def test_a_killed_run_goes_on_whichever_way_it_began(trained):
    whole = trained("whole", 0.0)
    for name, first, then in (("a", 0.8, 0.8), ("b", 0.0, 0.8), ("c", 0.8, 0.0)):
        with pytest.raises(KeyboardInterrupt):
            trained(name, first, progress=Killed(), quiet=False)
        assert same(trained(name, then, resume=True), whole)


@pytest.mark.parametrize(
    "changes", [{"weight_decay": 0.1}, {"method": "sent2vec"}, {"method": "simcse", "delete_words": 0.3}], ids=str
)
def test_what_moves_other_rows_trains_all_of_them(trained, changes):
    trained("run", 0.8, **changes)
    assert trained.seen == [None]
