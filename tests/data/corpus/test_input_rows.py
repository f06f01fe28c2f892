import json
import random

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from selfsent.data.corpus import read_corpus
from selfsent.errors import CorpusError, SettingsError

ROWS = [
    {"id": 7, "text": "It  rains. It pours.", "team": "a", "share": 0.5, "new": True},
    {"id": 8, "text": "", "team": None, "share": 1, "new": False},
    {"id": 9, "text": "It rains. It pours. ", "team": "b, c", "share": None, "new": True},
    {"id": 10, "text": "It pours.", "team": "ü", "share": -2.25, "new": None},
]


def written(path, rows=ROWS):
    if path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    elif path.suffix == ".parquet":
        pq.write_table(pa.Table.from_pylist(rows), path)
    else:
        between = "\t" if path.suffix == ".tsv" else ";"
        lines = [between.join("" if cell is None else str(cell) for cell in row.values()) for row in rows]
        path.write_text("\n".join([between.join(rows[0]), *lines]) + "\n", encoding="utf-8")
    return path


def test_every_row_of_the_input_is_known(tmp_path):
    corpus = read_corpus(written(tmp_path / "p.csv"), carry=("id",), cache=tmp_path)
    inputs = corpus.input_rows
    assert corpus.texts() == ["It rains. It pours.", "It pours."]
    assert [each.tolist() for each in (inputs.corpus_rows, inputs.first, inputs.repeats)] == [
        [0, -1, 0, 1],
        [0, 3],
        [2, 1],
    ]
    assert (len(inputs), inputs.rows, inputs.split, inputs.dropped) == (4, 4, False, 1)
    assert inputs.describe(np.array([3, 0])) == {"row": [3, 0], "id": [10, 7]}
    inputs = read_corpus(tmp_path / "p.csv", carry=("id",), split_sentences=True, cache=tmp_path).input_rows
    assert inputs.corpus_rows.tolist() == [0, 1, -1, 0, 1, 1]
    assert (len(inputs), inputs.rows, inputs.split) == (6, 4, True)
    expected = {"row": [0, 0, 1, 2, 2, 3], "sentence": [0, 1, 0, 0, 1, 0], "id": [7, 7, 8, 9, 9, 10]}
    assert inputs.describe(np.arange(6)) == expected


@pytest.mark.parametrize("ending", [".csv", ".tsv", ".jsonl", ".parquet"])
def test_carried_values_keep_their_kind(tmp_path, ending):
    names = ("id", "team", "share", "new")
    inputs = read_corpus(written(tmp_path / f"p{ending}"), carry=names, cache=tmp_path).input_rows
    found = inputs.describe(np.arange(4))
    assert found["id"] == [7, 8, 9, 10]
    assert found["team"] == ["a", None, "b, c", "ü"]
    if ending in (".jsonl", ".parquet"):
        assert list(inputs.columns.values()) == [int, int, str, float, bool]
        assert found["share"] == [0.5, 1.0, None, -2.25]
        assert found["new"] == [True, False, True, None]
    else:
        assert list(inputs.columns.values()) == [int, int, str, str, str]
        assert found["share"] == ["0.5", "1", None, "-2.25"]


def test_odd_values(tmp_path):
    rows = [{"text": f"text {n}", "zero": zero, "large": 10**n, "long": "9" * n} for n, zero in ((3, "007"), (30, "7"))]
    inputs = read_corpus(written(tmp_path / "p.csv", rows), carry=("zero", "large", "long"), cache=tmp_path).input_rows
    found = inputs.describe(np.arange(2))  # what only looks like a number stays text
    expected = {"zero": ["007", "7"], "large": ["1000", "1" + "0" * 30], "long": ["999", "9" * 30]}
    assert found == {"row": [0, 1], **expected}
    rows = [{"text": "one", "x": {"a": [1]}}, {"text": "two", "x": float("nan")}, {"text": "three", "x": 3}]
    inputs = read_corpus(written(tmp_path / "p.jsonl", rows), carry=("x",), cache=tmp_path).input_rows
    assert inputs.columns["x"] is str
    assert inputs.describe(np.arange(3))["x"] == ['{"a": [1]}', None, "3"]
    rows = [{"text": "ba de", "id": b"a-1"}, {"text": "ko mi", "id": b"\xff"}]
    corpus = read_corpus(written(tmp_path / "p.parquet", rows), carry=("id",), cache=tmp_path)
    assert corpus.input_rows.describe(corpus.input_rows.first[[0, 1]])["id"] == ["a-1", "\\xff"]


