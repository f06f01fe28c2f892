"""Judgements through the service: what is kept, and what an attacker may try."""

import csv
import json

import pytest
from tests.serving.conftest import HOSTILE
from tests.serving.test_app import ask

from selfsent.cli import main
from selfsent.data.judgements import Judgements
from selfsent.index import Index
from selfsent.models.loading import load_encoder
from selfsent.serving.engine import Engine
from selfsent.serving.judging import Judging

JSON = {"Content-Type": "application/json"}
YES = {"query": "printer is dead", "id": "T-1", "relevant": True}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "mine.csv"


@pytest.fixture
def judged(engine, serving, path):
    """The address of a service that keeps judgements in `path`."""
    with serving(engine, judging=Judging(engine.index, Judgements(path))) as url:
        yield url


def rows(path):
    with path.open(newline="") as file:
        return list(csv.reader(file))


def test_nobody_is_asked_unless_it_is_wanted(url):
    assert ask(url, "/judge", YES, **JSON)[0] == 404
    assert "judged" not in ask(url, "/health")[2]
    assert "judged" not in ask(url, "/search", {"query": "printer"})[2]
    assert "/judge" not in ask(url, "/openapi.json")[2]["paths"]


def test_a_judgement_is_kept_shown_changed_and_taken_back(judged, path):
    assert ask(judged, "/health")[2]["judged"] == 0
    assert ask(judged, "/judge", YES, **JSON)[2] == {"judged": 1, "answered": 1}
    assert ask(judged, "/judge", YES | {"id": "T-3", "relevant": False}, **JSON)[2] == {"judged": 2, "answered": 1}
    told = ask(judged, "/search", {"query": " printer  is dead", "top": 7})[2]
    assert [each["id"] for each in told["judged"]] == [hit["id"] for hit in told["hits"]]
    by_id = {each["id"]: each["relevant"] for each in told["judged"]}
    assert (by_id["T-1"], by_id["T-3"], by_id["T-2"]) == (True, False, None)
    assert rows(path) == [["query", "id", "relevant"], [YES["query"], "T-1", "1"], [YES["query"], "T-3", "0"]]
    ask(judged, "/judge", YES | {"relevant": False}, **JSON)
    assert ask(judged, "/judge", YES | {"id": "T-3", "relevant": None}, **JSON)[2] == {"judged": 1, "answered": 0}
    assert rows(path)[1:] == [[YES["query"], "T-1", "0"]]
    schema = ask(judged, "/openapi.json")[2]["paths"]["/judge"]["post"]["requestBody"]["content"]["application/json"]
    assert schema["schema"]["required"] == ["query", "id"]


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({"Content-Type": "text/plain"}, 415),  # what a form may send without being asked
        ({"Content-Type": "application/x-www-form-urlencoded"}, 415),
        ({}, 415),
        (JSON | {"Sec-Fetch-Site": "cross-site"}, 403),
        (JSON | {"Sec-Fetch-Site": "same-site", "Origin": "http://localhost:1"}, 403),
        (JSON | {"Origin": "http://evil.example"}, 403),
        (JSON | {"Origin": "http://127.0.0.1:1"}, 403),  # another port of this machine
        (JSON | {"Origin": "null"}, 403),
        (JSON | {"Origin": "http://["}, 403),
        (JSON | {"Host": "evil.example"}, 421),
        (JSON | {"Sec-Fetch-Site": "same-origin", "Origin": "https://behind.a.proxy"}, 200),
        ({"Content-Type": "Application/JSON; charset=utf-8"}, 200),
    ],
)
def test_pages_of_elsewhere_write_nothing(engine, serving, path, headers, expected):
    names = ("localhost", "127.0.0.1")
    with serving(engine, names=names, judging=Judging(engine.index, Judgements(path))) as url:
        assert ask(url, "/judge", YES, **headers)[0] == expected
        assert path.exists() == (expected == 200)
        assert ask(url, "/judge", YES, method="OPTIONS", **JSON)[0] == 404  # what a browser asks before it sends JSON
        own = JSON | {"Origin": url}
        assert ask(url, "/judge", YES, **own)[0] == 200


