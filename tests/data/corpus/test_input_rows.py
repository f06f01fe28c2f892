import json
import random

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from selfsent.data.corpus import read_corpus
from selfsent.data.corpus.table import DESCRIPTION
from selfsent.errors import CorpusError, SettingsError
from selfsent.integrity import signed

ROWS = [
    {"id": 7, "text": "It  rains. It pours.", "team": "a", "share": 0.5, "new": True},
    {"id": 8, "text": "", "team": None, "share": 1, "new": False},
    {"id": 9, "text": "It rains. It pours. ", "team": "b, c", "share": None, "new": True},
    {"id": 10, "text": "It pours.", "team": "ü", "share": -2.25, "new": None},
]


@pytest.fixture
def inputs(read, tmp_path):
    """The input rows of a table written to a file."""

    def call(rows=ROWS, suffix=".csv", **options):
        path = tmp_path / f"p{suffix}"
        if suffix == ".jsonl":
            path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        elif suffix == ".parquet":
            pq.write_table(pa.Table.from_pylist(rows), path)
        else:
            mark = "\t" if suffix == ".tsv" else ";"
            lines = [mark.join("" if cell is None else str(cell) for cell in row.values()) for row in rows]
            path.write_text("\n".join([mark.join(rows[0]), *lines]) + "\n", encoding="utf-8")
        call.corpus = read(path, **options)
        return call.corpus.input_rows

    return call


def test_every_row_of_the_input_is_known(inputs):
    found = inputs(metadata_columns=("id",))
    assert inputs.corpus.texts() == ["It rains. It pours.", "It pours."]
    arrays = [each.tolist() for each in (found.corpus_rows, found.first, found.repeats)]
    assert arrays == [[0, -1, 0, 1], [0, 3], [2, 1]]
    assert (len(found), found.rows, found.split, found.dropped) == (4, 4, False, 1)
    assert found.describe(np.array([3, 0])) == {"row": [3, 0], "id": [10, 7]}
    found = inputs(metadata_columns=("id",), split_sentences=True)
    assert found.corpus_rows.tolist() == [0, 1, -1, 0, 1, 1]
    assert (len(found), found.rows, found.split) == (6, 4, True)
    expected = {"row": [0, 0, 1, 2, 2, 3], "sentence": [0, 1, 0, 0, 1, 0], "id": [7, 7, 8, 9, 9, 10]}
    assert found.describe(np.arange(6)) == expected


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".jsonl", ".parquet"])
def test_metadata_values_keep_their_kind(inputs, suffix):
    found = inputs(suffix=suffix, metadata_columns=("id", "team", "share", "new"))
    cells, typed = found.describe(np.arange(4)), suffix in (".jsonl", ".parquet")
    assert (cells["id"], cells["team"]) == ([7, 8, 9, 10], ["a", None, "b, c", "ü"])
    assert list(found.columns.values()) == [int, int, str, *((float, bool) if typed else (str, str))]
    assert cells["share"] == ([0.5, 1.0, None, -2.25] if typed else ["0.5", "1", None, "-2.25"])
    assert not typed or cells["new"] == [True, False, True, None]


def test_odd_values(inputs):
    rows = [{"text": f"text {n}", "zero": zero, "large": 10**n, "long": "9" * n} for n, zero in ((3, "007"), (30, "7"))]
    cells = inputs(rows, metadata_columns=("zero", "large", "long")).describe(
        np.arange(2)
    )  # what only looks like a number is text
    expected = {"zero": ["007", "7"], "large": ["1000", "1" + "0" * 30], "long": ["999", "9" * 30]}
    assert cells == {"row": [0, 1], **expected}
    rows = [{"text": "one", "x": {"a": [1]}}, {"text": "two", "x": float("nan")}, {"text": "three", "x": 3}]
    assert inputs(rows, ".jsonl", metadata_columns="x").describe(np.arange(3))["x"] == ['{"a": [1]}', None, "3"]
    rows = [{"text": "ba de", "id": b"a-1"}, {"text": "ko mi", "id": b"\xff"}]
    assert inputs(rows, ".parquet", metadata_columns="id").describe(np.arange(2))["id"] == ["a-1", "\\xff"]


