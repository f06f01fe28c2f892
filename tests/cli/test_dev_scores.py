import json
import re

import pytest

import tiny


def scores(run):
    return {entry["step"]: entry["score"] for entry in tiny.rows_of(run / "metrics.jsonl") if "score" in entry}


def test_a_label_free_score_along_the_way_is_on_other_documents(train, documents, tmp_path):
    done = train("--dev", "context", "--dev-every", 2, "--pooling", "mean", corpus=documents, steps=("--steps", 2))
    run = tmp_path / "run"
    assert done.status == 0, done.err
    assert list(scores(run)) == [2]
    assert json.loads((run / "run.json").read_text())["config"]["corpus"]["sentences"] == 2 * (250 - 50 - 40)
    final = json.loads((run / "scores.json").read_text())
    kinds = {"base", "trained", "with_words", "tfidf", "bm25"}
    assert set(final["scores"]) == kinds | {"difference", "over_tfidf", "over_bm25"}
    assert final["scores"]["base"]["n"] == 50
    assert scores(run)[2] != pytest.approx(final["scores"]["trained"]["score"], abs=1e-9)
    assert len(final["neighbours"]) == 3
    for said in ("Search: nDCG@10", "The next sentence: MRR@10", "TF-IDF", "trained - untrained", "Nearest to “"):
        assert said in done.out
    card = (run / "model" / "README.md").read_text()
    assert f"| trained | {final['scores']['trained']['score']:.2f} |" in card


def test_near_copies_of_what_is_kept_apart_are_not_trained_on(train, documents, tmp_path):
    lines = documents.read_text().split("\n")
    copies = [line and f"{line.upper()} !" for line in lines]
    path = tmp_path / "twice.txt"
    path.write_text("\n".join([*lines, *copies]))
    done = train("--dedup", "--method", "tsdae", "--pooling", "mean", corpus=path, steps=("--steps", 1)).ok()
    told = re.search(r"([\d,]+) sentences to train on with a near-copy among those kept apart", done.err)
    held = re.search(r"kept aside to score by: (\d+) documents of (\d+) sentences", done.err)
    assert int(told[1]) > 50
    trained = json.loads((tmp_path / "run" / "run.json").read_text())["config"]["corpus"]["sentences"]
    assert trained + int(held[2]) + int(told[1]) == 1000


def test_nothing_kept_apart_has_no_copies(train):
    done = train("--dedup", "--method", "tsdae", "--pooling", "mean", steps=("--steps", 1))
    assert "--dedup changes nothing: no text is kept apart to score by" in done.err