def test_who_has_no_token_writes_nothing(engine, serving, path):
    with serving(engine, token="s3cret", judging=Judging(engine.index, Judgements(path))) as url:
        assert ask(url, "/judge", YES, **JSON)[0] == 401
        assert not path.exists()
        assert "judged" not in ask(url, "/health")[2]
        assert ask(url, "/judge", YES, **JSON, Authorization="Bearer s3cret")[0] == 200


@pytest.mark.parametrize(
    ("body", "status", "said"),
    [
        (YES | {"id": "T-99"}, 400, "no text with this id"),
        (YES | {"id": "T-1' OR '1'='1"}, 400, "no text with this id"),
        (YES | {"id": "../../etc/passwd"}, 400, "no text with this id"),
        (YES | {"id": 1}, 400, "id must be a text"),
        (YES | {"id": "a" * 2000}, 400, "id is too long"),
        (YES | {"query": "a" * 1001}, 400, "query is too long to be judged"),
        (YES | {"query": " "}, 400, "query is empty"),
        (YES | {"relevant": 1}, 400, "relevant must be true or false"),
        (YES | {"path": "/tmp/x.csv"}, 400, "there is no 'path'"),
        ({"query": "a"}, 400, "id is missing"),
        (b"[" * 100_000, 400, "no JSON"),
        (b" " * 5_000_000, 413, "larger than"),
    ],
)
def test_what_is_no_judgement_is_refused(judged, path, body, status, said):
    answer = ask(judged, "/judge", body, **JSON)
    assert answer[0] == status
    assert said in answer[2]["error"]["message"]
    assert not path.exists()


@pytest.mark.parametrize(
    "query", [*HOSTILE, '=HYPERLINK("http://evil.example")', 'a","T-2","1\nx,T-3,1', "a\x00b\x1b[31m", "\ud800 lone"]
)
def test_hostile_queries_are_one_cell(judged, path, query):
    body = json.dumps(YES | {"query": query}).encode()
    assert ask(judged, "/judge", body, **JSON)[0] == 200
    [_, (kept, name, relevant)] = rows(path)
    assert (name, relevant) == ("T-1", "1")
    assert "\n" not in kept
    told = ask(judged, "/search", json.dumps({"query": query}).encode())[2]
    assert {each["relevant"] for each in told["judged"] if each["id"] == "T-1"} == {True}


def test_a_disk_that_is_full_is_told_and_nothing_is_lost(judged, path, monkeypatch):
    ask(judged, "/judge", YES, **JSON)
    before = path.read_bytes()

    def full(*given):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("selfsent.files.os.fsync", full)
    status, _, told = ask(judged, "/judge", YES | {"id": "T-2"}, **JSON)
    assert (status, "No space left" in told["error"]["message"]) == (400, True)
    assert path.read_bytes() == before
    assert ask(judged, "/search", {"query": YES["query"]})[2]["judged"].count({"id": "T-2", "relevant": None}) == 1


def test_numbers_that_no_browser_holds_are_told_as_text(serving, tmp_path, path):
    (tmp_path / "t.csv").write_text("id,body\n9007199254740993,the printer\n9007199254740992,an invoice\n")
    made = ["index", "bundled", str(tmp_path / "t.csv"), "--text-column", "body", "--id-column", "id"]
    with pytest.raises(SystemExit, match="0"):
        main([*made, "--output", str(tmp_path / "i")])
    engine = Engine(Index(tmp_path / "i"), load_encoder("bundled"))
    with serving(engine, judging=Judging(engine.index, Judgements(path))) as url:
        first = ask(url, "/search", {"query": "printer"})[2]["judged"][0]
        assert first == {"id": "9007199254740993", "relevant": None}
        assert ask(url, "/judge", {"query": "printer", "id": first["id"], "relevant": True}, **JSON)[0] == 200
        for other in ("9007199254740994", "9007199254740993.0", "1e400", "9_007199254740993", "9" * 30, "x"):
            assert ask(url, "/judge", {"query": "printer", "id": other, "relevant": True}, **JSON)[0] == 400
    assert rows(path)[1:] == [["printer", "9007199254740993", "1"]]
