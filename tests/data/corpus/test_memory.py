"""A corpus that Python has in memory."""

from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from selfsent.data.corpus.batch import BATCH_CHARACTERS, Columns
from selfsent.data.corpus.formats import read_parquet
from selfsent.errors import CorpusError

ROWS = {"id": [7, 8, 9], "body": ["the printer is dead", "it rains", "the paper is gone"], "team": ["a", "b", "a"]}


def dataset():
    import datasets

    return datasets.Dataset.from_dict({name: values[::-1] for name, values in ROWS.items()}).select([2, 1, 0])


MAKERS = {
    "columns": lambda: ROWS,
    "series": lambda: {name: pd.Series(values) for name, values in ROWS.items()},
    "rows": lambda: [dict(zip(ROWS, row, strict=True)) for row in zip(*ROWS.values(), strict=True)],
    "frame": lambda: pd.DataFrame(ROWS, index=[3, 1, 2]),
    "arrow": lambda: pa.table(ROWS),
    "dataset": dataset,
}


@pytest.mark.parametrize("kind", MAKERS)
def test_a_table_is_read_as_a_file_with_its_columns(kind, read):
    corpus = read(MAKERS[kind](), text_column="body", document_column="team", metadata_columns="id")
    assert corpus.texts() == ROWS["body"]
    assert corpus.documents.tolist() == [0, 1, 0]
    with pytest.raises(CorpusError, match="the table given from Python: no column 'text'; it has 'id', 'body', 'team'"):
        read(MAKERS[kind]())


def test_pairs_and_missing_values_of_a_frame(read):
    a, b = ["one two", None, "five six", "seven"], ["x y", "z", float("nan"), "w"]
    frame = pd.DataFrame({"a": a, "b": b, "s": [1, 2.5, 3, 4]})
    corpus = read(frame, text_columns="a,b", score_column="s")
    assert (corpus.text_columns, corpus.texts(), corpus.scores.tolist()) == (("a", "b"), ["one two", "seven"], [1, 4])
    assert read(frame, text_column="a", where={"s": [1.0, 3.0]}).texts() == ["one two", "five six"]
    for table, options, said in (
        (
            {"text": ["a b", "c d"], "other": ["e"]},
            {"metadata_columns": "other"},
            "the table given from Python cannot be read: ",
        ),
        ({"text": [1, 2]}, {}, "row 1: int '1' in column 'text', which must hold text, not numbers"),
    ):
        with pytest.raises(CorpusError, match=said):
            read(table, **options)


@pytest.mark.parametrize("missing", [None, float("nan"), np.float32("nan"), pd.NA])
def test_what_is_missing_in_a_list_is_empty(missing, read):
    corpus = read(["a b", missing, "c d"], metadata_columns=())
    assert (corpus.texts(), len(corpus.input_rows)) == (["a b", "c d"], 3)


@pytest.mark.parametrize("of", [list, iter, set, pd.Series, np.array, lambda paths: map(Path, paths)])
def test_files_are_files_in_whatever_they_are_given(of, read, write):
    texts = [f"sentence {number} {letter}" for number in range(2) for letter in "ab"]
    paths = [str(write(f"{number}.txt", "\n".join(texts[2 * number :][:2]))) for number in range(2)]
    assert sorted(read(of(paths)).texts()) == texts


def test_an_iterator_of_texts_loses_none(read):
    assert read(iter(["README of it", "a b", "c d"])).texts() == ["README of it", "a b", "c d"]


def test_a_few_bytes_of_parquet_do_not_become_gigabytes(tmp_path):
    long = "ab " * 100_000
    column = pa.DictionaryArray.from_arrays(pa.array([0, None, 1] * 100, pa.int32()), [long, "short one"])
    pq.write_table(pa.table({"text": column, "n": range(300)}), tmp_path / "t.parquet", store_schema=False)
    with (tmp_path / "t.parquet").open("rb") as file:
        batches = list(read_parquet(file, "t.parquet", Columns(metadata=("n",))))
    assert max(sum(map(len, batch.texts[0])) for batch in batches) <= BATCH_CHARACTERS + len(long)
    assert [text for batch in batches for text in batch.texts[0]] == [long, "", "short one"] * 100
    assert [number for batch in batches for number in batch.metadata[0]] == [*range(300)]


def test_categories_of_a_parquet_file_are_their_values(read, tmp_path):
    values = {"text": ["a b", "c d", "e f"], "n": [3, 1, 3], "s": ["x", None, "y"]}
    pd.DataFrame(values).astype("category").to_parquet(tmp_path / "t.parquet")
    corpus = read(tmp_path / "t.parquet", metadata_columns=["n", "s"])
    assert corpus.texts() == values["text"]
    assert corpus.input_rows.describe(np.arange(3)) == {"row": [0, 1, 2], "n": values["n"], "s": values["s"]}
