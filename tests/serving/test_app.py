"""The service over real sockets."""

import base64
import http.client
import json
import shutil
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlsplit

import numpy as np
import pytest

from selfsent.data.corpus import read_corpus
from selfsent.index import Index
from selfsent.index.calibration import Calibration, write_calibration
from selfsent.models.encoding import encode
from selfsent.models.loading import load_encoder
from selfsent.serving.engine import Engine


def ask(url, path, body=None, method=None, **headers):
    """Status, headers and body of an answer; JSON read."""
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=20)
    sent = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
    connection.request(method or ("GET" if body is None else "POST"), path, sent, headers)
    answer = connection.getresponse()
    text = answer.read()
    connection.close()
    is_json = answer.headers.get("content-type") == "application/json"
    return answer.status, answer.headers, json.loads(text) if is_json else text.decode()


def test_search_finds_by_ids_and_marks_words(url):
    status, _, told = ask(url, "/search", {"query": "a printer", "top": 3, "mark": True})
    assert (status, told["model"], len(told["hits"])) == (200, "bundled", 3)
    first = told["hits"][0]
    assert (first["id"], first["team"]) == ("T-1", "sales")
    assert "".join(first["parts"]) == "The printer on the second floor does not answer."
    assert first["parts"][1::2] == ["printer"]
    plain = ask(url, "/search", {"query": "a printer", "top": 3, "length": 11})[2]["hits"]
    assert [hit["id"] for hit in plain] == [hit["id"] for hit in told["hits"]]
    assert plain[0]["text"] == "The printer"
    scores = [hit["score"] for hit in plain]
    assert scores == sorted(scores, reverse=True)


def test_filters_come_before_the_ranking(url):
    query = {"query": "printer", "top": 100, "where": ["team=sales,it", "id!=T-1"]}
    assert {hit["id"] for hit in ask(url, "/search", query)[2]["hits"]} == {"T-3", "T-4"}
    assert ask(url, "/search", {"query": "printer", "where": "team=nobody"})[2]["hits"] == []
    assert ask(url, "/search", {"query": "a", "where": ["team=" + "a," * 490] * 20})[0] == 200


def test_new_tickets_are_found_without_a_restart(index, serving, tmp_path):
    copy = tmp_path / "copy"
    shutil.copytree(index, copy)
    encoder = load_encoder("bundled")
    with serving(Engine(Index(copy), encoder)) as url:
        assert ask(url, "/search", {"query": "the coffee machine", "top": 1})[2]["hits"][0]["id"] != "T-9"
        row = {"id": "T-9", "body": "The coffee machine is empty.", "team": "sales"}
        Index(copy).upsert(read_corpus([row], text_column="body", metadata_columns=["id", "team"], min_rows=1), encoder)
        assert ask(url, "/search", {"query": "the coffee machine", "top": 1})[2]["hits"][0]["id"] == "T-9"
        assert ask(url, "/health")[2]["texts"] == 8


def test_searches_that_arrive_together_are_those_that_arrive_alone(url):
    queries = [{"query": word, "top": top} for word in ("printer", "invoice", "password") for top in (1, 2)] * 5
    alone = [ask(url, "/search", query)[2] for query in queries[:6]] * 5
    with ThreadPoolExecutor(10) as threads:
        assert [answer[2] for answer in threads.map(lambda query: ask(url, "/search", query), queries)] == alone


@pytest.mark.parametrize("count", [1, 200])
def test_embeddings_are_the_models_own_of_length_one(url, count):
    texts = [f"ticket {number} of the printer" for number in range(count)]
    status, _, told = ask(url, "/v1/embeddings", {"input": texts, "model": "any"})
    assert (status, told["object"], told["model"]) == (200, "list", "bundled")
    assert [entry["index"] for entry in told["data"]] == list(range(count))
    model = load_encoder("bundled")
    expected = encode(model, texts)
    expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    np.testing.assert_allclose([entry["embedding"] for entry in told["data"]], expected, atol=1e-6)
    tokens = sum(map(len, model.tokenizer(texts)["input_ids"]))
    assert told["usage"] == {"prompt_tokens": tokens, "total_tokens": tokens}
    short = ask(url, "/v1/embeddings", {"input": texts, "dimensions": 5, "encoding_format": "base64"})[2]["data"]
    found = np.frombuffer(base64.b64decode(short[-1]["embedding"]), "<f4")
    np.testing.assert_allclose(found, expected[-1, :5] / np.linalg.norm(expected[-1, :5]), atol=1e-6)


