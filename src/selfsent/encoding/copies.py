"""A table without near-copies where it is larger than a machine: candidates by bands, the rest by family.

The same families as `selfsent dedup` finds on one machine among more than 5,000 texts: equal texts are one, texts that
share a band of their signatures are compared by words, and each family of close texts is told by the same rule
(`search.families.Stars`), in the order of ids. Whether a text joins another depends on close texts alone, so that it is
enough to bring those together.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from selfsent.encoding.batches import names_of_cleaners
from selfsent.encoding.copy_stages import (
    Bands,
    Close,
    Distinct,
    Families,
    Halves,
    Pairs,
    Read,
    Unique,
    Words,
    counts_of,
    families_of_pairs,
)
from selfsent.encoding.stages import PART, Run, Summed, Work, check_new, parts_for, place_of, remove, rows_of
from selfsent.errors import CorpusError, SettingsError
from selfsent.search.dedup import THRESHOLDS, check_dedup
from selfsent.search.differences import Guard


class Kept(NamedTuple):
    """Numbers of rows: all, kept ones, removed exact copies and removed near-copies."""

    rows: int
    kept: int
    copies: int
    near: int


def deduplicate(
    run: Run,
    source: str,
    output: str,
    *,
    text_column: str = "text",
    id_column: str = "id",
    threshold: float = THRESHOLDS["near"],
    guard: Sequence[Guard] = (),
    clean: str | Iterable[str] | None = None,
) -> Kept:
    """Write the rows of a table that are no near-copies of a row with a smaller id, and which row each other copies.

    A job that was stopped goes on with the first stage that was not done, if it is called again. Rows without text
    stay.

    Args:
        run: an engine, such as `selfsent.encoding.spark()`.
        source: folder of Parquet with the rows.
        output: a new folder, with the folders `unique`, rows as they were, and `families`: `id` of each row that went,
            `kept`, that of the row that stays for it, and their `score`.
        text_column: column of texts.
        id_column: column of ids, each once: integers or strings. Of a family the row with the smallest id stays.
        threshold: minimum similarity of copies by their words, 0 to 1.
        guard: changes that no two texts of a family may have: `numbers`, `negations`, `order`.
        clean: cleaners to apply before comparing, as for `BatchEncoder`.

    Raises:
        CorpusError: the folder has no Parquet, or no such columns; or ids are missing or occur twice.
        SettingsError: a guard that is unknown or `names`, or a threshold above 1.
        OutputError: the output exists.
    """
    check_dedup("near", "first", guard, threshold)
    if "names" in guard:
        problem = "guard=names needs all texts in one place, to tell names"
        raise SettingsError(f"{problem}: use selfsent dedup, or leave it out")
    cleaners = names_of_cleaners(clean)
    kind = _kind_of_ids(rows_of(source).schema, source, text_column, id_column)
    for name in ("unique", "families"):
        check_new(f"{output}/{name}")
    folder = f"{output}/work"
    work = Work(run, folder, [source], [text_column, id_column, threshold, list(guard), list(cleaners)])
    ids = kind, parts_for(rows_of(source).count_rows())
    read = work("read", [source], Read(*ids, text_column, id_column, cleaners))
    texts = work("texts", [read], Distinct(*ids), PART)
    counts = counts_of(work("words", [work("counts", [texts], Words(*ids))], Summed(ids[1]), PART))
    bands = work("bands", [texts], Bands(*ids, counts))
    pairs = work("pairs", [bands], Pairs(*ids), PART)
    halves = work("halves", [texts, pairs], Halves(*ids), PART)
    close = work("close", [texts, halves], Close(*ids, counts, threshold, guard), PART)
    near = _write_table(families_of_pairs(rows_of(close).to_table()), f"{folder}/near.parquet")
    families = work("families", [texts], Families(*ids, near))
    unique = work("unique", [source], Unique(*ids, id_column, families))
    rows, kept, others = (rows_of(each).count_rows() for each in (source, unique, families))
    found = Kept(rows, kept, others - (alike := rows_of(near).count_rows()), alike)
    for name in ("families", "unique"):
        _move(f"{folder}/{name}", f"{output}/{name}")
    remove(folder)
    return found


def _kind_of_ids(schema: pa.Schema, source: str, text_column: str, id_column: str) -> pa.DataType:
    """The type of ids: int64 or string.

    Raises:
        CorpusError: a column is missing, or of another type.
    """
    for name in (text_column, id_column):
        if name not in schema.names:
            raise CorpusError(f"{source} has no column {name!r}; it has {', '.join(map(repr, schema.names))}")
    if text_column == id_column:
        raise SettingsError(f"{text_column!r} names both the texts and the ids")
    texts, ids = schema.field(text_column).type, schema.field(id_column).type
    if not (pa.types.is_string(texts) or pa.types.is_large_string(texts)):
        raise CorpusError(f"{source}: column {text_column!r} holds {texts}, and must hold texts")
    if pa.types.is_integer(ids):
        return pa.int64()
    if pa.types.is_string(ids) or pa.types.is_large_string(ids):
        return pa.string()
    raise CorpusError(f"{source}: column {id_column!r} holds {ids}: ids are integers or strings")


def _write_table(table: pa.Table, address: str) -> str:
    system, path = place_of(address)
    with system.open_output_stream(path) as file:
        pq.write_table(table, file)
    return address


def _move(address: str, to: str) -> None:
    system, path = place_of(address)
    system.move(path, place_of(to)[1])
