import json

import pytest

from selfsent.errors import SettingsError
from selfsent.serving.limits import Limits
from selfsent.serving.requests import EmbeddingsRequest, SearchRequest, openapi, parse

LIMITS = Limits(max_texts=3, max_characters=10)


@pytest.mark.parametrize(
    ("kind", "given", "said"),
    [
        (SearchRequest, b"", "no JSON"),
        (SearchRequest, b"\xff", "no JSON"),
        (SearchRequest, b"[" * 100_000, "no JSON"),
        (SearchRequest, [], "must be an object"),
        (SearchRequest, {}, "query is missing"),
        (SearchRequest, {"query": None}, "query is missing"),
        (SearchRequest, {"query": ["a"]}, "query must be a text"),
        (SearchRequest, {"query": " \x00 "}, "query is empty"),
        (SearchRequest, {"query": "a" * 11}, "query is too long: at most 3 texts of 10 characters"),
        (SearchRequest, {"query": "a", "topp": 1}, "there is no 'topp'; did you mean 'top'?"),
        (SearchRequest, {"query": "a", "top": 0}, "top is 0; it must be at least 1"),
        (SearchRequest, {"query": "a", "top": 101}, "at most 100"),
        (SearchRequest, {"query": "a", "top": 1.5}, "whole number"),
        (SearchRequest, {"query": "a", "top": True}, "must be a number"),
        (SearchRequest, {"query": "a", "top": "1"}, "must be a number"),
        (SearchRequest, {"query": "a", "top": 10**400}, "out of range"),
        (SearchRequest, b'{"query": "a", "top": 1e999}', "finite"),
        (SearchRequest, b'{"query": "a", "lexical_weight": NaN}', "finite"),
        (SearchRequest, b'{"query": "a", "lexical_weight": ' + b"9" * 400 + b"}", "out of range"),
        (SearchRequest, {"query": "a", "mark": 1}, "mark must be true or false"),
        (SearchRequest, {"query": "a", "where": "a=" + "1" * 1000}, "at most 20 texts of 1,000 characters"),
        (SearchRequest, {"query": "a", "where": {"a": 1}}, "where must be a text or a list"),
        (SearchRequest, {"query": "a", "where": ["a=1"] * 21}, "where is too long"),
        (EmbeddingsRequest, {"input": []}, "input is empty"),
        (EmbeddingsRequest, {"input": ["a", ""]}, "input is empty, or one of its texts is"),
        (EmbeddingsRequest, {"input": [1, 2]}, "send texts, not tokens"),
        (EmbeddingsRequest, {"input": [[1], [2]]}, "check_embedding_ctx_length=False"),
        (EmbeddingsRequest, {"input": ["a"] * 4}, "input is too long"),
        (EmbeddingsRequest, {"input": "a", "encoding_format": "hex"}, "must be one of float, base64"),
        (EmbeddingsRequest, {"input": "a", "encoding_format": [1]}, "encoding_format must be a text"),
        (EmbeddingsRequest, {"input": "a", "dimensions": 0}, "at least 1"),
        (
            EmbeddingsRequest,
            {"input": "a", "input_type": "queries"},
            "input_type is 'queries'; it must be one of query,",
        ),
        (EmbeddingsRequest, {"input": "a", "task": 1}, "task must be a text"),
    ],
)
def test_what_is_wrong_is_named(kind, given, said):
    with pytest.raises(SettingsError) as raised:
        parse(kind, given if isinstance(given, bytes) else json.dumps(given).encode(), LIMITS)
    assert said in str(raised.value)
    assert "\n" not in str(raised.value)


def test_what_is_right_is_read():
    asked = parse(
        SearchRequest, b'{"query": " a\\u0000  b ", "where": "team=it", "top": 3, "lexical_weight": null}', LIMITS
    )
    assert (asked.query, asked.where, asked.top, asked.lexical_weight) == ("a b", ("team=it",), 3, None)
    asked = parse(EmbeddingsRequest, b'{"input": "\\ud800x", "model": "gpt", "user": "me", "start": 7}', LIMITS)
    assert (asked.input, asked.start) == (("�x",), 0)


@pytest.mark.parametrize(
    ("given", "side"),
    [
        ({}, None),
        *(({"input_type": name}, "query") for name in ("query", "search_query")),
        *(({"input_type": name}, "document") for name in ("document", "passage", "search_document")),
        *(({"input_type": name}, None) for name in ("classification", "clustering", None)),
        ({"task": "retrieval.query"}, "query"),
        ({"task": "retrieval.passage"}, "document"),
        ({"task": "text-matching"}, None),
    ],
)
def test_what_texts_are_is_read_in_the_words_of_other_services(given, side):
    assert parse(EmbeddingsRequest, json.dumps({"input": "a"} | given).encode(), LIMITS).side == side


def test_openapi_says_what_is_read():
    told = json.loads(openapi(secured=True))
    assert told["security"] == [{"token": []}]
    search = told["paths"]["/search"]["post"]["requestBody"]["content"]["application/json"]["schema"]
    assert search["required"] == ["query"]
    assert search["properties"]["top"] == {
        **{"type": "integer", "description": "hits", "default": 10, "minimum": 1, "maximum": 100}
    }
    vectors = told["paths"]["/v1/embeddings"]["post"]["requestBody"]["content"]["application/json"]["schema"]
    assert vectors["properties"]["encoding_format"]["enum"] == ["float", "base64"]
    assert "start" not in vectors["properties"]
    assert "security" not in json.loads(openapi(secured=False))
