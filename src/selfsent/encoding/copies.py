"""A table without near-copies where it is larger than a machine: candidates by bands, the rest by family.

The same families as `selfsent dedup` finds on one machine among more than 5,000 texts: equal texts are one, texts that
share a band of their signatures are compared by words, and each family of close texts is told by the same rule
(`search.families.Stars`), in the order of ids. Whether a text joins another depends on close texts alone, so that it is
enough to bring those together.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from hashlib import blake2b
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from selfsent.encoding.batches import BatchColumn, cleaned, names_of_cleaners
from selfsent.encoding.stages import (
    COUNTS,
    KEY,
    PART,
    Integers,
    Run,
    Stage,
    Summed,
    Work,
    check_new,
    counts_table,
    parts_for,
    parts_of,
    place_of,
    remove,
    rows_of,
    stamp_of,
)
from selfsent.errors import CorpusError, SettingsError
from selfsent.lexical import WordCounts
from selfsent.search.dedup import THRESHOLDS, check_dedup
from selfsent.search.differences import Guard, is_guarded
from selfsent.search.families import ROUNDING, Stars
from selfsent.search.near import BANDS, TOGETHER, distinct, in_band, near_words, signatures
from selfsent.search.pairs import shared_words

_TEXTS = -1
"""Key of the number of texts, among the numbers of words."""
_TEXT, _COPY, _PAIR = 0, 1, 2
"""Kinds of rows: a text, an exact copy of the other row, and a pair with the other row, by ids."""
_ODD = np.uint64(0x9E3779B97F4A7C15)


class BatchBands(BatchColumn):
    """A callable that adds the keys of a text's bands, 40: texts with an equal key are candidates for near-copies.

    Args:
        counts: how many texts have each word, of the whole collection.
        text_column: column of texts.
        band_column: name of the new column: lists of integers, empty for texts without words.
        clean: cleaners to apply, as for `BatchEncoder`.

    Example:
        >>> import numpy as np
        >>> from selfsent.search.near import near_words
        >>> counts = WordCounts(near_words)
        >>> counts.add(["a red car", "a Red Car!", "rain"])
        >>> bands = BatchBands(counts)({"text": np.array(["a red car", "a Red Car!", ""])})["bands"]
        >>> len(bands[0]), bands[0].tolist() == bands[1].tolist(), len(bands[2])
        (40, True, 0)
    """

    def __init__(
        self,
        counts: WordCounts,
        text_column: str = "text",
        band_column: str = "bands",
        *,
        clean: str | Iterable[str] | None = None,
    ) -> None:
        super().__init__([text_column], band_column)
        self._counts, self.clean = counts, names_of_cleaners(clean)

    @property
    def type(self) -> pa.DataType:
        """Lists of integers."""
        return pa.list_(pa.int64())

    def array(self, *columns: Iterable[Any]) -> pa.Array:
        """The keys of a column of texts, (n,)."""
        keys = band_keys(cleaned(columns[0], self.clean), self._counts)
        held = keys.any(1)
        ends = np.cumsum([0, *np.where(held, BANDS, 0)]).astype(np.int32)
        return pa.ListArray.from_arrays(pa.array(ends), pa.array(keys[held].ravel()))


def band_keys(texts: Sequence[str], counts: WordCounts) -> Integers:
    """The keys of the bands of texts, (n, BANDS): two bands have none in common; 0 for texts without words."""
    keys = np.zeros((len(texts), BANDS), np.uint64)
    for start in range(0, len(texts), TOGETHER):
        keys[start : start + TOGETHER] = signatures(texts[start : start + TOGETHER], counts)
    own = (keys ^ (np.arange(BANDS, dtype=np.uint64) * _ODD)) * _ODD
    mixed: Integers = (
        np.where(keys > 0, own ^ (own >> np.uint64(32)) | np.uint64(1), 0).astype(np.uint64).view(np.int64)
    )
    return mixed


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
    read = work("read", [source], _Read(*ids, text_column, id_column, cleaners))
    texts = work("texts", [read], _Distinct(*ids), PART)
    counts = _counts(work("words", [work("counts", [texts], _Words(*ids))], Summed(ids[1]), PART))
    bands = work("bands", [texts], _Bands(*ids, counts))
    pairs = work("pairs", [bands], _Pairs(*ids), PART)
    halves = work("halves", [texts, pairs], _Halves(*ids), PART)
    close = work("close", [texts, halves], _Close(*ids, counts, threshold, guard), PART)
    near = _write_table(_families(rows_of(close).to_table()), f"{folder}/near.parquet")
    families = work("families", [texts], _Families(*ids, near))
    unique = work("unique", [source], _Unique(*ids, id_column, families))
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


def _schema(kind: pa.DataType) -> pa.Schema:
    """The columns of texts, copies and pairs."""
    types = [(PART, pa.int32()), ("kind", pa.int8()), ("id", kind), ("other", kind), ("text", pa.string())]
    return pa.schema(types)


def _rows(kind: int, ids: Any, others: Any, texts: Any, stage: Stage) -> pa.Table:
    """Rows of one kind, in the part of their ids."""
    ids = ids.combine_chunks() if isinstance(ids, pa.ChunkedArray) else ids
    kinds = pa.array(np.full(len(ids), kind, np.int8))
    return pa.table([parts_of(ids, stage.parts), kinds, ids, others, texts], schema=stage.makes)


class _Read(Stage):
    """Cleaned texts with their ids, by the hash of the text, without empty ones."""

    def __init__(self, kind: pa.DataType, parts: int, text_column: str, id_column: str, clean: tuple[str, ...]) -> None:
        makes = pa.schema([(PART, pa.int32()), (KEY, pa.int64()), ("id", kind), ("text", pa.string())])
        super().__init__(pa.schema([(text_column, pa.string()), (id_column, kind)]), makes, parts)
        self._clean = clean

    def rows(self, table: pa.Table) -> pa.Table:
        """A row for each text."""
        if table[1].null_count:
            raise CorpusError(f"{self.reads.names[1]!r} is missing in {table[1].null_count} rows of a batch")
        texts = pa.array(cleaned(table[0], self._clean), pa.string())
        held = pc.greater(pc.utf8_length(texts), 0)
        texts, ids = texts.filter(held), table[1].filter(held)
        hashes = (blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest() for text in texts.to_pylist())
        keys = pa.array(np.fromiter((int.from_bytes(each, signed=True) for each in hashes), np.int64, len(texts)))
        return pa.table([parts_of(keys, self.parts), keys, ids, texts], schema=self.makes)


class _Distinct(Stage):
    """Texts once, with the smallest of their ids, and their copies without the text."""

    def __init__(self, kind: pa.DataType, parts: int) -> None:
        reads = pa.schema([(KEY, pa.int64()), ("id", kind), ("text", pa.string())])
        super().__init__(reads, _schema(kind), parts)

    def rows(self, table: pa.Table) -> pa.Table:
        """A row for each row."""
        table = table.sort_by([(KEY, "ascending"), ("id", "ascending")])
        begins = np.flatnonzero(np.diff(table[KEY].to_numpy(), prepend=0) != 0) if len(table) else np.empty(0, np.int64)
        begins = np.union1d(begins, np.arange(min(1, len(table))))
        ids = table["id"].combine_chunks()
        first = np.repeat(begins, np.diff(begins, append=len(table)))
        copies = pa.array(np.flatnonzero(first != np.arange(len(table))))
        owners = ids.take(pa.array(first)).take(copies)
        own = ids.take(pa.array(begins))
        texts = _rows(_TEXT, own, own, table["text"].combine_chunks().take(pa.array(begins)), self)
        return pa.concat_tables([texts, _rows(_COPY, ids.take(copies), owners, pa.nulls(len(copies)), self)])


class _Words(Stage):
    """In how many texts of a batch each word is."""

    def __init__(self, kind: pa.DataType, parts: int) -> None:
        super().__init__(_schema(kind).remove(0), COUNTS, parts)

    def rows(self, table: pa.Table) -> pa.Table:
        """A row for each word, and one for the number of texts."""
        texts = _texts(table)["text"].to_pylist()
        counts = WordCounts(near_words)
        counts.add(texts)
        held = np.flatnonzero(counts.frequencies)
        return counts_table(
            np.append(held, _TEXTS), np.append(counts.frequencies[held], len(texts)).astype(np.int64), self.parts
        )


def _counts(words: str) -> WordCounts:
    """The counts of words that `_Words` and `Summed` wrote."""
    table = rows_of(words).to_table(columns=[KEY, "count"])
    keys, numbers = table[KEY].to_numpy(), table["count"].to_numpy()
    counts = WordCounts(near_words)
    counts.frequencies[keys[keys >= 0]] = numbers[keys >= 0]
    counts.texts = int(numbers[keys == _TEXTS].sum())
    return counts


class _Bands(Stage):
    """The bands of texts, by their keys."""

    def __init__(self, kind: pa.DataType, parts: int, counts: WordCounts) -> None:
        super().__init__(
            _schema(kind).remove(0), pa.schema([(PART, pa.int32()), (KEY, pa.int64()), ("id", kind)]), parts
        )
        self._counts = counts

    def rows(self, table: pa.Table) -> pa.Table:
        """A row for each band of each text."""
        texts = _texts(table)
        keys = band_keys(texts["text"].to_pylist(), self._counts)
        held = np.flatnonzero(keys.any(1))
        flat = pa.array(keys[held].ravel())
        ids = texts["id"].combine_chunks().take(pa.array(np.repeat(held, BANDS)))
        return pa.table([parts_of(flat, self.parts), flat, ids], schema=self.makes)


class _Pairs(Stage):
    """Pairs of texts with an equal key: each text with the first ones, of the smallest ids, that have it."""

    def __init__(self, kind: pa.DataType, parts: int) -> None:
        super().__init__(pa.schema([(KEY, pa.int64()), ("id", kind)]), _schema(kind), parts)

    def rows(self, table: pa.Table) -> pa.Table:
        """A row for each pair, the text with the smaller id first."""
        ids = _sorted_ids(table["id"])
        rank = pc.index_in(table["id"], value_set=ids).to_numpy()
        order = np.argsort(rank, kind="stable")
        rank, keys = rank[order].astype(np.int64), table[KEY].to_numpy()[order].view(np.uint64)
        found = in_band(keys)
        found = distinct(rank[found >> 32] << 32 | rank[found & 0xFFFFFFFF])
        earlier, later = ids.take(pa.array(found & 0xFFFFFFFF)), ids.take(pa.array(found >> 32))
        return _rows(_PAIR, earlier, later, pa.nulls(len(found)), self)


class _Halves(Stage):
    """Pairs with the text of the smaller id, in the part of the other one."""

    def __init__(self, kind: pa.DataType, parts: int) -> None:
        super().__init__(_schema(kind).remove(0), _schema(kind), parts)

    def rows(self, table: pa.Table) -> pa.Table:
        """A row for each pair."""
        own = table.filter(pc.less(table["kind"], _PAIR))["id"]
        if len(own) > len(found := own.unique()):
            twice = next(each["values"] for each in own.value_counts().to_pylist() if each["counts"] > 1)
            raise CorpusError(
                f"{len(own) - len(found)} ids of a part occur twice, such as {twice!r}: give each row its own"
            )
        texts = _texts(table)
        pairs = table.filter(pc.equal(table["kind"], _PAIR)).group_by(["id", "other"]).aggregate([])
        held = texts["text"].combine_chunks().take(pc.index_in(pairs["id"], value_set=texts["id"].combine_chunks()))
        return _rows(_PAIR, pairs["other"], pairs["id"], held, self)


class _Close(Stage):
    """Pairs of texts that are close by their words."""

    def __init__(
        self, kind: pa.DataType, parts: int, counts: WordCounts, threshold: float, guard: Sequence[Guard]
    ) -> None:
        super().__init__(
            _schema(kind).remove(0), pa.schema([("earlier", kind), ("later", kind), ("score", pa.float32())]), parts
        )
        self._counts, self._threshold, self._guard = counts, threshold, guard

    def rows(self, table: pa.Table) -> pa.Table:
        """A row for each close pair."""
        texts, pairs = _texts(table), table.filter(pc.equal(table["kind"], _PAIR)).sort_by("id")
        earlier = pairs["other"].unique()
        shown = pc.index_in(earlier, value_set=pairs["other"].combine_chunks())
        listed = _Listed([*texts["text"].to_pylist(), *pairs["text"].take(shown).to_pylist()])
        one = len(texts) + pc.index_in(pairs["other"], value_set=earlier).to_numpy().astype(np.int64)
        other = pc.index_in(pairs["id"], value_set=texts["id"].combine_chunks()).to_numpy().astype(np.int64)
        score = shared_words(listed, self._counts, one, other)
        near = np.flatnonzero(score >= self._threshold - ROUNDING)
        if self._guard:
            both = zip(listed.texts(one[near]), listed.texts(other[near]), strict=True)
            near = near[[not is_guarded(first, second, self._guard) for first, second in both]]
        chosen = pairs.take(pa.array(near))
        return pa.table([chosen["other"], chosen["id"], score[near]], schema=self.makes)


class _Listed:
    """Texts in memory, as `near.Texts`."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._texts = texts

    def __len__(self) -> int:
        return len(self._texts)

    def texts(self, rows: Integers) -> list[str]:
        return [self._texts[row] for row in rows.tolist()]

    def batches(self, *, size: int) -> Iterator[list[str]]:
        for start in range(0, len(self), size):
            yield list(self._texts[start : start + size])