@pytest.mark.parametrize(
    ("path", "body", "expected", "said"),
    [
        ("/search", b"{", 400, "no JSON"),
        ("/search", {"query": "a", "top": 1000}, 400, "at most 100"),
        ("/search", {"query": "a", "where": "tea=x"}, 400, "did you mean 'team'?"),
        ("/search", {"query": "a", "where": "team"}, 400, "is no condition"),
        ("/search", {"query": "a", "where": "team=a\rb"}, 400, "where"),
        ("/v1/embeddings", {"input": "a", "dimensions": 1000}, 400, "the vectors of this model have 256"),
        ("/v1/embeddings", {"input": [1]}, 400, "send texts, not tokens"),
        ("/search", b'"' + b"a" * (5 << 20) + b'"', 413, "larger than 4,194,304 bytes"),
        ("/nothing", None, 404, "no such path"),
        ("/search", None, 404, "not by this method"),
    ],
)
def test_what_is_refused_is_said_as_openai_says_it(url, path, body, expected, said):
    status, headers, told = ask(url, path, body)
    assert status == expected
    assert said in told["error"]["message"]
    assert told["error"]["type"] == "invalid_request_error"
    assert headers["x-content-type-options"] == "nosniff"


def test_an_unknown_length_has_the_same_limit(url):
    with socket.create_connection(urlsplit(url).netloc.split(":"), timeout=20) as client:
        client.sendall(b"POST /search HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n")
        answer = b""
        try:
            for _ in range(600):
                client.sendall(b"10000\r\n" + b"a" * 65536 + b"\r\n")
        except OSError:
            pass  # the service hung up
        while part := client.recv(4096):
            answer += part
            if b"larger than" in answer:
                break
    assert answer.startswith(b"HTTP/1.1 413 ")


def test_only_the_token_opens(engine, serving):
    with serving(engine, token="s3cret") as url:
        bodies = {"/search": {"query": "printer"}, "/v1/embeddings": {"input": "printer"}, "/v1/models": None}
        for path, body in bodies.items():
            for headers in (
                {},
                {"Authorization": "Bearer s3cre"},
                {"Authorization": "Bearer é"},
                {"Authorization": "s3cret"},
            ):
                status, about, told = ask(url, path, body, **headers)
                assert (status, about["www-authenticate"]) == (401, "Bearer")
                assert "give the token" in told["error"]["message"]
            assert ask(url, path, body, Authorization="Bearer s3cret")[0] == 200
        assert ask(url, "/health")[2] == {"status": "ok"}
        assert ask(url, "/health", Authorization="Bearer s3cret")[2]["texts"] == 7
        assert "T-1" not in ask(url, "/")[2]


def test_foreign_host_names_are_refused(engine, serving):
    with serving(engine, names=("localhost", "127.0.0.1")) as url:
        assert ask(url, "/health")[0] == ask(url, "/health", Host="LOCALHOST:80")[0] == 200
        assert ask(url, "/health", Host="evil.example")[0] == 421
        assert ask(url, "/search", {"query": "a"}, Host="")[0] == 421


def test_pages_of_elsewhere_may_not_ask(url):
    for kind, expected in (("cross-site", 403), ("same-site", 403), ("same-origin", 200), ("none", 200)):
        for path, body in (("/search", {"query": "a"}), ("/v1/embeddings", {"input": "a"})):
            assert ask(url, path, body, **{"Sec-Fetch-Site": kind})[0] == expected
        assert ask(url, "/", **{"Sec-Fetch-Site": kind})[0] == 200  # a link to the page


@pytest.mark.parametrize("path", ["/", "/health", "/openapi.json", "/search", "/nothing"])
def test_a_browser_is_told_to_do_no_more_than_it_must(url, path):
    body = {"query": "a"} if path == "/search" else None
    for method in (None, "OPTIONS"):
        _, headers, _ = ask(url, path, body, method, Origin="http://evil.example")
        expected = {
            "x-content-type-options": "nosniff",
            "x-frame-options": "DENY",
            "referrer-policy": "no-referrer",
            "cache-control": "no-store",
            "cross-origin-resource-policy": "same-origin",
        }
        assert {name: headers[name] for name in expected} == expected
        policy = headers["content-security-policy"]
        assert {"default-src 'none'", "frame-ancestors 'none'"} <= set(policy.split("; "))
        assert "unsafe" not in policy
        assert not [name for name in headers if name.lower().startswith("access-control-") or name.lower() == "server"]


def test_a_token_is_compared_in_constant_time(engine, serving, monkeypatch):
    compared = []
    monkeypatch.setattr("selfsent.serving.app.hmac.compare_digest", lambda *both: compared.append(both) or False)
    with serving(engine, token="s3cret") as url:
        assert ask(url, "/search", {"query": "a"}, Authorization="Bearer s3cret")[0] == 401
    assert compared == [(b"Bearer s3cret", b"Bearer s3cret")]


