import numpy as np
import pytest
from safetensors.numpy import load_file

import tiny


@pytest.fixture(scope="module")
def exam(tmp_path_factory):
    """Sixty queries that their documents answer, in BEIR's layout, with vectors of both."""
    folder = tmp_path_factory.mktemp("exam") / "own"
    documents, queries = ({f"{name}{n}": f"{name} text{n}" for n in range(60)} for name in ("corpus", "queries"))
    judged = [(f"queries{n}", f"corpus{n}", 1) for n in range(60)]
    tiny.write_search_set(folder, documents, queries, {"dev": judged[::2], "test": judged[1::2]})
    rng = np.random.default_rng(0)
    for name in ("corpus", "queries"):
        np.save(folder.parent / f"{name}.npy", rng.normal(size=(60, 8)).astype(np.float32))
    return folder


def test_an_adapter_is_learned_and_written(selfsent, exam, tmp_path):
    arrays = ("--vectors", exam.parent / "corpus.npy", "--queries", exam.parent / "queries.npy")
    done = selfsent("adapt", exam, *arrays, "--output", tmp_path / "a.safetensors", "--json", "-").ok()
    found, written = done.json, load_file(tmp_path / "a.safetensors")
    assert (written["down"].shape[0], written["up"].shape[1], written["shift"].shape) == (8, 8, (8,))
    assert found["word_weight"] == written["words"].item() > 0  # these vectors say nothing, and the words all
    assert found["after"]["test"]["score"] > found["before"]["test"]["score"] + 1
    kept = selfsent("adapt", exam, *arrays, "--output", tmp_path / "b.safetensors", "--word-weight", 0)
    assert kept.out.startswith("Keep the vectors as they are")
    assert not np.any(load_file(tmp_path / "b.safetensors")["down"])


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--output", "a.npz", "--model", "bundled"), "must end in .safetensors"),
        (("--output", "a.safetensors"), "give --vectors, files of them, or --model"),
        (("--output", "a.safetensors", "--vectors", "corpus.npy"), "give --queries, a second one"),
        (("--output", "a.safetensors", "--vectors", "corpus.npy", "--queries", "none.npy"), "does not exist"),
        (("--output", "a.safetensors", "--vectors", "x.parquet", "--queries", "queries.npy"), "--queries goes with"),
        (("--output", "a.safetensors", "--model", "nothing-of-this-name"), "nothing-of-this-name"),
    ],
)
def test_what_cannot_be_adapted(selfsent, exam, options, said, monkeypatch):
    monkeypatch.chdir(exam.parent)
    done = selfsent("adapt", exam, *options)
    assert (done.status, said in done.late_complaint or said in done.err) == (2, True), done.err
    assert not (exam.parent / "a.safetensors").exists()
