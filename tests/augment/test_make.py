import json
import multiprocessing
import random
import time

import numpy as np
import pyarrow.parquet as pq
import pytest

import tiny
from selfsent.augment import make as module
from selfsent.augment.augmenter import Augmenter
from selfsent.augment.make import ORIGINAL, augment, with_augmentations
from selfsent.augment.synonym import Synonym
from selfsent.augment.translate import Translate
from selfsent.data.corpus import read_corpus
from selfsent.errors import AugmenterError, OutputError, SettingsError


class Shuffle(Augmenter):
    """Words in another order; it stops where it is told to."""

    name, about, unchanged = "shuffle", "words in another order", "no reason"
    stop_at = None

    def start(self):
        return self.change

    def change(self, sentences, key):
        if self.stop_at is not None and self.stop_at in sentences.rows:
            raise KeyboardInterrupt
        return [self.one(text, f"{key} {row}") for text, row in zip(sentences.texts, sentences.rows, strict=True)]

    def one(self, text, seed):
        words = text.split()
        random.Random(seed).shuffle(words)
        return " ".join(words)


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch):
    monkeypatch.setattr(Augmenter, "chunk", 32)
    monkeypatch.setattr(Shuffle, "stop_at", None)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """150 sentences in 50 documents."""
    folder = tmp_path_factory.mktemp("corpus")
    lines = tiny.make_sentences(150, words=(4, 12))
    (folder / "text.txt").write_text("\n\n".join("\n".join(lines[at : at + 3]) for at in range(0, 150, 3)))
    return read_corpus(folder / "text.txt", cache=folder / "cache")


def rows_of(path):
    return pq.read_table(path).to_pylist()


def test_columns_augmenters_and_statistics(corpus, tmp_path):
    done = []
    pairings = [[Shuffle()], [Shuffle(), Shuffle()]]
    views = augment(corpus, pairings, tmp_path / "views.parquet", seed=3, progress=tiny.counts(done))
    rows = rows_of(views.path)
    assert views.rows == len(rows) == sum(done) == 300
    assert views.made == 450
    one, two = rows[:150], rows[150:]
    assert [row["text"] for row in one] == [row["text"] for row in two] == corpus.texts()
    assert [row["document"] for row in one] == corpus.documents.tolist()
    assert all(row["view1"] == row["text"] and row["maker1"] == ORIGINAL for row in one)
    assert {row["maker1"] for row in two} | {row["maker2"] for row in rows} == {"shuffle"}
    assert sum(row["view1"] != row["view2"] for row in two) > 140
    assert sum(a["view2"] != b["view2"] for a, b in zip(one, two, strict=True)) > 140
    assert all(sorted(row["view2"].split()) == sorted(row["text"].split()) for row in rows)
    assert 0 < views.unchanged["shuffle"] < 10 / 450
    assert len(views.sample(5)) == len({row["view2"] for row in views.sample(5)}) == 5
    assert [path.name for path in tmp_path.iterdir()] == ["views.parquet"]
    assert json.loads(pq.read_schema(views.path).metadata[b"selfsent"])["seed"] == 3


def test_an_interrupted_call_goes_on_to_the_same_file(corpus, tmp_path, monkeypatch):
    augment(corpus, [[Shuffle()]], tmp_path / "whole.parquet")
    monkeypatch.setattr(Shuffle, "stop_at", 100)
    with pytest.raises(KeyboardInterrupt):
        augment(corpus, [[Shuffle()]], tmp_path / "views.parquet")
    assert not (tmp_path / "views.parquet").exists()
    parts = tmp_path / "views.parquet.parts"
    assert len(list(parts.glob("*.parquet"))) == 3
    with pytest.raises(OutputError, match=r"views.parquet.parts has chunks of other options.*overwrite=True"):
        augment(corpus, [[Shuffle()]], tmp_path / "views.parquet", seed=1)
    monkeypatch.setattr(Shuffle, "stop_at", 10)  # what is done already is not made again
    views = augment(corpus, [[Shuffle()]], tmp_path / "views.parquet")
    assert views.made == 150 - 96
    assert views.path.read_bytes() == (tmp_path / "whole.parquet").read_bytes()
    assert not parts.exists()
    with pytest.raises(OutputError, match="exists already: give `overwrite`"):
        augment(corpus, [[Shuffle()]], tmp_path / "views.parquet")
    monkeypatch.setattr(Shuffle, "stop_at", None)
    augment(corpus, [[Shuffle()]], tmp_path / "views.parquet", seed=1, overwrite=True)
    assert views.path.read_bytes() != (tmp_path / "whole.parquet").read_bytes()


def test_what_kills_left_half_written_is_in_nobodys_way(corpus, tmp_path):
    (tmp_path / "views.parquet.parts").mkdir()
    for name in ("views.parquet.parts/.plan.json.selfsent-0123abcd", ".views.parquet.selfsent-0123abcd"):
        (tmp_path / name).touch()
    augment(corpus, [[Shuffle()]], tmp_path / "views.parquet")
    assert [path.name for path in tmp_path.iterdir()] == ["views.parquet"]


def test_what_is_known_of_a_row_is_carried_along(tmp_path):
    rows = "".join(f"one sentence {n}\t{'yes' if n % 3 else 'no'}\t{n / 4}\n" for n in range(40))
    (tmp_path / "rows.tsv").write_text("text\tlabel\tscore\n" + rows)
    known = {"label_column": "label", "score_column": "score", "cache": tmp_path / "cache"}
    made = rows_of(augment(read_corpus(tmp_path / "rows.tsv", **known), [[Shuffle()]], tmp_path / "views.parquet").path)
    assert [(row["label"], row["score"]) for row in made[:3]] == [("no", 0.0), ("yes", 0.25), ("yes", 0.5)]


