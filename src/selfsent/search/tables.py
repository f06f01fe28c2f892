"""Pairs and groups of sentences, and those found, in a file."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np

from selfsent.data.corpus import Corpus
from selfsent.errors import SettingsError
from selfsent.files import atomic_file
from selfsent.search.clusters import Clusters
from selfsent.search.index import Index
from selfsent.search.nearest import Hit
from selfsent.search.pairs import Pair
from selfsent.search.rows import KINDS

TABLES = (".csv", ".tsv", ".jsonl", ".parquet")
RESERVED = ("query", "cosine", "words", "cluster", "row", "sentence", "repeats", "text", "embedding")
"""Names of columns that results have of their own."""
_TOGETHER = 4096

_SIGNS = "=+\\-@\uff1d\uff0b\uff0d\uff20"
_FORMULA = re.compile(rf"^(?=[\s\ufeff\u200b]*[{_SIGNS}])")
_LATER_FORMULA = re.compile(rf"([;|\n]\s*)(?=[{_SIGNS}])")


def check_carried(names: Sequence[str], flags: str) -> None:
    """Refuse columns to carry along that are called like columns of the results.

    Raises:
        SettingsError: there is one.
    """
    if taken := [name for name in names if name in RESERVED]:
        raise SettingsError(f"{flags}: results have a column {taken[0]!r} of their own; rename yours")


def check_table(output: Path) -> None:
    """Refuse the name of a table that does not say what it is to be.

    Raises:
        SettingsError: it ends otherwise than in one of `TABLES`.
    """
    if output.suffix not in TABLES:
        raise SettingsError(f"--output {output} must end in {', '.join(TABLES[:-1])} or {TABLES[-1]}")


def hit_columns(place: Corpus | Index) -> dict[str, type]:
    """The columns of `hits_with_texts`."""
    return {"query": str, "cosine": float, "words": float, **_told_columns(place)}


def _told_columns(place: Corpus | Index) -> dict[str, type]:
    """The columns of `told`."""
    if isinstance(place, Corpus):
        return {**place.input_rows.columns, "repeats": int, "text": str}
    columns = {name: kind for name, kind in place.columns.items() if name != "text"}
    return {**columns, "repeats": int, **({"text": str} if "text" in place.columns else {})}


def pair_columns(place: Corpus | Index) -> dict[str, type]:
    """The columns of `with_texts`."""
    each = _told_columns(place)
    about = {"score": float, "cosine": float, "words": float}
    return about | {f"{name}{side}": kind for name, kind in each.items() for side in (1, 2)}


def group_columns(corpus: Corpus) -> dict[str, type]:
    """The columns of `grouped`."""
    return {"cluster": int, "cosine": float, **corpus.input_rows.columns, "text": str}


def told(corpus: Corpus | Index, rows: Iterable[int]) -> list[dict[str, Any]]:
    """Of each row of a corpus, or vector of an index, its first place in the input, what was carried along, its text.

    `repeats` says how many more rows of the input have the same text.
    """
    if isinstance(corpus, Index):
        return corpus.told(rows)
    wanted = np.fromiter(rows, dtype=np.int64)
    inputs = corpus.input_rows
    columns = inputs.describe(np.asarray(inputs.first[wanted]))
    columns |= {"repeats": (inputs.repeats[wanted] - 1).tolist(), "text": corpus.texts(wanted)}
    return [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]


def with_texts(pairs: Sequence[Pair], corpus: Corpus | Index, word_weight: float = 0.0) -> Iterator[dict[str, Any]]:
    """Each pair as a row of a table: score, cosine, words, and of both sides what `told` says, as `row1` and `row2`."""
    left, right = told(corpus, (pair.first for pair in pairs)), told(corpus, (pair.second for pair in pairs))
    for pair, one, other in zip(pairs, left, right, strict=True):
        found = {f"{name}{side}": each[name] for name in one for side, each in ((1, one), (2, other))}
        numbers = {"score": pair.score(word_weight), "cosine": pair.cosine, "words": pair.words}
        yield {**{name: round(number, 6) for name, number in numbers.items()}, **found}


def hits_with_texts(query: str, hits: Sequence[Hit], corpus: Corpus | Index) -> Iterator[dict[str, Any]]:
    """Each sentence that `search` found for a query as a row of a table: query, cosine, words and what `told` says."""
    for hit, found in zip(hits, told(corpus, (hit.row for hit in hits)), strict=True):
        yield {"query": query, "cosine": round(hit.cosine, 6), "words": round(hit.words, 6), **found}


def grouped(clusters: Clusters, corpus: Corpus) -> Iterator[dict[str, Any]]:
    """Each row of the input that has a text as a row of a table: its group, the cosine to the group's centre, and more.

    Groups come in order, and within a group the most typical sentences first.
    """
    inputs = corpus.input_rows
    pieces = np.flatnonzero(inputs.corpus_rows >= 0)
    rows = inputs.corpus_rows[pieces]
    order = np.lexsort((-clusters.cosine[rows], clusters.cluster[rows]))
    for start in range(0, len(order), _TOGETHER):
        here = order[start : start + _TOGETHER]
        columns: dict[str, list[Any]] = {"cluster": clusters.cluster[rows[here]].tolist()}
        columns["cosine"] = [round(cosine, 6) for cosine in clusters.cosine[rows[here]].tolist()]
        columns |= inputs.describe(pieces[here]) | {"text": corpus.texts(rows[here])}
        yield from (dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True))


def write_table(
    rows: Iterable[dict[str, Any]], columns: Mapping[str, type], output: Path, for_spreadsheets: bool = False
) -> None:
    """Write a table, whole or not at all.

    Args:
        rows: of the table.
        columns: the name of each, and whether it holds `bool`, `int`, `float` or `str`.
        output: a `.csv`, `.tsv`, `.jsonl` or `.parquet` file.
        for_spreadsheets: in a `.csv` or `.tsv` file put `'` before texts that a spreadsheet would take for a formula.

    Raises:
        SettingsError: the name ends otherwise.
        OutputError: it cannot be written.
    """
    check_table(output)
    with atomic_file(output) as temporary:
        if output.suffix == ".parquet":
            _write_parquet(rows, columns, temporary)
            return
        with temporary.open("w", encoding="utf-8", newline="") as file:
            if output.suffix == ".jsonl":
                file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
                return
            table = csv.writer(file, delimiter="\t" if output.suffix == ".tsv" else ",", lineterminator="\n")
            lines = (map(_on_lines, line) for line in chain([tuple(columns)], (row.values() for row in rows)))
            table.writerows(map(_harmless, line) if for_spreadsheets else line for line in lines)


def _on_lines(cell: Any) -> Any:
    """A cell whose lines end as those of the table do: it is not put in quotes for a lone carriage return."""
    return cell.replace("\r\n", "\n").replace("\r", "\n") if isinstance(cell, str) else cell


def _harmless(cell: Any) -> Any:
    """A cell that no spreadsheet computes.

    Some look past white space before a formula, and some cut lines at semicolons whatever the quotes say.
    """
    if not isinstance(cell, str):
        return cell
    return _LATER_FORMULA.sub(r"\1'", _FORMULA.sub("'", cell))


def _write_parquet(rows: Iterable[dict[str, Any]], columns: Mapping[str, type], path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = pa.schema([(name, KINDS[kind]) for name, kind in columns.items()])
    left = iter(rows)
    with pq.ParquetWriter(path, schema) as file:
        while part := list(islice(left, _TOGETHER)):
            file.write_table(pa.Table.from_pylist(part, schema=schema))
