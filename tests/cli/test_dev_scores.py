import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from safetensors.torch import load_file

import tiny


def scores(run):
    entries = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    return {entry["step"]: entry["score"] for entry in entries if "score" in entry}


@pytest.fixture
def mirror(tmp_path):
    """A mirror of data sets with twenty made-up pairs in the place of the development half of STS-B."""
    left, right = tiny.make_sentences(20, seed=2), tiny.make_sentences(20, seed=3)
    pairs = {"sentence1": left, "sentence2": right, "score": [number % 6 for number in range(20)]}
    place = tmp_path / "mirror" / "mteb" / "stsbenchmark-sts" / "validation.parquet"
    place.parent.mkdir(parents=True)
    pq.write_table(pa.table(pairs), place)
    return tmp_path / "mirror"


@pytest.mark.parametrize(("keep_best", "kept"), [(True, 3), (False, 5)])
def test_the_best_model_is_kept_if_asked_for(keep_best, kept, train, mirror, tmp_path, monkeypatch):
    given = iter([10.0, 11.0, 30.0, 30.0, 20.0])
    monkeypatch.setattr("selfsent.api.dev_scorer", lambda *arguments: lambda model: next(given))
    flags = ("--dev", "stsb-dev", "--data", mirror, "--dev-every", 1, "--checkpoint-every", 1, "--keep", 9)
    done = train(*flags, *(["--keep-best"] if keep_best else []), steps=("--steps", 5))
    assert done.status == 0, done.err
    run = tmp_path / "run"
    words = "embeddings.word_embeddings.weight"
    model = load_file(run / "model" / "model.safetensors")[words]
    same = []
    for checkpoint in sorted((run / "checkpoints").iterdir()):
        learner = load_file(checkpoint / "learner.safetensors")
        (name,) = (name for name in learner if name.endswith(words))
        same.append(bool((learner[name] == model).all()))
    assert same == [step == kept for step in (1, 2, 3, 4)]
    assert not (run / "best").exists()


def test_a_label_free_score_along_the_way_is_on_other_documents(train, documents, tmp_path):
    done = train("--dev", "context", "--dev-every", 2, "--pooling", "mean", corpus=documents, steps=("--steps", 2))
    run = tmp_path / "run"
    assert done.status == 0, done.err
    assert list(scores(run)) == [2]
    assert json.loads((run / "run.json").read_text())["asked"]["corpus"]["sentences"] == 2 * (250 - 50 - 40)
    final = json.loads((run / "scores.json").read_text())
    kinds = {"base", "trained", "with_words", "tfidf", "bm25"}
    assert set(final["scores"]) == kinds | {"difference", "over_tfidf", "over_bm25"}
    assert final["scores"]["base"]["n"] == 50
    assert scores(run)[2] != pytest.approx(final["scores"]["trained"]["score"], abs=1e-9)
    assert len(final["neighbours"]) == 3
    for said in ("Search: nDCG@10", "The next sentence: MRR@10", "TF-IDF", "trained - untrained", "Nearest to:"):
        assert said in done.out
    card = (run / "model" / "README.md").read_text()
    assert f"| trained | {final['scores']['trained']['score']:.2f} |" in card
