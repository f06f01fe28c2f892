"""Queries of one's own, with the ids of the texts of a table that answer them."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from selfsent.data.corpus import Corpus
from selfsent.display import counted
from selfsent.errors import DataError, SettingsError
from selfsent.evaluation.datasets.own_files import Clean, Column, read_rows
from selfsent.evaluation.tasks.retrieval import RetrievalTask

COLUMNS = ("query", "id")
_BETWEEN = re.compile(r"[\s,;|]+")
"""Separator of several ids in a cell."""


def read_judged(
    path: str | Path, corpus: Corpus, id_column: str, columns: Sequence[Column] | None = None, clean: Clean = None
) -> RetrievalTask:
    """Queries of a file as a search among the texts of a table.

    A query has a row for each id, or several ids in one cell, with spaces, commas, semicolons or bars between them.
    Ids that the table does not have are left out, and so are queries without another one; warnings count them. Rows of
    the table with the same id answer alike.

    Args:
        path: `.csv`, `.jsonl` or `.parquet` with the columns query and id; other files are tab-separated.
        corpus: the table, read with `metadata_columns` of the ids, not split.
        id_column: its column with the ids.
        columns: the file's names of query and id, if different.
        clean: cleaners of the queries.

    Raises:
        DataError: the file cannot be read, or no id is one of the table's.
        SettingsError: the corpus was read without the ids.

    Example:
        >>> from selfsent.data.corpus import read_corpus
        >>> tickets = read_corpus("tickets.csv", metadata_columns="id")  # doctest: +SKIP
        >>> selfsent.evaluate("bundled", retrieval=read_judged("mine.csv", tickets, "id"))  # doctest: +SKIP
    """
    rows = read_rows(Path(path), COLUMNS, columns, clean)
    inputs = corpus.input_rows
    there = np.flatnonzero(np.asarray(inputs.corpus_rows) >= 0)
    described = inputs.describe(there)
    if id_column not in described:
        raise SettingsError(f"the table was read without the column {id_column}: name it as metadata_columns")
    rows_of = defaultdict[str, set[int]](set)
    for value, row in zip(described[id_column], np.asarray(inputs.corpus_rows)[there].tolist(), strict=True):
        rows_of[_plain(value)].add(row)
    asked, unknown = dict[str, set[int]](), dict[str, None]()
    for query, cell in zip(rows["query"], rows["id"], strict=True):
        ids = [_plain(cell)] if _plain(cell) in rows_of else [each for each in _BETWEEN.split(_plain(cell)) if each]
        unknown |= {each: None for each in ids if each not in rows_of}
        asked.setdefault(query, set()).update(*(rows_of[each] for each in ids if each in rows_of))
    kept = {query: found for query, found in asked.items() if found}
    some = f", such as {next(iter(unknown))}" if unknown else ""
    if not kept:
        raise DataError(f"{path}: the column {id_column} of {corpus.source} has none of the ids{some}: is it that one?")
    odd = []
    if unknown:
        odd.append(f"{counted(len(unknown), 'id')} not in the column {id_column} of {corpus.source}{some}: left out")
    if len(kept) < len(asked):
        odd.append(f"{counted(len(asked) - len(kept), 'query', 'queries')} without an id of the table: left out")
    return RetrievalTask(
        rows.name,
        [*kept],
        corpus.texts(),
        [dict.fromkeys(sorted(found), 1.0) for found in kept.values()],
        of=Path(corpus.source).name,
        warnings=(*rows.warnings, *(f"{rows.name}: {line}" for line in odd)),
    )


def _plain(value: object) -> str:
    """An id as text, with single spaces, as the cells of files are read."""
    return "" if value is None else " ".join(str(value).split())
