"""Adapters of query vectors."""

import numpy as np
import pytest
from safetensors.numpy import load_file

import tiny
from selfsent.data.vector_files import unit
from selfsent.errors import DataError
from selfsent.evaluation.tasks.beir import read_task
from selfsent.evaluation.tasks.retrieval import RetrievalTask
from selfsent.exam.adapt import Adapter, adapt, of_files
from selfsent.models.texts_read import TextsRead
from selfsent.scorers.scorer import Scorer

COUNT, SIZE = 240, 16
RNG = np.random.default_rng(0)
HIDDEN = unit(RNG.normal(size=(COUNT, SIZE)).astype(np.float32))
"""What documents are about; query number n asks for document n."""
ANSWERS = [(f"asked{n}", f"text{n}", 1) for n in range(COUNT)]
JUDGED = {"dev": ANSWERS[::2], "test": ANSWERS[1::2]}


def write_set(folder):
    """Queries and documents without a shared word, in BEIR's layout."""
    documents, queries = ({f"{word}{n}": f"{word}{n}" for n in range(COUNT)} for word in ("text", "asked"))
    return tiny.write_search_set(folder, documents, queries, JUDGED)


@pytest.fixture(scope="module")
def searched(tmp_path_factory):
    folder = write_set(tmp_path_factory.mktemp("set") / "own")
    return folder, read_task(folder, "adapted", "dev"), read_task(folder, "adapted", "test")


def noisy(rows, much=0.4):
    return (rows + much * np.random.default_rng(1).normal(size=rows.shape) / SIZE**0.5).astype(np.float32)


def turned(rows):
    """Queries in other directions, which only their answers can tell."""
    turn = np.linalg.qr(np.random.default_rng(2).normal(size=(SIZE, SIZE)))[0]
    return (0.5 * noisy(rows) + noisy(rows) @ turn).astype(np.float32)


def swamped(rows):
    """One direction that says nothing is wide in queries and documents."""
    found = rows.copy()
    found[:, 0] = 4 * np.random.default_rng(len(rows)).normal(size=len(rows))
    return found


@pytest.mark.parametrize(
    ("documents", "queries", "chosen"),
    [
        (HIDDEN, turned(HIDDEN), "regression"),
        (swamped(HIDDEN), swamped(noisy(HIDDEN[::-1], 0.2)[::-1] + 0), "directions damped"),
        (HIDDEN, noisy(HIDDEN), "identity"),
        (HIDDEN, noisy(np.roll(HIDDEN, 7, axis=0)), "identity"),
    ],
)
def test_the_map_that_helps_is_found_and_no_other(searched, documents, queries, chosen):
    folder, dev, test = searched
    if chosen == "directions damped":
        queries = queries.copy()
        queries[:, 0] = 4 * np.random.default_rng(9).normal(size=COUNT)
    found = adapt(of_files(folder, documents, queries, "api"), dev, test, lexical_weight=0.0)
    assert chosen in found.adapter.name
    if chosen == "identity":
        assert found.line.startswith("Keep the vectors as they are")
        assert found.after == found.before
    else:
        assert min(less.low for less in found.gains) > 0
        assert found.adapter.name in found.line


def test_an_encoder_that_has_read_the_answers_is_told(searched):
    folder, dev, test = searched
    encoder = of_files(folder, HIDDEN, turned(HIDDEN), "api")
    fair = adapt(encoder, dev, test, lexical_weight=0.0)
    encoder.texts_read = TextsRead.of_texts(test.documents)

    found = adapt(encoder, dev, test, lexical_weight=0.0)

    assert "has read" not in fair.line
    assert f"has read {COUNT // 2} of the {COUNT // 2} texts asked about" in found.line


def test_shuffled_answers_teach_nothing(searched):
    folder, dev, test = searched
    encoder = of_files(folder, HIDDEN, turned(HIDDEN), "api")
    for seed in range(5):
        grades = [dev.grades[row] for row in np.random.default_rng(seed).permutation(len(dev.grades))]
        shuffled = RetrievalTask("shuffled", dev.queries, dev.documents, grades)
        assert "regression" not in adapt(encoder, shuffled, test, 0.0).adapter.name


def test_four_lines_of_numpy_do_the_same(tmp_path):
    rng = np.random.default_rng(0)
    given = {"down": (6, 2), "up": (2, 6), "shift": (6,)}
    adapter = Adapter("made up", *(rng.normal(size=size).astype(np.float32) for size in given.values()), 0.5)
    adapter.save(tmp_path / "a.safetensors")
    queries, documents = rng.normal(size=(3, 6)).astype(np.float32), unit(rng.normal(size=(9, 6)).astype(np.float32))

    a = load_file(tmp_path / "a.safetensors")
    q = queries / np.linalg.norm(queries, axis=1, keepdims=True)
    q = q + q @ a["down"] @ a["up"] + a["shift"]
    cosines = q / np.linalg.norm(q, axis=1, keepdims=True) @ documents.T

    np.testing.assert_allclose(cosines, adapter(queries) @ documents.T, atol=1e-6)
    again = Adapter.load(tmp_path / "a.safetensors")
    assert (again.name, again.words) == ("made up", 0.5)
    np.testing.assert_array_equal(again(queries), adapter(queries))
    with pytest.raises(DataError, match="vectors of 6 numbers, and these have 5"):
        adapter(queries[:, :5])


def test_the_weight_of_words_is_learned(tmp_path):
    rng = np.random.default_rng(5)
    random = Scorer(lambda texts: rng.normal(size=(len(texts), 4)), "random")
    documents = {f"text{n}": f"a thing called name{n} in store" for n in range(COUNT)}
    queries = {f"asked{n}": f"a thing called name{n}" for n in range(COUNT)}
    folder = tiny.write_search_set(tmp_path / "own", documents, queries, JUDGED)
    dev, test = (read_task(folder, "adapted", split) for split in ("dev", "test"))
    random.lexical_weight = 0.0
    told = []
    progress = tiny.heard(count=lambda what, done, total: told.append((done, total)))
    assert adapt(random, dev, test, progress=progress).adapter.words > 0
    assert {total for _, total in told} == {sum(done for done, _ in told)}


@pytest.mark.parametrize("content", [b"", b"nothing of this kind", None])
def test_other_files_are_no_adapters(tmp_path, content):
    path = tmp_path / "a.safetensors"
    if content is None:
        Adapter("odd", np.zeros((3, 1), np.float32), np.zeros((1, 2), np.float32), np.zeros(3, np.float32), 0).save(
            path
        )
    else:
        path.write_bytes(content)
    with pytest.raises(DataError, match="is no adapter of selfsent adapt"):
        Adapter.load(path)


def test_arrays_that_do_not_fit_the_folder_are_refused(searched):
    with pytest.raises(DataError, match="240 lines"):
        of_files(searched[0], HIDDEN[:-1], HIDDEN, "api")