@pytest.mark.parametrize("split", [False, True])
def test_batches_of_any_size_make_the_same(tmp_path, monkeypatch, split):
    draw = random.Random(0)
    some = ["It rains.", "It pours. It rains.", "", "  ", "So it goes.", "It  pours."]
    some += [f"Day {n}." for n in range(30)]
    rows = [{"text": draw.choice(some), "id": n} for n in range(200)]
    path = written(tmp_path / "p.csv", rows)
    whole = read_corpus(path, carry=("id",), split_sentences=split, cache=tmp_path / "a")
    monkeypatch.setattr("selfsent.data.corpus.formats.BATCH_ROWS", 7)
    corpus = read_corpus(path, carry=("id",), split_sentences=split, cache=tmp_path / "b")
    assert corpus.fingerprint == whole.fingerprint
    inputs, texts = corpus.input_rows, corpus.texts()
    pieces = [
        (row["id"], place, piece)
        for row in rows
        for place, piece in enumerate(row["text"].strip().replace("  ", " ").replace(". ", ".\n").split("\n"))
    ]
    if not split:
        pieces = [(row["id"], 0, " ".join(row["text"].split())) for row in rows]
    found = inputs.describe(np.arange(len(inputs)))
    assert found["id"] == found["row"] == [number for number, _, _ in pieces]
    assert found.get("sentence", [0] * 200) == [place for _, place, _ in pieces]
    expected = ["" if row < 0 else texts[row] for row in inputs.corpus_rows]
    assert expected == [text for _, _, text in pieces]
    assert [expected.index(text) for text in texts] == inputs.first.tolist()
    assert [expected.count(text) for text in texts] == inputs.repeats.tolist()


def test_blank_lines_and_what_is_left_out(tmp_path):
    (tmp_path / "p.txt").write_text("one\n\ntwo\none\n\n")
    inputs = read_corpus(tmp_path / "p.txt", carry=(), cache=tmp_path).input_rows
    assert inputs.corpus_rows.tolist() == [0, -1, 1, 0, -1]
    (tmp_path / "test.txt").write_text("Two!\n")
    inputs = read_corpus(["one", "two", "three"], carry=(), exclude=tmp_path / "test.txt", cache=tmp_path).input_rows
    assert inputs.corpus_rows.tolist() == [0, -1, 1]


def test_tables_with_and_without_columns_are_apart(tmp_path):
    path = written(tmp_path / "p.csv")
    plain = read_corpus(path, cache=tmp_path)
    others = [read_corpus(path, carry=carry, cache=tmp_path) for carry in ((), ("id",), ("team",), ("id", "team"))]
    corpora = [plain, *others]
    assert len({corpus.fingerprint for corpus in corpora}) == len({corpus.directory for corpus in corpora}) == 5
    assert all(corpus.texts() == plain.texts() for corpus in others)
    names = {file.name for file in plain.directory.iterdir()}
    assert names == {"table.arrow", "corpus.json"}  # it costs nothing where nobody asks
    assert plain.input_rows.corpus_rows.tolist() == plain.input_rows.first.tolist() == [0, 1]


def test_a_carried_value_that_changes_makes_another_table(tmp_path):
    one, other = ([{"text": text, "id": text + end} for text in ("one", "two")] for end in ("a", "b"))
    found = [read_corpus(written(tmp_path / "p.jsonl", rows), carry=("id",), cache=tmp_path) for rows in (one, other)]
    assert found[0].fingerprint != found[1].fingerprint


def test_what_cannot_be_carried(tmp_path):
    with pytest.raises(CorpusError, match="no column 'nr'; it has 'id', 'text'"):
        read_corpus(written(tmp_path / "p.csv"), carry=("nr",), cache=tmp_path)
    with pytest.raises(CorpusError, match="no columns beside the text"):
        read_corpus("python:stdlib", carry=("nr",), cache=tmp_path)
    with pytest.raises(SettingsError, match="cannot be counted"):
        read_corpus(written(tmp_path / "p.csv"), carry=(), where={"team": "a"}, cache=tmp_path)


def test_done_rows_are_told_in_rows_of_the_input(tmp_path):
    inputs = read_corpus(["one", "", "one", "two", "two", "three", ""], carry=(), cache=tmp_path).input_rows
    told = []
    more = inputs.progress_callback(told.append)
    for count in (1, 2):
        more(count)
    assert told == [3, 4]
    assert [inputs.done(rows) for rows in range(4)] == [0, 3, 5, 7]
