"""What older versions wrote is read by this one: a killed run, a finished one, its model, a cache and vectors."""

import shutil
from pathlib import Path

import numpy as np
import pytest

import selfsent
from selfsent.data.corpus.table import Corpus, open_corpus
from selfsent.data.vector_files import VectorsFile
from selfsent.errors import RunError

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