def _families(close: pa.Table) -> pa.Table:
    """The texts that go, by their ids, with the text that is kept for each: from all close pairs."""
    ids = _sorted_ids(pa.chunked_array([*close["earlier"].chunks, *close["later"].chunks], close["later"].type))
    earlier, later = (
        pc.index_in(close[name], value_set=ids).to_numpy().astype(np.int64) for name in ("earlier", "later")
    )
    stars = Stars(len(ids))
    stars.join(earlier, later, close["score"].to_numpy())
    gone = np.flatnonzero(stars.kept != np.arange(len(ids)))
    kept = ids.take(pa.array(stars.kept[gone]))
    return pa.table({"id": ids.take(pa.array(gone)), "kept": kept, "score": stars.score[gone]})


class _Families(Stage):
    """All rows that go, exact copies among them.

    A worker reads the near-copies from their file, which takes some 30 bytes for each.
    """

    def __init__(self, kind: pa.DataType, parts: int, near: str) -> None:
        super().__init__(
            _schema(kind).remove(0), pa.schema([("id", kind), ("kept", kind), ("score", pa.float32())]), parts
        )
        self._near = near, stamp_of(near)

    def rows(self, table: pa.Table) -> pa.Table:
        """A row for each row that goes."""
        near = _table(*self._near)
        place = pc.index_in(table["other"], value_set=near["id"].combine_chunks())  # of a text, its own id
        kept = pc.coalesce(near["kept"].combine_chunks().take(place), table["other"])
        score = pc.fill_null(near["score"].combine_chunks().take(place), pa.scalar(1.0, pa.float32()))
        return pa.table([table["id"], kept, score], schema=self.makes).filter(pc.not_equal(table["id"], kept))


