"""Rows of an index as its database holds them: values, ids, hits and what describes them."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from typing import Any

from selfsent.errors import DataError
from selfsent.index.conditions import Where, condition, in_groups
from selfsent.index.files import SENTENCE_BITS, IndexFiles
from selfsent.index.snapshot import Candidates
from selfsent.lexical.hybrid import fuse, normalized, top_k
from selfsent.search.exact import Hit

_SENTENCE = (1 << SENTENCE_BITS) - 1
"""The bits of the number of an input that say its sentence or passage."""


def distinct_values(files: IndexFiles, db: sqlite3.Connection, column: str, maximum: int) -> list[Any]:
    """The values of a metadata column, in order, without empty ones; none where there are more than `maximum`."""
    name = files.sql_columns[column]
    query = f"SELECT DISTINCT {name} FROM inputs WHERE {name} IS NOT NULL AND {name} != '' LIMIT ?"
    found = [value for (value,) in db.execute(query, [maximum + 1])]
    if files.columns[column] is bool:
        found = [bool(value) for value in found]
    return sorted(found) if len(found) <= maximum else []


def has_id(files: IndexFiles, db: sqlite3.Connection, name: str) -> bool:
    """Whether a row has this id, given as text; False without ids."""
    if files.id_column is None:
        return False
    try:
        value = files.columns[files.id_column](name)
        query = f"SELECT 1 FROM inputs WHERE {files.id_sql_column} = ? LIMIT 1"
        return str(value) == name and db.execute(query, [value]).fetchone() is not None
    except (ValueError, OverflowError):  # no number, or one that the database cannot hold
        return False


def texts_of(db: sqlite3.Connection, doc_ids: Sequence[int]) -> list[str]:
    """The texts with these document ids."""
    texts = dict[int, str]()
    for group, marks in in_groups(doc_ids):
        texts |= dict(db.execute(f"SELECT doc_id, text FROM texts WHERE doc_id IN ({marks})", group))
    return [texts[doc_id] for doc_id in doc_ids]


def best_hits(
    files: IndexFiles, db: sqlite3.Connection, found: Sequence[Candidates], weight: float, top: int, where: Where
) -> list[list[Hit]]:
    """The best candidates of each query, each by its first input that meets a condition.

    Args:
        files: of the index.
        db: a connection in a transaction.
        found: candidates of each query.
        weight: of BM25.
        top: hits per query; of the passages of a text only the best is one.
        where: conditions on metadata columns.
    """
    clause, values = condition(where, files.columns)
    also, id_column = f" AND {clause}" if clause else "", files.id_sql_column or "NULL"
    ranked = []
    for each in found:
        fused = fuse(each.dense, each.lexical, weight)
        best = top_k(fused, len(fused) if files.part == "passage" else top)
        scores = normalized(fused[best], weight), each.dense[best], each.lexical[best]
        numbers = (values.tolist() for values in scores)
        ranked.append([*zip(each.doc_ids[best].tolist(), *numbers, strict=True)])
    first = dict[int, tuple[int, Any]]()
    for group, marks in in_groups({doc_id for each in ranked for doc_id, *_ in each}):
        chosen = f"FROM inputs WHERE doc_id IN ({marks}){also} GROUP BY doc_id"
        query = f"SELECT doc_id, MIN(number), {id_column} {chosen}"
        first |= {doc_id: (number, name) for doc_id, number, name in db.execute(query, [*group, *values])}
    hits = list[list[Hit]]()
    for ranking in ranked:
        rows = set[int]()
        hits.append([])
        for doc_id, score, dense, lexical in ranking:
            number, name = first[doc_id]
            row, sentence = number >> SENTENCE_BITS, number & _SENTENCE if files.part else None
            if files.part == "passage" and row in rows:
                continue  # a better passage of the text is there
            if len(hits[-1]) == top:
                break
            rows.add(row)
            hits[-1].append(Hit(row, score, dense, lexical, name, sentence))
    return hits


def describe_rows(
    files: IndexFiles, db: sqlite3.Connection, hits: Iterable[Hit | int], where: Where
) -> list[dict[str, Any]]:
    """The columns of hits or rows, with `repeats`, those which meet a condition, before `text`.

    Raises:
        DataError: a row that is not, or no longer, in the index.
    """
    rows = ((each.row, each.sentence or 0) if isinstance(each, Hit) else (int(each), 0) for each in hits)
    numbers, found = [(row << SENTENCE_BITS) + sentence for row, sentence in rows], dict[int, Any]()
    clause, values = condition(where, files.columns)
    columns = "".join(f", {column}" for column in files.sql_columns.values())
    alike = f"doc_id = inputs.doc_id{f' AND {clause}' if clause else ''}"
    about = f"number, text, (SELECT COUNT(*) FROM inputs AS other WHERE other.{alike}){columns}"
    for group, marks in in_groups(numbers):
        query = f"SELECT {about} FROM inputs JOIN texts USING(doc_id) WHERE number IN ({marks})"
        for number, text, count, *cells in db.execute(query, [*values, *group]):
            sentence = {files.part: number & _SENTENCE} if files.part else {}
            row = {"row": number >> SENTENCE_BITS, **sentence, **columns_of(files, cells)}
            found[number] = {**row, "repeats": count - 1, "text": text}
    if missing := [number for number in numbers if number not in found]:
        raise DataError(f"{files.path} holds no row {missing[0] >> SENTENCE_BITS}, or no longer: see `snapshot`")
    return [found[number] for number in numbers]


def columns_of(files: IndexFiles, cells: Sequence[Any]) -> dict[str, Any]:
    """The metadata columns of a row, from its cells of the database, which has no booleans."""
    own = dict(zip(files.sql_columns, cells, strict=True))
    flags = (name for name in own if files.columns[name] is bool and own[name] is not None)
    return {**own, **{name: bool(own[name]) for name in flags}}
