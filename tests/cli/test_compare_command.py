import json

import numpy as np
import pytest

import tiny
from selfsent.scorers.leaks import trained_by

METHODS = "simcse, whitening, mlm --learning-rate 1e-3 --steps 2"


@pytest.fixture
def compare(selfsent, base, documents, tmp_path):
    """Run `selfsent compare` on the tiny base, a few steps, into tmp_path/out."""

    def run(*arguments, corpus=documents, methods=METHODS):
        common = ("--base", base, "--output", tmp_path / "out", "--batch-size", 8, "--max-length", 32, "--steps", 3)
        return selfsent("compare", corpus, "--methods", methods, *common, *arguments)

    return run


def test_the_best_encoder_is_chosen_and_scored_on_other_documents(compare, tmp_path):
    done = compare().ok()
    found = json.loads((tmp_path / "out" / "comparison.json").read_text())
    names = ["simcse", "whitening", "mlm --learning-rate 1e-3 --steps 2"]
    assert sorted(each["name"] for each in found["candidates"]) == sorted(names)
    dev = [each["dev"]["score"] for each in found["candidates"]]
    assert dev == sorted(dev, reverse=True)
    assert {each["name"]: each["steps"] for each in found["candidates"]}[names[2]] == 2
    assert all(name in done.out for name in ("untrained", "TF-IDF", "BM25", "[", names[2]))
    assert found["headline"] in done.out.replace("\n", " ")
    best = found["candidates"][0]
    if best["dev"]["score"] > found["bases"]["untrained"]["score"]:
        assert found["chosen"] == found["best"] == best["name"]
        assert trained_by(tmp_path / "out" / "model") == (best["name"].split()[0],)
        assert (tmp_path / "out" / "model" / "modules.json").is_file()
        assert best["test"]["trained"]["signature"] != best["dev"]["signature"]
    else:
        assert (found["chosen"], found["best"]) == (None, "untrained")
    assert found["tests"].keys() == {found["best"], "untrained", "TF-IDF", "BM25"}
    assert all("best_minus_it" in one for name, one in found["tests"].items() if name != found["best"])
    words = found["baselines"]["BM25"]
    assert words["low"] < words["score"] < words["high"]
    assert found["bases"]["untrained"]["bm25"] == words["score"]


def test_without_documents_there_is_nothing_to_choose_by(compare, tmp_path):
    (tmp_path / "single.csv").write_text("text\n" + "\n".join(map(json.dumps, tiny.make_sentences(300))) + "\n")
    done = compare(corpus=tmp_path / "single.csv", methods="whitening")
    assert "the corpus has no documents to choose by: give --dev FILE, with a hundred pairs" in done.late_complaint
    assert not (tmp_path / "out").exists()


def test_going_on_trains_only_what_is_new(compare, tmp_path):
    assert compare(methods="simcse").status == 0
    weights = tmp_path / "out" / "methods" / "simcse" / "model" / "model.safetensors"
    before = weights.stat().st_mtime_ns
    assert "give --resume" in compare(methods="simcse, mlm").complaint
    assert compare("--resume", methods="mlm").status == 0
    assert weights.stat().st_mtime_ns == before
    found = json.loads((tmp_path / "out" / "comparison.json").read_text())
    assert {each["name"] for each in found["candidates"]} == {"simcse", "mlm"}
    assert "batch_size was 8, now 16".replace("_", " ") in compare("--resume", "--batch-size", 16).late_complaint


def test_a_method_that_goes_wrong_does_not_stop_the_others(compare, tmp_path):
    done = compare(methods="mlm --learning-rate 1e30, simcse").ok()
    found = json.loads((tmp_path / "out" / "comparison.json").read_text())
    assert list(found["failures"]) == ["mlm --learning-rate 1e30"]
    assert "mlm --learning-rate 1e30 failed: " in done.out
    failed = compare("--overwrite", methods="mlm --learning-rate 1e30")
    assert failed.status == 1
    assert "no method went well; mlm" in failed.err


@pytest.mark.parametrize(
    ("methods", "complaint"),
    [
        ("simces", "there is no method 'simces'"),
        ("simcse,,mlm", "has an empty name"),
        ("simcse, simcse", "names 'simcse' twice"),
        ("simcse --momentum 0.9", "--methods simcse: unrecognised argument --momentum"),
        ("simcse --batch-size many", "argument --batch-size: invalid int value"),
        ("mlm, simcse --learning-rate 0", "simcse --learning-rate 0: --learning-rate is 0.0; it must be above 0.0"),
        ("simcse 'x", "No closing quotation"),
        ("cosine", "2 text columns"),
        ("simcse --no-mlp, simcse  --no-mlp", "names 'simcse --no-mlp' twice"),
        ("cross-encoder", "makes scores of pairs"),
    ],
)
def test_what_is_wrong_is_said_before_anything_runs(methods, complaint, compare, tmp_path):
    assert complaint in compare(methods=methods).late_complaint
    assert not (tmp_path / "out").exists()


def test_without_documents_the_usual_methods_are_those_that_need_none(sentences, base, monkeypatch, tmp_path):
    from selfsent import comparison as selection
    from selfsent.evaluation.results import measure
    from selfsent.stats.metrics import mean

    score = measure("made up", mean(np.arange(8.0)), 8, signature="made up")
    monkeypatch.setattr(selection.run, "dev_task", lambda *given: lambda model: score)
    monkeypatch.setattr(selection.trials, "CANDIDATES", ("neighbours", "zscore"))
    said = []
    common = {"dev": "stsb-dev", "steps": 1, "progress": tiny.heard(notice=said.append)}
    found = selection.compare(sentences, None, base, tmp_path / "out", **common)
    names = [each.name for each in found.candidates]
    assert sorted(names) == ["simcse --pooling mean --no-mlp --crop-words 0.5", "zscore"]  # as train would by itself
    assert "left out without documents: neighbours" in said
