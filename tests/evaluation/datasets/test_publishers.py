import json

import pytest

from selfsent.errors import DataError
from selfsent.evaluation.datasets import publishers as p
from selfsent.evaluation.datasets.declared import Store
from selfsent.evaluation.suites import TASKS


@pytest.fixture
def read(tmp_path):
    """What a reader makes of files with these contents."""

    def of(reader, *contents, encoding="utf-8"):
        paths = [tmp_path / f"file{number}" for number in range(len(contents))]
        for path, content in zip(paths, contents, strict=True):
            path.write_bytes((content if isinstance(content, str) else json.dumps(content)).encode(encoding))
        return reader(*paths)

    return of


SICK = "pair_ID\tsentence_A\tsentence_B\trelatedness_score\tentailment_judgment\n"
SCIDOCS = {
    "corpus": {"q": {"title": "Q"}, "a": {"title": "A"}, "b": {"title": None}, "r": {"title": ""}},
    "test": {"cite": {"q": {"a": 1, "b": 1}, "r": {"a": 1}}},
}


TWEETS = "a cat \tthe cat \t(4,6)\thttp://x\n\nb\tc\t(0,6)\thttp://y\n"
PIT = "7\ttopic\td e\td f\t3\tx/y\tz\n"
TITLES = "".join(f"{n}\ttitle {n}\tbody\n" for n in range(1, 6))
QUERIES = "1\t3\t2 3 4\t1.5 0.5 9.0\n5\t\t2 3\t1 2\n"
FORUMS = {"gis": {"q": "how", "a": "how to", "b": "why"}}, {"valid": {}, "test": {"gis": {"q": ["a"]}}}


@pytest.mark.parametrize(
    ("reader", "contents", "columns", "rows"),
    [
        (
            *(p.read_twitterpara, [TWEETS, PIT], "sentence1 sentence2 score subset"),
            [("a cat", "the cat", 4.0, "twitterurl"), ("b", "c", 0.0, "twitterurl"), ("d e", "d f", 3.0, "pit")],
        ),
        (  # in BM25 order, without queries that have no gold
            *(p.read_askubuntu, [TITLES, QUERIES], "query sentence1 sentence2 relevant"),
            [("1", "title 1", "title 4", 0), ("1", "title 1", "title 2", 0), ("1", "title 1", "title 3", 1)],
        ),
        (
            *(p.read_cqadupstack, FORUMS, "forum id text relevant"),
            [("gis", "q", "how", "a"), ("gis", "a", "how to", ""), ("gis", "b", "why", "")],
        ),
        (  # with untitled candidates, without untitled queries
            *(p.read_scidocs, [SCIDOCS], "subset query sentence1 id sentence2 relevant"),
            [("cite", "q", "Q", "a", "A", 1), ("cite", "q", "Q", "b", "", 1)],
        ),
        (p.read_sick, [SICK + "1\ta\tb\t4.5\tNEUTRAL\n"], "sentence1 sentence2 score", [("a", "b", 4.5)]),
        (p.read_laser, ["one\ntwo\n", "eins\nzwei\n"], "english other", [("one", "eins"), ("two", "zwei")]),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_what_publishers_ship_is_read(reader, contents, columns, rows, read):
    found = read(reader, *contents)
    assert list(found) == columns.split()
    assert list(zip(*found.values(), strict=True)) == rows


def test_afs_is_latin_1_with_score_first_and_sentences_last(read):
    heading = ",".join(f"column{number}" for number in range(11)) + "\n"
    files = [heading + f'{score}.5,{"x," * 8}"na\u00efve, {score}","second"\n' for score in (1, 2, 3)]
    assert read(p.read_afs, *files, encoding="iso-8859-1") == {
        "sentence1": ["na\u00efve, 1", "na\u00efve, 2", "na\u00efve, 3"],
        "sentence2": ["second"] * 3,
        "score": [1.5, 2.5, 3.5],
        "subset": ["death penalty", "gun control", "gay marriage"],
    }


def test_trec_is_latin_1(read):
    text = "NUM:dist How far is \u00e9 ?\nDESC:def What is x ?\n"
    expected = {"text": ["How far is \u00e9 ?", "What is x ?"], "label": [5, 1]}
    assert read(p.read_trec, text, encoding="iso-8859-1") == expected


@pytest.mark.parametrize(
    ("reader", "contents", "message"),
    [
        (p.read_askubuntu, ["1\ttitle\tbody\n", "1\t2\t2\t1.0\n"], "lacks the question 2"),
        (p.read_trec, ["XYZ:dist How far ?\n"], "none of the classes"),
        (p.read_sick, ["a\tb\tc\td\n1\ta\n"], "file0, line 2: 2 fields"),
        (p.read_scidocs, ["{"], "is not JSON"),
        (p.read_laser, ["one\ntwo\n", "eins\n"], "file1 has 1 lines, file0 2: fetch both again"),
    ],
)
def test_damaged_files_are_named(reader, contents, message, read):
    with pytest.raises(DataError, match=message):
        read(reader, *contents)


def test_a_wrong_encoding_is_named(read):
    with pytest.raises(DataError, match="is not utf-8"):
        read(p.read_sick, "a\tb\tc\u00e9\td\n", encoding="iso-8859-1")


def test_the_mirrors_table_equals_the_publishers_files(mirror):
    (dataset,) = TASKS["twitterpara"].datasets
    table = Store(mirror).load(dataset)
    assert table.warnings == ()
    assert dataset.reader(*(mirror / file for file in dataset.files)) == {name: table[name] for name in dataset.columns}
