import dataclasses

import pytest
import yaml

from selfsent.report.card import model_card
from selfsent.settings import Settings

SCORE = {"score": 12.345, "low": 11.0, "high": 13.0, "n": 500}
SCORES = {
    "base": SCORE,
    "trained": {**SCORE, "score": 15.0},
    "tfidf": SCORE,
    "difference": {"score": 2.655, "low": 1.5, "high": 3.5, "p": 0.001},
}


@pytest.fixture
def record():
    return {
        "config": {
            "method": "simcse",
            "options": {"temperature": 0.05},
            "settings": dataclasses.asdict(Settings(epochs=1, seed=3)),
            "base": "/home/someone/models/mine",
            "pooling": "cls",
            "corpus": {"source": "tickets.csv", "fingerprint": "f00", "sentences": 12345},
        },
        "steps": 100,
        "precision": "float32",
        "processes": 1,
        "versions": {"selfsent": "0.1", "torch": "2.11"},
    }


def test_what_a_reader_wants_to_know(record):
    card = model_card(record, "12,345 sentences (3 duplicates dropped)", SCORES)
    for said in (
        "`mine`",
        "12,345 texts of `tickets.csv`",
        "3 duplicates",
        "| temperature | 0.05 |",
        "| steps | 100 |",
        "| trained | 15.00 | 11.00 to 13.00 |",
        "| trained - untrained: better | +2.65 | +1.50 to +3.50 |",
        "Seed 3; corpus fingerprint `f00`; selfsent 0.1, torch 2.11",
    ):
        assert said in card
    assert "/home/someone" not in card
    assert "None" not in card


def test_the_metadata_is_yaml(record):
    _, head, _ = model_card(record, "", None).split("---\n", 2)
    assert yaml.safe_load(head) == {
        "library_name": "sentence-transformers",
        "pipeline_tag": "sentence-similarity",
        "tags": ["sentence-transformers", "feature-extraction", "selfsent", "simcse"],
    }


def test_without_scores_it_says_so(record):
    assert "Not scored: no documents were kept apart" in model_card(record, "", None)


def test_names_from_outside_stay_in_their_place(record):
    hostile = "x`\n---\n# Title\n<script>alert(1)</script>[link](http://a) | {cell}"
    record["config"]["corpus"]["source"] = record["config"]["base"] = hostile
    card = model_card(record, hostile, None)
    assert not any(sign in card for sign in ("<script", "[link]", "\n# Title", "`\n---"))
    assert card.count("\n---\n") == model_card({**record}, "", None).count("\n---\n")


def test_a_cross_encoder_is_used_otherwise(record):
    card = model_card(record, "100 sentences", None, joins=True)
    assert "scores = model.predict" in card
    assert "SentenceTransformer(" not in card
    assert yaml.safe_load(card.split("---")[1])["pipeline_tag"] == "text-ranking"
