"""Queries of one's own, with the ids of the texts of a table that answer them."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from selfsent.data.corpus import Corpus
from selfsent.data.judgements import COLUMNS as JUDGED, grade_of, plain, written
from selfsent.display import counted
from selfsent.errors import DataError, SettingsError
from selfsent.evaluation.datasets.declared import Rows
from selfsent.evaluation.datasets.own_files import Clean, Column, header_of, read_rows
from selfsent.evaluation.tasks.retrieval import RetrievalTask

COLUMNS, RELEVANT = JUDGED[:2], JUDGED[2]
_BETWEEN = re.compile(r"[\s,;|]+")
"""Separator of several ids in a cell."""


def read_judged(
    path: str | Path, corpus: Corpus, id_column: str, columns: Sequence[Column] | None = None, clean: Clean = None
) -> RetrievalTask:
    """Queries of a file as a search among the texts of a table.

    A query has a row for each id, or several ids in one cell, with spaces, commas, semicolons or bars between them.
    Ids that the table does not have are left out, and so are queries without another one; warnings count them. Rows of
    the table with the same id answer alike. A column `relevant`, as `label` and `serve --judge` write it, may say that
    a text is no answer (0), or give a higher grade; rows where it is empty are left out.

    Args:
        path: `.csv`, `.jsonl` or `.parquet` with the columns query, id and perhaps relevant; others are tab-separated.
        corpus: the table, read with `metadata_columns` of the ids, not split.
        id_column: its column with the ids.
        columns: the file's names of query and id, if different.
        clean: cleaners of the queries.

    Raises:
        DataError: the file cannot be read, or no id is one of the table's.
        SettingsError: the corpus was read without the ids.

    Examples:
        >>> from selfsent.data.corpus import read_corpus
        >>> tickets = read_corpus("tickets.csv", metadata_columns="id")  # doctest: +SKIP
        >>> selfsent.evaluate("bundled", retrieval=read_judged("mine.csv", tickets, "id"))  # doctest: +SKIP
    """
    names: tuple[str, ...] = COLUMNS
    given: tuple[Column, ...] = tuple(columns or COLUMNS)
    if len(given) == len(COLUMNS) and RELEVANT in header_of(Path(path), given[0]):
        names, given = (names[0], RELEVANT, names[1]), (given[0], RELEVANT, given[1])
    rows = read_rows(Path(path), names, given if columns else None, clean)
    inputs = corpus.input_rows
    there = np.flatnonzero(np.asarray(inputs.corpus_rows) >= 0)
    described = inputs.describe(there)
    if id_column not in described:
        raise SettingsError(f"the table was read without the column {id_column}: name it as metadata_columns")
    rows_of, loosely = defaultdict[str, set[int]](set), defaultdict[str, set[int]](set)
    for value, row in zip(described[id_column], np.asarray(inputs.corpus_rows)[there].tolist(), strict=True):
        rows_of[written(value)].add(row)
        loosely[plain(value)].add(row)

    def rows_with(name: str) -> set[int]:
        return rows_of.get(written(name)) or loosely.get(plain(name), set())

    asked, unknown, rejected = defaultdict[str, dict[int, float]](dict), dict[str, None](), set[str]()
    for query, cell, grade in zip(rows["query"], rows["id"], _grades(rows, Path(path)), strict=True):
        ids = [cell] if rows_with(cell) else [each for each in _BETWEEN.split(plain(cell)) if each]
        unknown |= {each: None for each in ids if not rows_with(each)}
        found = {row for each in ids for row in rows_with(each)}
        rejected |= {query} if found and not grade else set()
        held = asked[query]
        held |= {row: max(grade, held.get(row, 0.0)) for row in found if grade}
    kept = {query: found for query, found in asked.items() if found}
    some = f", such as {next(iter(unknown))}" if unknown else ""
    if not kept and rejected:
        raise DataError(f"{path}: no text was judged to be an answer; a query needs one that is")
    if not kept:
        raise DataError(f"{path}: the column {id_column} of {corpus.source} has none of the ids{some}: is it that one?")
    odd = []
    if unknown:
        odd.append(f"{counted(len(unknown), 'id')} not in the column {id_column} of {corpus.source}{some}: left out")
    if poor := len(rejected - kept.keys()):
        odd.append(f"{counted(poor, 'query', 'queries')} for which no text was judged to be an answer: left out")
    if lost := len(asked.keys() - kept.keys() - rejected):
        odd.append(f"{counted(lost, 'query', 'queries')} without an id of the table: left out")
    return RetrievalTask(
        rows.name,
        [*kept],
        corpus.texts(),
        [dict(sorted(found.items())) for found in kept.values()],
        of=Path(corpus.source).name,
        warnings=(*rows.warnings, *(f"{rows.name}: {line}" for line in odd)),
    )


def answered_queries(path: Path) -> list[str]:
    """The queries of such a file that have an answer, each once, whatever its ids are.

    Args:
        path: with a column query, and perhaps those of ids and of judgements (`relevant`).

    Raises:
        DataError: the file cannot be read, or no text was judged to be an answer.
    """
    header = header_of(path, COLUMNS[0])
    names = (COLUMNS[0], *(name for name in (RELEVANT, COLUMNS[1]) if RELEVANT in header and name in header))
    rows = read_rows(path, names)
    found = dict.fromkeys(query for query, grade in zip(rows[names[0]], _grades(rows, path), strict=True) if grade)
    if not found:
        raise DataError(f"{path}: no text was judged to be an answer; a query needs one that is")
    return [*found]


def _grades(rows: Rows, path: Path) -> list[float]:
    """The grade of each row: 1 where the file has none."""
    if RELEVANT not in rows.columns:
        return [1.0] * len(rows["query"])
    try:
        return [grade_of(cell) or 0.0 for cell in rows[RELEVANT]]
    except DataError as error:
        raise DataError(f"{path}: {error}") from error
