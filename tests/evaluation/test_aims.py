import json

import pytest
from sentence_transformers import SentenceTransformer

from selfsent.evaluation.suites import evaluate
from selfsent.models.loading import load_encoder
from selfsent.scorers.load_scorer import load_scorer


@pytest.mark.parametrize(("method", "marked"), [("neighbours", ("context",)), ("simcse", ()), ("pretrain", ())])
def test_what_a_method_aims_at_is_marked_however_its_model_is_given(method, marked, documents_of, base_of, tmp_path):
    load_encoder(base_of("bert")).save(tmp_path / "run" / "model")
    (tmp_path / "run" / "run.json").write_text(json.dumps({"asked": {"method": method}}))
    documents = documents_of(60)
    for given in (
        tmp_path / "run",
        load_scorer(str(tmp_path / "run")),
        SentenceTransformer(str(tmp_path / "run/model")),
    ):
        assert evaluate(given, documents=documents, hold_out=30).aimed == marked
