import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from transformers import AutoModelForMaskedLM, AutoTokenizer

import selfsent
import tiny
from naive import cooccurrence as naive
from selfsent.data.views.tokens import Tokens
from selfsent.errors import Interrupted, SettingsError
from selfsent.files import read_json
from selfsent.models.loading import load_encoder
from selfsent.pretraining import counts
from selfsent.pretraining.pretrain import pretrain
from selfsent.training.loop import Loop
from selfsent.training.run_directory import RunDirectory

SHAPE = {"layers": 1, "hidden_size": 32, "heads": 2, "feed_forward": 32}
TINY = {**SHAPE, "vocabulary_size": 200, "max_length": 24, "batch_size": 4, "hold_out": 0}


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    """Sentences with some order in them: who does what, where."""
    generator = np.random.default_rng(0)
    who, what, where = (
        ["the cat", "a dog", "my aunt", "the old man", "one child", "their teacher"],
        ["sleeps", "reads", "sings", "waits", "runs", "paints"],
        ["in the garden", "near the river", "at home", "on the roof", "by the sea", "under a tree"],
    )
    lines = []
    for number in range(600):
        a, b, c = (generator.choice(part) for part in (who, what, where))
        lines.append(f"{a} {b} {c} number {number}." + ("\n" if number % 6 == 5 else ""))
    path = tmp_path_factory.mktemp("text") / "text.txt"
    path.write_text("\n".join(lines))
    return path


@pytest.fixture(scope="module")
def run(text, tmp_path_factory):
    """A run of twelve steps."""
    return pretrain(text, tmp_path_factory.mktemp("run") / "whole", steps=12, quiet=True, **TINY)


def weights(run):
    return load_file(run.directory / "model" / "model.safetensors")


def asked(run):
    return read_json(run.directory / "run.json")["config"]


def test_a_run_that_was_interrupted_ends_with_the_same_weights(run, text, tmp_path, monkeypatch):
    advance = Loop.advance

    def interrupted(loop, step):
        if step == 5:
            loop.stopped.set()
        return advance(loop, step)

    with monkeypatch.context() as patched:
        patched.setattr(Loop, "advance", interrupted)
        with pytest.raises(Interrupted):
            pretrain(text, tmp_path / "run", steps=12, **TINY)
    again = pretrain(text, tmp_path / "run", steps=12, resume=True, **TINY)
    cut, wanted = weights(again), weights(run)
    assert cut.keys() == wanted.keys()
    assert [name for name in wanted if not torch.equal(cut[name], wanted[name])] == []
    (tmp_path / "run" / ".model.selfsent-0123abcd").mkdir()  # left by a kill while the model was published
    pretrain(text, tmp_path / "run", steps=12, resume=True, **TINY)
    assert not list((tmp_path / "run").glob(".model.*"))


def test_starting_weights_are_the_same_in_every_cache(text, tmp_path, monkeypatch):
    made = []
    for name in ("one", "other"):
        monkeypatch.setenv("SELFSENT_CACHE", str(tmp_path / name / "cache"))
        torch.manual_seed(len(made))  # which does not matter
        made.append(weights(pretrain(text, tmp_path / name / "run", steps=1, quiet=True, **TINY)))
    assert made[0].keys() == made[1].keys()
    assert all(torch.equal(made[0][name], made[1][name]) for name in made[0])


def test_the_model_loads_everywhere(run):
    directory = run.directory / "model"
    model, found = AutoModelForMaskedLM.from_pretrained(directory, output_loading_info=True)
    assert not found["missing_keys"]
    assert model.config.hidden_dropout_prob == 0.1
    tokenizer = AutoTokenizer.from_pretrained(directory)
    assert tokenizer.tokenize("The CAT sleeps") == tokenizer.tokenize("the cat sleeps")
    assert "[UNK]" not in tokenizer.tokenize("my aunt paints under a tree")
    assert load_encoder(directory).language_model_head is not None
    tuned = selfsent.train(
        ["one sentence", "another one", "a third"], "simcse", directory, run.directory / "t", steps=1
    )
    assert tuned.model.encode(["the cat"]).shape == (1, 32)


def test_embeddings_of_counts_move_little(run):
    """They are good for sentences as they are, and predicting words makes them worse."""
    assert asked(run)["options"]["embedding_rate"] == 0.05


def test_neighbours_are_read_together_where_there_are_documents(run, tmp_path):
    assert asked(run)["options"]["span"] == 8
    lines, settings = tiny.make_sentences(150), {name: value for name, value in TINY.items() if name != "batch_size"}
    alone = asked(pretrain(lines, tmp_path / "run", steps=1, quiet=True, **settings))
    assert (alone["options"]["span"], alone["settings"]["batch_size"]) == (1, 128)
    with pytest.raises(SettingsError, match="the corpus has no documents"):
        pretrain(lines, tmp_path / "other", steps=1, span=2, quiet=True, **settings)


def test_counts_predict_before_the_first_step(text, tmp_path):
    shape = {"hidden_size": 128, "heads": 4, "learning_rate": 1e-12, "batch_size": 256}
    made = pretrain(text, tmp_path / "run", steps=1, quiet=True, **{**TINY, **shape})
    model = load_encoder(made.directory / "model")
    last = RunDirectory(made.directory).metrics()[-1]
    assert last["loss"] < np.log(model.vocabulary_size) - 0.7  # what random weights lose


class Table:
    """Tokens of given sentences, as a table holds them."""

    def __init__(self, sentences):
        self.offsets = np.cumsum([0, *map(len, sentences)])
        self.ids = np.concatenate([np.asarray(sentence, np.int64) for sentence in sentences])

    def __len__(self):
        return len(self.offsets) - 1

    def lengths(self, rows):
        return self.offsets[rows + 1] - self.offsets[rows]

    def __getitem__(self, rows):
        index = np.concatenate([np.arange(self.offsets[row], self.offsets[row + 1]) for row in rows])
        return Tokens(self.ids[index], self.lengths(rows), np.ones(len(index), bool), rows)


def test_counts_and_information_equal_the_loops():
    generator = np.random.default_rng(1)
    sentences = [generator.integers(0, 12, size).tolist() for size in (1, 3, 7, 9, 2, 8)]
    wanted = naive.count_pairs(sentences, 12, 3)
    found, frequency = counts.count_pairs(Table(sentences), 12, window=3, chunk=10)
    np.testing.assert_allclose(found.toarray(), wanted, rtol=1e-6)
    assert frequency.tolist() == np.bincount(np.concatenate(sentences), minlength=12).tolist()
    np.testing.assert_allclose(
        counts.positive_information(found).toarray(), naive.positive_information(wanted), atol=1e-5
    )


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"vocabulary_size": 40}, "vocabulary_size is 40"),
        ({"heads": 3}, "heads=3 must share"),
        ({"heads": 1}, "give heads=2 or more"),
        ({"no_such": 1}, "no option 'no_such'"),
        ({"tokenizer": "bundled-raw"}, "leave out `vocabulary_size`"),
    ],
)
def test_what_cannot_be_is_refused_and_leaves_nothing(text, tmp_path, changes, said):
    with pytest.raises(SettingsError, match=said):
        pretrain(text, tmp_path / "run", steps=1, progress=tiny.heard(), **{**TINY, **changes})
    assert list(tmp_path.iterdir()) == []
