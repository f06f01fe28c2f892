"""Queries for texts: taken from them, or asked of a language model; the round trip, and going on."""

import pyarrow.parquet as pq
import pytest

from augment.test_endpoint import endpoint
from selfsent.errors import AugmenterError, DataError, OutputError, SettingsError
from selfsent.exam.exam import Text
from selfsent.exam.queries import PROMPT, make_queries, queries_in
from tiny import heard, make_sentences
from web import answered, answering as serving


def documents(count):
    sentences = make_sentences(4 * count, words=(6, 9))
    return [Text(str(n), (), tuple(sentences[4 * n : 4 * n + 4])) for n in range(count)]


def extract(number, question, headers):
    """What the stand-in says: two runs of words of the text that it reads."""
    text = question["messages"][0]["content"].rpartition("Text: ")[2].partition("\nQueries")[0]
    words = text.split()
    return 200, answered(f'<think>1. well</think>Queries:\n1. {" ".join(words[:5])}\n- "{" ".join(words[6:11])}"'), {}


@pytest.mark.parametrize(
    ("answer", "found"),
    [
        ("1. printer is dead\n2) no paper\n", ["printer is dead", "no paper"]),
        ('- "printer is dead"\n* printer is dead', ["printer is dead"]),
        ("Here are the queries:\nQuery 1: no paper", ["no paper"]),
        ("<think>1. not this", []),
        ("the text\n" + "x" * 400, []),
        ("401k rollover\na\x00b\x1b[31m", ["401k rollover", "ab[31m"]),
        ("a b\nb c\nc d\nd e", ["a b", "b c", "c d"]),
        ("3.5 inch disk\n2) 10:30 train\n- -40 degrees", ["3.5 inch disk", "10:30 train", "-40 degrees"]),
        ("1.no space\n-2) a mark\n3:  2.4 GHz", ["no space", "a mark", "2.4 GHz"]),
        ("1. 1.1.1.1.1.1\n?\n打印机", ["打印机"]),  # SmolLM2 counts
        ("Screen frozen what to do?\nHow do I restart the device.\nno light", ["no light"]),  # and repeats the prompt
    ],
)
def test_queries_in_what_a_model_writes(answer, found):
    assert queries_in(answer, "the text", 3, PROMPT) == found


def test_what_a_model_repeats_of_its_question_is_no_query(tmp_path):
    def reply(number, question, headers):
        asked = question["messages"][0]["content"]
        said = asked if number % 2 else f"The user wants\nsome queries.</think>{asked}\nwho is {number}"
        return 200, answered(said), {}

    with serving(reply) as (url, _), endpoint(url) as server:
        made = make_queries(documents(40), tmp_path / "queries.jsonl", endpoint=server, round_trip=0)
    assert {row["query"].rpartition(" ")[0] for row in made.rows} == {"who is"}
    assert (made.made, made.without) == (20, 20)


def test_parts_of_texts_find_the_rest_of_theirs(tmp_path):
    output = tmp_path / "queries.parquet"
    made = make_queries(documents(40), output, base="bundled", round_trip=20)
    rows = pq.read_table(output).to_pylist()
    assert rows == made.rows
    assert 0 < len(rows) <= made.made == 40
    assert {row["kind"] for row in rows} == {"sentence"}
    assert all(1 <= row["rank"] <= 20 and row["query"] not in row["text"] for row in rows)


def test_an_interrupted_call_asks_only_what_is_left(tmp_path):
    texts, output, told, down = documents(70), tmp_path / "queries.jsonl", [], [True]

    def reply(number, question, headers):
        return (500, b"", {}) if down[0] and number > 64 else extract(number, question, headers)

    with serving(reply) as (url, asked), endpoint(url, tries=1) as server:
        with pytest.raises(AugmenterError, match="gave no answer to 6 questions"):
            make_queries(texts, output, endpoint=server, progress=heard(notice=told.append))
        assert not output.exists()
        asked.clear()
        down[0] = False
        again = make_queries(texts, output, endpoint=server, progress=heard(notice=told.append))
        assert len(asked) == 6
        whole = make_queries(texts, tmp_path / "whole.jsonl", endpoint=server)
    assert again.rows == whole.rows
    assert [line.partition(" questions")[0].rpartition(" ")[2] for line in told] == ["70", "6"]
    assert not output.with_name("queries.jsonl.parts").exists()


def test_what_is_refused(tmp_path):
    (tmp_path / "there.csv").write_text("")
    texts = documents(4)
    for output, options, kind, why in [
        ("there.csv", {}, OutputError, "exists already"),
        ("there.txt", {}, SettingsError, "must end in"),
        ("new.csv", {"prompt": "write {count}"}, SettingsError, "{text}"),
    ]:
        with pytest.raises(kind, match=why):
            make_queries(texts, tmp_path / output, **options)
    with pytest.raises(DataError, match="no texts"):
        make_queries([], tmp_path / "new.csv")
    with (
        serving(lambda *a: (200, answered("Queries:"), {})) as (url, _),
        endpoint(url) as server,
        pytest.raises(DataError, match=r"no answer holds any.*give another `prompt`"),
    ):
        make_queries(texts, tmp_path / "new.csv", endpoint=server)
    assert "{text}" in PROMPT
    assert not (tmp_path / "new.csv").exists()