class _Unique(Stage):
    """The rows of the source that stay, with all their columns."""

    def __init__(self, kind: pa.DataType, parts: int, id_column: str, families: str) -> None:
        super().__init__(pa.schema([(id_column, kind)]), pa.schema([]), parts)
        self._families = families, stamp_of(families)

    def schema(self, given: pa.Schema) -> pa.Schema:
        """The schema of the source."""
        return given

    def __call__(self, table: pa.Table) -> pa.Table:
        """The rows that stay."""
        ids = table.select(self.reads.names).cast(self.reads)[0]
        return table.filter(pc.invert(pc.is_in(ids, value_set=_table(*self._families)["id"].combine_chunks())))

    def rows(self, table: pa.Table) -> pa.Table:
        """The table."""
        return table


def _texts(table: pa.Table) -> pa.Table:
    """The rows that are texts."""
    return table.filter(pc.equal(table["kind"], _TEXT))


def _sorted_ids(ids: pa.ChunkedArray) -> pa.Array:
    """Ids once each, ascending."""
    found = ids.unique()
    return found.take(pc.sort_indices(found))


@lru_cache(maxsize=2)
def _table(address: str, stamp: str) -> pa.Table:
    """A file or folder of Parquet, read once a process while it stays as it is."""
    return rows_of(address).to_table()


def _write_table(table: pa.Table, address: str) -> str:
    system, path = place_of(address)
    with system.open_output_stream(path) as file:
        pq.write_table(table, file)
    return address


def _move(address: str, to: str) -> None:
    system, path = place_of(address)
    system.move(path, place_of(to)[1])
