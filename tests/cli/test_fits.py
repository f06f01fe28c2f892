import json

import numpy as np
import pytest

from selfsent.models.encoding import encode
from selfsent.models.loading import load_encoder


@pytest.mark.parametrize("method", ["whitening", "zscore"])
def test_a_fit_takes_no_steps_and_says_so(method, train, tmp_path):
    done = train("--method", method, "--learning-rate", 0.1).ok()
    assert f"{method} takes no steps: --batch-size, --learning-rate, --steps are ignored" in done.err
    record = json.loads((tmp_path / "run" / "run.json").read_text())
    assert (record["status"], record["steps"]) == ("finished", 0)
    assert record["config"]["settings"]["steps"] is None
    (line,) = (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()
    assert json.loads(line)["step"] == 0
    card = (tmp_path / "run" / "model" / "README.md").read_text()
    assert "a fit, no steps" in card
    assert "| max_length |" in card
    assert "learning_rate" not in card
    again = train("--method", method, "--resume", steps=("--epochs", 3))
    assert again.status == 0
    assert "is finished already" in again.err
    assert "already holds a run" in train("--method", method).complaint


def test_a_table_is_fitted_to_a_teacher(train, selfsent, sentences, base, tmp_path):
    selfsent("table", "--tokenizer", base, "--size", 16, "--output", tmp_path / "table").ok()
    how = ("--method", "least-squares", "--base", tmp_path / "table", "--max-length", 32)
    assert "give teacher=" in train(*how).complaint.replace("--teacher ", "teacher=")
    train(*how, "--teacher", base, "--dimensions", 8).ok()
    assert load_encoder(tmp_path / "run" / "model").embedding_size == 8
    refused = train("--method", "least-squares", "--teacher", base, "--overwrite")
    assert "fits a table of token vectors, and this base is of the kind bert" in refused.complaint


def test_any_method_can_be_whitened(train, sentences, tmp_path):
    train("--method", "mlm", "--whiten", "--max-length", 96).ok()
    record = json.loads((tmp_path / "run" / "run.json").read_text())
    assert record["config"]["whiten"] == 1
    assert record["steps"] == 4
    vectors = encode(load_encoder(tmp_path / "run" / "model"), sentences.read_text().splitlines())
    np.testing.assert_allclose(np.cov(vectors.T, bias=True), np.eye(vectors.shape[1]), atol=0.01)
    without = train("--method", "mlm", "--max-length", 96, "--resume")
    assert "whiten was 1.0, now 0.0" in without.late_complaint
    assert "leave out --whiten" in train("--method", "whitening", "--whiten", "--overwrite").complaint