class Slow:
    """An engine that waits until it may answer."""

    model, about = "slow", {}

    def __init__(self):
        self.may = threading.Event()

    def with_rate(self, request):
        return request

    def work(self, pieces):
        self.may.wait(20)
        return [([], {}) for _ in pieces]


def test_who_comes_when_too_many_wait_is_told_to_come_again(serving):
    engine = Slow()
    with serving(engine, max_waiting=2) as url, ThreadPoolExecutor(20) as threads:
        asked = [threads.submit(ask, url, "/search", {"query": "a"}) for _ in range(20)]
        while sum(each.done() for each in asked) < 5:
            time.sleep(0.01)
        engine.may.set()
        answers = [each.result() for each in asked]
    assert {status for status, *_ in answers} == {200, 503}
    for status, headers, told in answers:
        if status == 503:
            assert headers["retry-after"] == "1"
            assert "come again" in told["error"]["message"]


def test_slow_answers_and_slow_clients_end(serving):
    engine = Slow()
    with serving(engine, timeout=0.3) as url:
        assert ask(url, "/search", {"query": "a"})[0] == 503
        engine.may.set()
        begun = b"POST /search HTTP/1.1\r\nHost: localhost\r\n"
        for sent, expected in ((begun + b"Content-Length: 99\r\n\r\n{", b"HTTP/1.1 408 "), (begun, b""), (b"", b"")):
            with socket.create_connection(urlsplit(url).netloc.split(":"), timeout=20) as client:
                client.sendall(sent)
                try:
                    assert client.recv(13) == expected
                except ConnectionResetError:
                    assert expected == b""


def test_long_headers_are_refused(url):
    assert ask(url, "/health", X="a" * 40_000)[0] == 400


def test_a_bug_is_logged_without_the_text(serving, capfd):
    class Broken(Slow):
        def work(self, pieces):
            raise KeyError(pieces[0].query)

    with serving(Broken()) as url:
        status, _, told = ask(url, "/search", {"query": "a secret text"})
    assert (status, told["error"]["message"]) == (500, "an error of the service")
    out, err = capfd.readouterr()
    assert "KeyError while answering /search" in err
    assert "secret" not in out + err


def test_the_description_is_served(url):
    status, _, told = ask(url, "/openapi.json")
    assert status == 200
    assert set(told["paths"]) == {"/search", "/v1/embeddings", "/v1/models", "/health"}


@pytest.mark.parametrize("name", ["passage", "search_document"])
def test_the_prompt_is_that_of_what_the_texts_are(index, serving, name):
    model = load_encoder("bundled")
    model.sentence_transformer.prompts = {"query": "find: ", "passage": "printer: "}
    with serving(Engine(Index(index), model)) as url:
        asked = {"query": "search_query", "passage": name, "": "clustering"}
        found = {
            side: ask(url, "/v1/embeddings", {"input": "a text", "input_type": name})[2]["data"][0]["embedding"]
            for side, name in asked.items()
        }
    expected = encode(load_encoder("bundled"), ["find: a text", "printer: a text", "a text"])
    expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    np.testing.assert_allclose([*found.values()], expected, atol=1e-6)


def test_nothing_here_is_told(index, serving, tmp_path):
    copy = tmp_path / "copy"
    shutil.copytree(index, copy)
    opened = Index(copy)
    scores = tuple(n / 20 for n in range(1, 20))  # the cut-off of 0.5 is 0.5
    write_calibration(copy, Calibration(scores, scores, opened.lexical_weight, "19 queries", len(opened), opened.rows))
    with serving(Engine(opened, load_encoder("bundled"), 0.5)) as url:
        nothing = ask(url, "/search", {"query": "quantum chromodynamics"})[2]
        assert (nothing["answered"], nothing["hits"], nothing["cutoff"]) == (False, [], 0.5)
        assert nothing["message"].startswith("nothing here (50 of 100 queries")
        found = ask(url, "/search", {"query": "The printer on the second floor does not answer.", "answer_rate": 0.9})[
            2
        ]
        assert (found["answered"], found["cutoff"], found["false_answer_rate"]) == (True, 0.1, 0.9474)
        assert "answered" not in ask(url, "/search", {"query": "a printer", "lexical_weight": 0})[2]
        status, _, told = ask(url, "/search", {"query": "a printer", "lexical_weight": 0, "answer_rate": 0.5})
        assert status == 400
        assert "no calibration for a weight of words of 0" in told["error"]["message"]
        assert ask(url, "/search", {"query": "a", "answer_rate": 1})[0] == 400
