"""Pairs of sentences in a file."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from selfsent.corpus import Corpus
from selfsent.errors import SettingsError
from selfsent.files import whole_file
from selfsent.search.pairs import Pair

TABLES = (".csv", ".tsv", ".jsonl", ".parquet")


def check_table(output: Path) -> None:
    """Refuse the name of a table that does not say what it is to be.

    Raises:
        SettingsError: it ends otherwise than in one of `TABLES`.
    """
    if output.suffix not in TABLES:
        raise SettingsError(f"--output {output} must end in {', '.join(TABLES[:-1])} or {TABLES[-1]}")


def with_texts(pairs: Sequence[Pair], corpus: Corpus) -> Iterator[dict[str, Any]]:
    """Each pair as a row of a table: cosine, the two row numbers, the two texts."""
    rows = np.array([pair[1:] for pair in pairs], dtype=np.int64).reshape(-1, 2)
    texts = zip(corpus.texts(rows[:, 0]), corpus.texts(rows[:, 1]), strict=True)
    for pair, (text, other) in zip(pairs, texts, strict=True):
        yield {"cosine": round(pair.cosine, 6), "row1": pair.first, "row2": pair.second, "text1": text, "text2": other}


def write_pairs(pairs: Sequence[Pair], corpus: Corpus, output: Path) -> None:
    """Write pairs with their texts, whole or not at all.

    Args:
        pairs: best first.
        corpus: the sentences.
        output: a `.csv`, `.tsv`, `.jsonl` or `.parquet` file with the columns `cosine`, `row1`, `row2`, `text1`,
            `text2`; rows are numbers of distinct sentences, from 0.

    Raises:
        SettingsError: the name ends otherwise.
        OutputError: it cannot be written.
    """
    check_table(output)
    rows = list(with_texts(pairs, corpus))
    with whole_file(output) as temporary:
        if output.suffix == ".parquet":
            _write_parquet(rows, temporary)
            return
        with temporary.open("w", encoding="utf-8", newline="") as file:
            if output.suffix == ".jsonl":
                file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
                return
            table = csv.writer(file, delimiter="\t" if output.suffix == ".tsv" else ",", lineterminator="\n")
            table.writerow(["cosine", "row1", "row2", "text1", "text2"])
            table.writerows(row.values() for row in rows)


def _write_parquet(rows: list[dict[str, Any]], path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    numbers = [("cosine", pa.float64()), ("row1", pa.int64()), ("row2", pa.int64())]
    schema = pa.schema([*numbers, ("text1", pa.string()), ("text2", pa.string())])
    pq.write_table(pa.Table.from_pylist(rows, schema=schema), path)
