"""The scripts that the documentation shows."""

import base64
import json
import runpy
import threading
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pytest

import selfsent
from selfsent.errors import DataError
from selfsent.scorers.load_scorer import load_scorer
from web import answering

EXAMPLES = Path(__file__).parents[1] / "docs" / "examples"
BUNDLED = Path(selfsent.__file__).parent / "models" / "bundled" / "static"


def test_ids_come_back_from_qdrant(tmp_path, monkeypatch, capsys):
    pytest.importorskip("qdrant_client", reason="Qdrant's client is not installed")
    monkeypatch.chdir(tmp_path)
    rows = ["T-1,The printer does not answer.", "T-2,Our invoice is wrong.", "T-3,The printer prints nothing."]
    (tmp_path / "tickets.csv").write_text("id,text\n" + "\n".join(rows) + "\n")
    main = runpy.run_path(str(EXAMPLES / "qdrant.py"))["main"]
    for _ in range(2):  # what is there already is replaced
        main(str(BUNDLED), "tickets.csv", "a broken printer")
    first, second, third, *_ = capsys.readouterr().out.splitlines()
    assert {first.split()[1], second.split()[1]} == {"T-1", "T-3"}
    assert third.split()[1] == "T-2"


def test_an_encoder_behind_an_api(monkeypatch):
    def reply(number, question, headers):
        found = [{"index": place, "embedding": [len(text), 1.0]} for place, text in enumerate(question["input"])]
        return 200, json.dumps({"data": found[::-1]}).encode(), {}

    monkeypatch.setenv("EMBEDDINGS_KEY", "secret")
    monkeypatch.syspath_prepend(EXAMPLES)
    with answering(reply) as (address, asked):
        monkeypatch.setenv("EMBEDDINGS_URL", f"{address}/embeddings")
        vectors = load_scorer("api_encoder:encoder")(["x" * number for number in range(1, 71)])  # two batches
    assert vectors[:, 0].tolist() == [*range(1, 71)]
    told = [(headers["Authorization"], question["model"], len(question["input"])) for _, question, headers in asked]
    assert told == [("Bearer secret", "default", 64), ("Bearer secret", "default", 6)]


@pytest.fixture
def service(monkeypatch):
    """Makes a service of embeddings of its own limits; returns the numbers of texts that it was asked for."""
    running, asked, left = ExitStack(), [], threading.Event()

    def make(largest=64, slow=False, plain=False):
        def reply(number, question, headers):
            texts = question["input"]
            asked.append(len(texts))
            if len(texts) > largest:
                if slow:
                    left.wait(5)  # the client has long gone
                return 413, json.dumps({"error": "too many"}).encode(), {}
            vectors = [np.array([len(text), 0.5], "<f4") for text in texts]
            sent = [each.tolist() if plain else base64.b64encode(each.tobytes()).decode() for each in vectors]
            found = [{"index": place, "embedding": each} for place, each in enumerate(sent)]
            return 200, json.dumps({"data": found}).encode(), {}

        address, _ = running.enter_context(answering(reply))
        monkeypatch.setenv("EMBEDDINGS_URL", f"{address}/embeddings")
        example = runpy.run_path(str(EXAMPLES / "api_encoder.py"))
        example["asked"].__globals__["SECONDS"] = 0.2 if slow else 5
        return example["encoder"](), asked

    with running:
        yield make
        left.set()


TEXTS = ["x" * number for number in range(1, 11)]


@pytest.mark.parametrize("plain", [False, True])
def test_vectors_come_as_lists_or_as_base64(service, plain):
    embed, asked = service(plain=plain)
    np.testing.assert_array_equal(embed(TEXTS), [[number, 0.5] for number in range(1, 11)])
    assert asked == [10]


@pytest.mark.parametrize("slow", [False, True])
def test_what_is_too_large_or_too_slow_for_a_service_is_halved(service, slow):
    embed, asked = service(largest=3, slow=slow)
    np.testing.assert_array_equal(embed(TEXTS)[:, 0], np.arange(1, 11))
    assert asked == [10, 5, 2, 3, 5, 2, 3]


def test_a_service_that_gives_nothing_is_told_in_one_line(service):
    embed, asked = service(largest=0)
    with pytest.raises(DataError, match=r"/v1/embeddings gave no vectors of 1 texts: .*413"):
        embed(TEXTS[:2])
    assert asked == [2, 1]