class Upper(Shuffle):
    """Sentences with an a in capitals; nothing random."""

    name, random = "upper", False

    def one(self, text, seed):
        return text.upper() if text.startswith("b") else text


def test_a_maker_that_changes_little_is_told(corpus, tmp_path):
    said = []
    share = np.mean([text.startswith("b") for text in corpus.texts()])
    assert 0 < share < 0.1
    augment(corpus, [[Upper()], [Shuffle()]], tmp_path / "views.parquet", progress=tiny.heard(notice=said.append))
    assert said == [f"upper changed only {share:.1%} of the texts: no reason"]


def test_the_seed_counts_where_something_is_random(corpus, tmp_path):
    def differ(*makers):
        one, other = (with_augmentations(corpus, makers, seed).directory for seed in (1, 2))
        return one != other

    assert not differ(Upper())
    assert differ(Upper(), Shuffle())


def test_views_that_another_process_is_making_are_waited_for(corpus, monkeypatch):
    context = multiprocessing.get_context("fork")
    making, done = context.Event(), context.Event()

    def make():
        with_augmentations(
            corpus, [Shuffle()], seed=9, progress=tiny.heard(count=lambda *_: (making.set(), time.sleep(0.2)))
        )
        done.set()

    other = context.Process(target=make)
    other.start()
    assert making.wait(30)
    monkeypatch.setattr(Shuffle, "stop_at", 0)  # nothing is made here
    assert with_augmentations(corpus, [Shuffle()], seed=9).input_columns == ("text", "view2")
    other.join(30)
    assert done.is_set()


def test_views_that_another_process_was_first_with(corpus, monkeypatch):
    build = module._build
    monkeypatch.setattr(module, "_build", lambda *given: (build(*given), build(*given)))
    assert with_augmentations(corpus, [Shuffle()], seed=7).input_columns == ("text", "view2")
    monkeypatch.setattr(module, "_build", lambda *given: (corpus.directory / "none").rmdir())
    with pytest.raises(FileNotFoundError):
        with_augmentations(corpus, [Shuffle()], seed=8)
    monkeypatch.setattr(module, "_build", build)
    monkeypatch.setattr(Shuffle, "stop_at", 0)  # the views are there
    assert with_augmentations(corpus, [Shuffle()], seed=8).input_columns == ("text", "view2")


def test_views_are_cleaned_and_never_empty(corpus, tmp_path, monkeypatch):
    monkeypatch.setattr(Shuffle, "one", lambda self, text, seed: "" if "a" in text else f"x\u202e\x07 \n{text} ")
    for row in rows_of(augment(corpus, [[Shuffle()]], tmp_path / "views.parquet").path):
        assert row["view2"] == row["text"] if "a" in row["text"] else f"x {row['text']}"


def test_augmenters_that_do_not_go_together(corpus, tmp_path, monkeypatch, wordnet):
    output = tmp_path / "views.parquet"
    with pytest.raises(SettingsError, match="translate:pivot=cat makes the same view twice: name another"):
        augment(corpus, [[Translate(pivot="cat"), Translate(pivot="cat")]], output)
    with pytest.raises(SettingsError, match="one or two augmenters, not 3"):
        augment(corpus, [[Shuffle()] * 3], output)
    with pytest.raises(AugmenterError, match=r"synonym.* changed none of the first 32 texts: WordNet knows English"):
        augment(corpus, [[Synonym(wordnet=str(wordnet))]], output)
    with pytest.raises(SettingsError, match=r"must end in .parquet"):
        augment(corpus, [[Shuffle()]], tmp_path / "views.csv")
    (tmp_path / "folder.parquet").mkdir()
    with pytest.raises(OutputError, match="is a directory"):
        augment(corpus, [[Shuffle()]], tmp_path / "folder.parquet")
    assert [path.name for path in tmp_path.iterdir()] == ["folder.parquet"]


def test_views_as_columns_of_a_corpus(corpus, monkeypatch):
    both = with_augmentations(corpus, [Shuffle(), Shuffle()], seed=1)
    assert both.input_columns == ("view1", "view2")
    assert both.texts() == corpus.texts()
    assert both.texts(column="view1") != both.texts(column="view2")
    assert np.array_equal(both.documents, corpus.documents)
    assert both.source == f"{corpus.source}, views by shuffle, shuffle"
    assert both.fingerprint != corpus.fingerprint
    one = with_augmentations(corpus, [Shuffle()], seed=1)
    assert one.input_columns == ("text", "view2")
    assert one.texts(column="text") == corpus.texts()
    monkeypatch.setattr(Shuffle, "stop_at", 0)  # made once
    assert with_augmentations(corpus, [Shuffle()], seed=1).fingerprint == one.fingerprint
    with pytest.raises(KeyboardInterrupt):
        with_augmentations(corpus, [Shuffle()], seed=2)
    monkeypatch.setattr(Shuffle, "stop_at", None)
    assert with_augmentations(corpus, [Shuffle()], seed=2).texts(column="view2") != one.texts(column="view2")
    assert not list(corpus.directory.glob("*.parquet*"))
    assert corpus.input_columns == corpus.text_columns
