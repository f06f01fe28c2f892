"""Pairs and groups of sentences, and those found, in a file."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from selfsent.data.corpus import Corpus
from selfsent.errors import SettingsError
from selfsent.files import whole_file
from selfsent.search.clusters import Clusters
from selfsent.search.pairs import Pair

TABLES = (".csv", ".tsv", ".jsonl", ".parquet")
PAIRS = {"cosine": float, "row1": int, "row2": int, "text1": str, "text2": str}
HITS = {"query": str, "cosine": float, "row": int, "text": str}
GROUPS = {"cluster": int, "cosine": float, "row": int, "text": str}
_TOGETHER = 4096


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


def hits_with_texts(query: str, hits: Sequence[tuple[int, float]], corpus: Corpus) -> Iterator[dict[str, Any]]:
    """Each sentence that `search` found for a query as a row of a table: query, cosine, row number and text."""
    texts = corpus.texts(np.array([row for row, _ in hits], dtype=np.int64))
    for (row, cosine), text in zip(hits, texts, strict=True):
        yield {"query": query, "cosine": round(cosine, 6), "row": row, "text": text}


def grouped(clusters: Clusters, corpus: Corpus) -> Iterator[dict[str, Any]]:
    """Each sentence as a row of a table: its group, the cosine to the group's centre, row number and text.

    Groups come in order, and within a group the most typical sentences first.
    """
    order = np.lexsort((-clusters.cosine, clusters.cluster))
    for start in range(0, len(order), _TOGETHER):
        rows = order[start : start + _TOGETHER]
        for row, text in zip(rows.tolist(), corpus.texts(rows), strict=True):
            cosine = round(float(clusters.cosine[row]), 6)
            yield {"cluster": int(clusters.cluster[row]), "cosine": cosine, "row": row, "text": text}


def write_table(
    rows: Iterable[dict[str, Any]], columns: Mapping[str, type], output: Path, for_spreadsheets: bool = False
) -> None:
    """Write a table, whole or not at all.

    Args:
        rows: of the table.
        columns: the name of each, and whether it holds `int`, `float` or `str`.
        output: a `.csv`, `.tsv`, `.jsonl` or `.parquet` file.
        for_spreadsheets: in a `.csv` or `.tsv` file put `'` before texts that a spreadsheet would take for a formula.

    Raises:
        SettingsError: the name ends otherwise.
        OutputError: it cannot be written.
    """
    check_table(output)
    with whole_file(output) as temporary:
        if output.suffix == ".parquet":
            _write_parquet(rows, columns, temporary)
            return
        with temporary.open("w", encoding="utf-8", newline="") as file:
            if output.suffix == ".jsonl":
                file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
                return
            table = csv.writer(file, delimiter="\t" if output.suffix == ".tsv" else ",", lineterminator="\n")
            table.writerow(columns)
            table.writerows(map(_harmless, row.values()) if for_spreadsheets else row.values() for row in rows)


def _harmless(cell: Any) -> Any:
    return f"'{cell}" if isinstance(cell, str) and cell.startswith(("=", "+", "-", "@")) else cell


def _write_parquet(rows: Iterable[dict[str, Any]], columns: Mapping[str, type], path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    kinds = {int: pa.int64(), float: pa.float64(), str: pa.string()}
    schema = pa.schema([(name, kinds[kind]) for name, kind in columns.items()])
    left = iter(rows)
    with pq.ParquetWriter(path, schema) as file:
        while part := list(islice(left, _TOGETHER)):
            file.write_table(pa.Table.from_pylist(part, schema=schema))
