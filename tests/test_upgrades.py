"""What older versions wrote is read by this one: a killed run, a finished one, its model, a cache and vectors."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

import selfsent
from selfsent.data.corpus.table import Corpus, open_corpus
from selfsent.data.vector_files import VectorsFile
from selfsent.errors import RunError
from selfsent.models.encoding import encode
from selfsent.models.loading import load_encoder

WRITTEN = sorted((Path(__file__).parent / "written").iterdir())
STEPS = {"steps": 6, "checkpoint_every": 3, "batch_size": 8, "max_length": 16, "delete_words": 0.3}


@pytest.fixture(params=WRITTEN, ids=lambda folder: folder.name)
def written(request, tmp_path):
    return Path(shutil.copytree(request.param, tmp_path / "written"))


def test_there_are_some():
    assert "0.1.0" in [folder.name for folder in WRITTEN]


def test_a_killed_run_is_refused(written, tmp_path):
    corpus = selfsent.read_corpus(written / "text.txt", cache=tmp_path / "cache")
    with pytest.raises(RunError, match="killed cannot be resumed: "):
        selfsent.train(corpus, "simcse", written / "base", written / "killed", resume=True, quiet=True, **STEPS)


def test_a_finished_run_and_its_model_are_read(written):
    run = selfsent.load_run(written / "finished")
    assert run.record["status"] == "finished"
    texts = (written / "text.txt").read_text().splitlines()
    np.testing.assert_allclose(run.model.encode(texts), np.load(written / "vectors.npy"), atol=1e-5)


def test_a_cache_is_read(written):
    texts = (written / "text.txt").read_text().splitlines()
    corpora = [path.parent for path in (written / "cache").rglob("corpus.json")]
    assert corpora
    for directory in corpora:
        assert open_corpus(directory) is not None
        assert Corpus(directory).texts() == texts


@pytest.mark.parametrize("name", ["vectors.npy", "vectors.parquet"])
def test_vectors_are_read(written, name):
    file = VectorsFile(written / name)
    found = np.concatenate([vectors for vectors, _ in file.parts()])
    np.testing.assert_array_equal(found, np.load(written / "vectors.npy"))


def hits_of(index, texts, model):
    vectors = encode(model, texts[:5])
    return [
        [
            [[hit.row, hit.dense_score, hit.lexical_score, hit.score, hit.id] for hit in hits]
            for hits in index.search(vectors, 6, texts[:5], weight, where=where)
        ]
        for weight in (0.0, 1.5)
        for where in (None, "team=a")
    ]


def assert_same_hits(found, expected):
    flat = [[hit for query in queries for hits in query for hit in hits] for queries in (found, expected)]
    assert [(hit[0], hit[-1]) for hit in flat[0]] == [(hit[0], hit[-1]) for hit in flat[1]]
    np.testing.assert_allclose([hit[1:4] for hit in flat[0]], [hit[1:4] for hit in flat[1]], atol=1e-6)


def lexical_score(index, model, query, name):
    [hits] = index.search(encode(model, [query]), 50, [query], 1.0)
    return next(hit.lexical_score for hit in hits if hit.id == name)


@pytest.mark.parametrize("name", ["index", "index-ivf"])
def test_an_index_is_searched_and_changed(written, name):
    if name == "index-ivf":
        pytest.importorskip("faiss", reason="faiss is not installed")
    model = load_encoder(written / "base").eval()
    texts = (written / "text.txt").read_text().splitlines()
    expected = json.loads((written / f"{name}.hits.json").read_text())
    index = selfsent.Index(written / name)
    assert_same_hits(hits_of(index, texts, model), expected)
    assert (len(index), index.rows, index.lexical_weight) == (39, 51, 1.5)
    assert lexical_score(index, model, "profile", "t60") == 0  # the words of version 2
    first = index.search(encode(model, texts[:1]), 1)[0]
    before = index.describe(first)
    assert index.delete(["none of these"]) == 0  # the first change writes the files of this version
    assert json.loads((written / name / "index.json").read_text())["version"] == 3
    assert_same_hits(hits_of(index, texts, model), expected)
    assert index.describe(first) == before
    assert lexical_score(index, model, "profile", "t60") == pytest.approx(0.6516, abs=1e-3)
    assert index.upsert([{"id": "t1", "team": "c", "text": texts[59]}], model).new == 1
    assert [hit.id for hit in index.search(encode(model, texts[59:]), 3, where="team=c")[0]] == ["t1"]
    assert index.delete(["t1", "t2"]) == 2
    assert len(selfsent.Index(written / name)) == len(index)


def test_an_old_index_that_cannot_be_written_is_searched(written):
    texts, model = (written / "text.txt").read_text().splitlines(), load_encoder(written / "base").eval()
    (written / "index").chmod(0o500)
    try:
        found = hits_of(selfsent.Index(written / "index"), texts, model)
    finally:
        (written / "index").chmod(0o700)
    assert_same_hits(found, json.loads((written / "index.hits.json").read_text()))
