"""A corpus that Python has in memory."""

from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from selfsent.data.corpus import read_corpus
from selfsent.errors import CorpusError

ROWS = {"id": [7, 8, 9], "body": ["the printer is dead", "it rains", "the paper is gone"], "team": ["a", "b", "a"]}
RECORDS = [dict(zip(ROWS, row, strict=True)) for row in zip(*ROWS.values(), strict=True)]


def dataset():
    import datasets

    return datasets.Dataset.from_dict({name: values[::-1] for name, values in ROWS.items()}).select([2, 1, 0])


@pytest.mark.parametrize(
    "make",
    [
        lambda: ROWS,
        lambda: {name: pd.Series(values) for name, values in ROWS.items()},
        lambda: RECORDS,
        lambda: pd.DataFrame(ROWS, index=[3, 1, 2]),
        lambda: pa.table(ROWS),
        dataset,
    ],
    ids=["columns", "series", "rows", "frame", "arrow", "dataset"],
)
def test_a_table_is_read_as_a_file_with_its_columns(make, tmp_path):
    corpus = read_corpus(make(), text_column="body", document_column="team", carry=["id"], cache=tmp_path)
    assert corpus.texts() == ROWS["body"]
    assert corpus.documents.tolist() == [0, 1, 0]
    with pytest.raises(CorpusError, match="the table given from Python: no column 'text'; it has 'id', 'body', 'team'"):
        read_corpus(make(), cache=tmp_path)


def test_pairs_and_missing_values_of_a_frame(tmp_path):
    a, b = ["one two", None, "five six", "seven"], ["x y", "z", float("nan"), "w"]
    frame = pd.DataFrame({"a": a, "b": b, "s": [1, 2.5, 3, 4]})
    corpus = read_corpus(frame, text_columns="a,b", score_column="s", cache=tmp_path)
    assert corpus.text_columns == ("a", "b")
    assert corpus.texts() == ["one two", "seven"]
    assert corpus.scores.tolist() == [1, 4]
    with pytest.raises(CorpusError, match=r"the table given from Python cannot be read: .*"):
        read_corpus({"text": ["a b", "c d"], "other": ["e"]}, text_column="other", carry="text", cache=tmp_path)
    with pytest.raises(CorpusError, match="row 1: int '1' in column 'text', which must hold text"):
        read_corpus({"text": [1, 2]}, cache=tmp_path)


@pytest.mark.parametrize("missing", [None, float("nan"), np.float32("nan"), pd.NA])
def test_what_is_missing_in_a_list_is_empty(missing, tmp_path):
    corpus = read_corpus(["a b", missing, "c d"], carry=(), cache=tmp_path)
    assert corpus.texts() == ["a b", "c d"]
    assert len(corpus.input_rows) == 3


@pytest.mark.parametrize("of", [list, tuple, iter, set, pd.Series, np.array, lambda paths: map(Path, paths)])
def test_files_are_files_in_whatever_they_are_given(of, tmp_path):
    paths = []
    for number in range(2):
        paths.append(str(tmp_path / f"{number}.txt"))
        Path(paths[-1]).write_text(f"sentence {number} a\nsentence {number} b\n")
    assert sorted(read_corpus(of(paths), cache=tmp_path / "c").texts()) == sorted(
        f"sentence {number} {letter}" for number in range(2) for letter in "ab"
    )


def test_an_iterator_of_texts_loses_none(tmp_path):
    assert read_corpus(iter(["README of it", "a b", "c d"]), cache=tmp_path).texts() == ["README of it", "a b", "c d"]


def test_rows_by_a_mask_are_those_that_are_true(tmp_path):
    corpus = read_corpus(["a b", "c d", "e f", "g h"], cache=tmp_path)
    assert corpus.texts(np.array([False, False, True, True])) == ["e f", "g h"]
    assert corpus.texts([]) == []
    for wrong in ([True, False], [2.7], 2, ["a"]):
        with pytest.raises(IndexError, match="rows"):
            corpus.texts(wrong)


def test_names_may_stand_between_commas(tmp_path):
    table = pd.DataFrame({"text": ["a b", "c d", "e f"], "id": [1, 2, 3], "n": [0, 1, 1]})
    assert len(read_corpus(table, carry="id", cache=tmp_path)) == 3
    assert read_corpus(table, where={"n": 1}, cache=tmp_path).texts() == ["c d", "e f"]
    assert read_corpus(table, where={"n": [0, 1]}, cache=tmp_path).texts() == ["a b", "c d", "e f"]


def test_a_few_bytes_of_parquet_do_not_become_gigabytes(tmp_path):
    import pyarrow.parquet as pq

    from selfsent.data.corpus.batch import BATCH_CHARACTERS, Columns
    from selfsent.data.corpus.parquet import read_parquet

    long = "ab " * 100_000
    column = pa.DictionaryArray.from_arrays(pa.array([0, None, 1] * 100, pa.int32()), [long, "short one"])
    pq.write_table(pa.table({"text": column, "n": range(300)}), tmp_path / "t.parquet", store_schema=False)
    with (tmp_path / "t.parquet").open("rb") as file:
        batches = list(read_parquet(file, "t.parquet", Columns(carried=("n",))))
    assert max(sum(map(len, batch.texts[0])) for batch in batches) <= BATCH_CHARACTERS + len(long)
    assert [text for batch in batches for text in batch.texts[0]] == [long, "", "short one"] * 100
    assert [number for batch in batches for number in batch.carried[0]] == [*range(300)]


def test_categories_of_a_parquet_file_are_their_values(tmp_path):
    values = {"text": ["a b", "c d", "e f"], "n": [3, 1, 3], "s": ["x", None, "y"]}
    frame = pd.DataFrame(values).astype({"text": "category", "n": "category", "s": "category"})
    frame.to_parquet(tmp_path / "t.parquet")
    corpus = read_corpus(tmp_path / "t.parquet", carry=["n", "s"], cache=tmp_path / "c")
    assert corpus.texts() == values["text"]
    told = corpus.input_rows.describe(np.arange(3))
    assert (told["n"], told["s"]) == (values["n"], values["s"])


def test_a_number_of_thousands_of_digits_is_no_entity(tmp_path):
    texts = [f"bad &amp; &#{'9' * 5000}; row", "a &lt; b"]
    assert read_corpus(texts, clean="html", cache=tmp_path).texts() == ["bad & \ufffd row", "a < b"]
