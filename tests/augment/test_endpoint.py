"""A language model behind an address: what servers do wrong, and what stays secret."""

import json
import threading
import time

import pytest

from selfsent.augment.endpoint import Endpoint
from selfsent.errors import AugmenterError, SettingsError
from web import answered, answering as serving

SECRET = "sk-not-to-be-shown"


def endpoint(url, **options):
    return Endpoint(url, "tiny", **{"timeout": 5, "tries": 2, "pause": 0.01, **options})


def test_asks_as_openais_clients_do_with_the_key_of_the_environment(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    with (
        serving(lambda number, question, headers: (200, answered(question["messages"][0]["content"].upper()), {})) as (
            url,
            asked,
        ),
        endpoint(url + "/") as server,
    ):
        assert server.answers(["a", "b", "c"]) == ["A", "B", "C"]
    path, question, headers = asked[0]
    assert (path, question["model"], question["stream"]) == ("/v1/chat/completions", "tiny", False)
    assert headers["Authorization"] == f"Bearer {SECRET}"


@pytest.mark.parametrize(
    ("said", "found"), [("printer dead\nhow to", "printer dead"), ("how to", "how to"), ("a\nb\n", "a")]
)
def test_a_last_line_that_was_cut_off_is_left_out(said, found):
    """SmolLM2 at 40 tokens ends in the middle of a query."""
    body = json.dumps({"choices": [{"message": {"content": said}, "finish_reason": "length"}]}).encode()
    with serving(lambda *a: (200, body, {})) as (url, _), endpoint(url) as server:
        assert server.answers(["a"]) == [found]


NONSENSE = [b"", b"<html>", b"[" * 100_000, b"{}", b'{"choices": []}', b'{"choices": [{"message": {"content": 7}}]}']


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        *((lambda *a, body=body: (200, body, {}), "no usable answer") for body in NONSENSE),
        (lambda *a: (200, b"x" * (2 << 20), {}), "no usable answer"),
        (lambda *a: (503, b"busy", {"Retry-After": "0"}), "status 503"),
    ],
)
def test_a_server_that_answers_nothing_of_use_is_asked_again_then_given_up(reply, reason):
    with serving(reply) as (url, asked), endpoint(url, timeout=0.4) as server:
        with pytest.raises(
            AugmenterError, match=rf"no answer to 2 questions in a row \({reason}\).*same command again"
        ):
            server.answers(["a", "b"])
        assert len(asked) == 4
        assert server.failed[reason] == 2


@pytest.mark.parametrize("late", [lambda *a: (200, [b" "] * 40, {}), lambda *a: (time.sleep(1), (200, b"", {}))[1]])
def test_a_question_that_was_too_slow_is_not_sent_again(late):
    """A server goes on with an answer that was given up, and SmolLM2's wrote each of them four times."""
    with serving(late) as (url, asked), endpoint(url, timeout=0.2, parallel=2) as server:
        with pytest.raises(AugmenterError, match=r"to 3 questions in a row \(too slow\).* a `timeout` above 0.2, or a"):
            server.answers(["a", "b", "c"])
        assert len(asked) == 3
        asked.clear()
        with pytest.raises(AugmenterError, match=r"no answer to [4-6] questions"):  # three of them before
            server.answers(["a", *"b" * 20])
        assert len(asked) < 6


def test_a_server_that_answers_one_after_the_other_has_time_for_all_that_it_was_asked():
    turn = threading.Lock()

    def one_by_one(number, question, headers):
        with turn:
            time.sleep(0.3)
        return 200, answered("yes"), {}

    with serving(one_by_one) as (url, asked), endpoint(url, timeout=0.8) as server:
        assert server.answers(["a", "b", "c", "d"]) == ["yes"] * 4  # 1.2 seconds for the last one
        assert len(asked) == 4


def test_one_failure_among_others_is_counted_and_a_busy_server_is_waited_for():
    def reply(number, question, headers):
        text = question["messages"][0]["content"]
        return (429, b"", {}) if number == 1 else (200, answered("" if text == "b" else text), {})

    with serving(reply) as (url, asked), endpoint(url, parallel=1) as server:
        assert server.answers(["a", "b"]) == ["a", ""]
        assert server.failed == {"no usable answer": 1}
        assert len(asked) == 4


@pytest.mark.parametrize("status", [400, 401, 404, 307])
def test_a_refusal_ends_it_at_once_and_never_shows_or_forwards_the_key(monkeypatch, status):
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    body = json.dumps({"error": {"message": f"no model for {SECRET}" if status == 404 else "no such model"}}).encode()
    with (
        serving(lambda *a: (status, body, {"Location": "http://localhost:1/elsewhere"})) as (url, asked),
        endpoint(url) as server,
        pytest.raises(AugmenterError, match=f"refused with status {status}") as refused,
    ):
        server.answers(["a"])
    assert len(asked) == 1
    assert SECRET not in str(refused.value)
    assert ("no such model" in str(refused.value)) == (status in (400, 307))


@pytest.mark.parametrize(
    ("url", "model", "why"),
    [
        ("ftp://here/v1", "tiny", "is no address like"),
        ("http://name:word@here/v1", "tiny", "^here is no address like"),
        ("http://localhost:1/v1", "", "give llm"),
        ("http://example.org/v1", "tiny", "unencrypted"),
    ],
)
def test_addresses_that_are_refused(monkeypatch, url, model, why):
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    with pytest.raises(SettingsError, match=why):
        Endpoint(url, model)


def test_a_server_that_is_not_there():
    with endpoint("http://127.0.0.1:9/v1") as server, pytest.raises(AugmenterError, match="gave no answer to 1"):
        server.answers(["a"])
