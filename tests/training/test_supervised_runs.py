"""Whole runs of the methods with labels, from a file of pairs: resumed exactly, and saved with all they learned."""

import csv
import hashlib
import json
from pathlib import Path

import pytest

import selfsent
import tiny
from selfsent.data.corpus import read_corpus
from selfsent.models.bases import weights_digest


@pytest.fixture(scope="module")
def corpus_of(tmp_path_factory):
    """Rows with these text columns; the text `same` stands in every other row."""
    folder = tmp_path_factory.mktemp("triples")
    texts = tiny.make_sentences(320, seed=8)
    with (folder / "triples.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["a", "b", "c", "same", "label", "score"])
        for row in range(80):
            same = texts[-1] if row % 2 else texts[240 + row]
            writer.writerow([*texts[3 * row : 3 * row + 3], same, "xyz"[row % 3], row % 6])

    def of(*columns):
        return read_corpus(
            folder / "triples.csv",
            text_columns=columns,
            label_column="label",
            score_column="score",
            cache=folder / "cache",
        )

    return of


def weights(run):
    files = (file for file in run.rglob("*.safetensors"))
    return {str(file.relative_to(run)): hashlib.sha256(file.read_bytes()).hexdigest() for file in files}


def test_the_best_of_a_run_is_kept(corpus_of, base_of, tmp_path, monkeypatch):
    from safetensors.torch import load_file

    from selfsent import pipeline

    scores = iter([3.0, 9.0, 1.0, 2.0])
    monkeypatch.setattr(pipeline, "dev_scorer", lambda *given: lambda model: next(scores))
    monkeypatch.setattr(pipeline, "check_dev", lambda *given: None)
    options = {"steps": 4, "batch_size": 8, "max_length": 32, "learning_rate": 1e-2, "checkpoint_every": 1}
    options |= {"keep": 4, "dev": "made up", "dev_every": 1, "keep_best": True}
    base = base_of("bert", initializer_range=0.5)
    selfsent.train(corpus_of("a", "b"), "softmax", base, tmp_path / "run", **options)
    second = load_file(tmp_path / "run" / "checkpoints" / "step-00000002" / "learner.safetensors")
    kept = load_file(tmp_path / "run" / "model" / "model.safetensors")
    name = "embeddings.word_embeddings.weight"
    (learned,) = (weight for each, weight in second.items() if each.endswith(name) and "model" in each)
    assert kept[name].equal(learned)


def test_a_second_run_by_the_same_teachers_takes_their_vectors_as_they_are(corpus_of, base_of, tmp_path, monkeypatch):
    corpus, base = corpus_of("a"), base_of("bert", initializer_range=0.5)
    teachers = [str(base), str(base_of("modernbert", hidden_size=48))]
    options = {"steps": 3, "batch_size": 8, "max_length": 32, "teacher": ",".join(teachers)}
    told = []
    heard = tiny.heard(count=lambda what, done, total: told.append((what, done, total)))
    first = selfsent.train(corpus, "distil", base, tmp_path / "first", progress=heard, **options)
    assert {total for what, _, total in told if what == "encoding"} == {2 * len(corpus)}
    assert sum(done for what, done, _ in told if what == "encoding") == 2 * len(corpus)
    asked = json.loads((first.directory / "run.json").read_text())["config"]
    assert asked["teacher_digest"] == ",".join(weights_digest(Path(each)) for each in teachers)
    monkeypatch.setattr("selfsent.training.teacher_vectors.encode", lambda *given: pytest.fail("encoded again"))
    selfsent.train(corpus, "distil", base, tmp_path / "second", **options)
    assert weights(tmp_path / "first") == weights(tmp_path / "second")


def test_tsdae_after_labels_is_warned_of_whatever_came_between(corpus_of, base_of, tmp_path):
    def said(columns, method, base, output):
        lines, short = [], {"steps": 1, "batch_size": 8, "max_length": 32}
        heard = tiny.heard(notice=lines.append)
        selfsent.train(corpus_of(*columns), method, base, tmp_path / output, progress=heard, **short)
        return any("was trained by cosine before: tsdae after labels made models worse" in line for line in lines)

    assert not said("ab", "cosine", base_of("bert"), "labels")
    assert not said("a", "simcse", tmp_path / "labels", "apart")
    assert said("a", "tsdae", tmp_path / "apart", "words")
