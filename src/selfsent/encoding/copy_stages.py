"""The stages of a deduplication on an engine: each reads tables of Parquet and makes the rows of the next one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from hashlib import blake2b
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from selfsent.encoding.bands import band_keys
from selfsent.encoding.batches import cleaned
from selfsent.encoding.stages import COUNTS, KEY, PART, Integers, Stage, counts_table, parts_of, rows_of, stamp_of
from selfsent.errors import CorpusError
from selfsent.lexical import WordCounts
from selfsent.search.differences import Guard, is_guarded
from selfsent.search.families import ROUNDING, Stars
from selfsent.search.near import BANDS, distinct, in_band, near_words
from selfsent.search.pairs import shared_words

_TEXTS = -1
"""Key of the number of texts, among the numbers of words."""
_TEXT, _COPY, _PAIR = 0, 1, 2
"""Kinds of rows: a text, an exact copy of the other row, and a pair with the other row, by ids."""


def _schema(kind: pa.DataType) -> pa.Schema:
    """The columns of texts, copies and pairs."""
    types = [(PART, pa.int32()), ("kind", pa.int8()), ("id", kind), ("other", kind), ("text", pa.string())]
    return pa.schema(types)


def _rows(kind: int, ids: Any, others: Any, texts: Any, stage: Stage) -> pa.Table:
    """Rows of one kind, in the part of their ids."""
    ids = ids.combine_chunks() if isinstance(ids, pa.ChunkedArray) else ids
    kinds = pa.array(np.full(len(ids), kind, np.int8))
    return pa.table([parts_of(ids, stage.parts), kinds, ids, others, texts], schema=stage.makes)


class Read(Stage):
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


class Distinct(Stage):
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


class Words(Stage):
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


def counts_of(words: str) -> WordCounts:
    """The counts of words that `Words` and `Summed` wrote."""
    table = rows_of(words).to_table(columns=[KEY, "count"])
    keys, numbers = table[KEY].to_numpy(), table["count"].to_numpy()
    counts = WordCounts(near_words)
    counts.frequencies[keys[keys >= 0]] = numbers[keys >= 0]
    counts.texts = int(numbers[keys == _TEXTS].sum())
    return counts


class Bands(Stage):
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


class Pairs(Stage):
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


class Halves(Stage):
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


class Close(Stage):
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


def families_of_pairs(close: pa.Table) -> pa.Table:
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


class Families(Stage):
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


class Unique(Stage):
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