@pytest.mark.parametrize("split", [False, True])
def test_batches_of_any_size_make_the_same(inputs, monkeypatch, split):
    draw = random.Random(0)
    some = [
        "It rains.",
        "It pours. It rains.",
        "",
        "  ",
        "So it goes.",
        "It  pours.",
        *(f"Day {n}." for n in range(30)),
    ]
    rows = [{"text": draw.choice(some), "id": n} for n in range(200)]
    inputs(rows, metadata_columns=("id",), split_sentences=split)
    fingerprint = inputs.corpus.fingerprint
    monkeypatch.setattr("selfsent.data.corpus.batch.BATCH_ROWS", 7)
    monkeypatch.setattr("selfsent.data.corpus.formats.BATCH_ROWS", 7)
    found = inputs(rows, metadata_columns=("id",), split_sentences=split)
    assert inputs.corpus.fingerprint == fingerprint
    texts = inputs.corpus.texts()
    whole = [(row["id"], " ".join(row["text"].split())) for row in rows]
    border = ".\n" if split else ". "
    pieces = [(n, at, part) for n, text in whole for at, part in enumerate(text.replace(". ", border).split("\n"))]
    cells = found.describe(np.arange(len(found)))
    assert cells["id"] == cells["row"] == [number for number, _, _ in pieces]
    assert cells.get("sentence", [0] * 200) == [place for _, place, _ in pieces]
    expected = ["" if row < 0 else texts[row] for row in found.corpus_rows]
    assert expected == [text for _, _, text in pieces]
    assert [expected.index(text) for text in texts] == found.first.tolist()
    assert [expected.count(text) for text in texts] == found.repeats.tolist()


def test_blank_lines_and_excluded_texts_are_inputs(read, write):
    assert read(write("p.txt", "one\n\ntwo\none\n\n"), metadata_columns=()).input_rows.corpus_rows.tolist() == [
        0,
        -1,
        1,
        0,
        -1,
    ]
    found = read(["one", "two", "three"], metadata_columns=(), exclude=write("test.txt", "Two!\n")).input_rows
    assert found.corpus_rows.tolist() == [0, -1, 1]


def test_each_choice_of_columns_has_a_table_of_its_own(inputs):
    found = []
    for options in (
        {},
        *({"metadata_columns": metadata_columns} for metadata_columns in ((), ("id",), ("team",), ("id", "team"))),
    ):
        inputs(**options)
        found.append(inputs.corpus)
    assert len({corpus.fingerprint for corpus in found}) == len({corpus.directory for corpus in found}) == 5
    assert len({tuple(corpus.texts()) for corpus in found}) == 1
    plain = found[0]
    assert plain.input_rows.corpus_rows.tolist() == found[1].input_rows.corpus_rows.tolist() == [0, -1, 0, 1]
    inputs([{**row, "id": row["id"] + 1} for row in ROWS], metadata_columns=("id",))
    assert inputs.corpus.fingerprint != found[2].fingerprint


def test_rows_that_cannot_be_counted_are_not(inputs):
    found = inputs(where={"team": ["b, c", "ü"]})
    assert found.corpus_rows.tolist() == found.first.tolist() == list(range(len(inputs.corpus)))


def test_the_old_argument_and_tables_of_earlier_versions_are_read(inputs):
    with pytest.warns(DeprecationWarning, match=r"read_corpus\(carry=\) is deprecated: use metadata_columns="):
        inputs(carry="id")
    path = inputs.corpus.directory / DESCRIPTION
    description = json.loads(path.read_text(encoding="utf-8"))
    description["carried"] = description.pop("metadata_columns")
    path.write_text(json.dumps(signed(description)), encoding="utf-8")
    written = path.stat().st_mtime_ns
    assert inputs(metadata_columns="id").describe(np.arange(2)) == {"row": [0, 1], "id": [7, 8]}
    assert path.stat().st_mtime_ns == written  # the table was not made again


def test_a_corpus_tells_what_it_was_read_with(inputs, read, write):
    inputs(metadata_columns="id")
    assert (inputs.corpus.read_columns, inputs.corpus.cleaners) == (("text",), ())
    files = [{"source": write(f"{n}.csv", "a,b\nba de,ko\n")} for n in range(2)]
    both = read(files, text_column=["a", "b"], clean="urls", min_rows=1)
    assert (both.read_columns, both.cleaners) == (("a", "b"), ("urls",))


def test_what_cannot_be_metadata(inputs, read):
    with pytest.raises(CorpusError, match="no column 'nr'; it has 'id', 'text'"):
        inputs(metadata_columns=("nr",))
    with pytest.raises(SettingsError, match="cannot be counted"):
        inputs(metadata_columns=(), where={"team": "a"})
    with pytest.raises(CorpusError, match="no columns but the text"):
        read("python:stdlib", metadata_columns=("nr",))


def test_tables_with_the_same_texts_have_rows_of_their_own(tmp_path):
    """Tables in memory are known by their texts alone; which row holds which is another matter."""
    tables = (["a b", "c d", "a b"], ["a b", "c d", "c d"], ["a b", "", "c d"])
    corpora = [read_corpus(table, cache=tmp_path) for table in tables]
    assert [corpus.input_rows.corpus_rows.tolist() for corpus in corpora] == [[0, 1, 0], [0, 1, 1], [0, -1, 1]]
    assert len({corpus.fingerprint for corpus in corpora}) == 1
