"""Stems of texts, and BM25 as sparse vectors, in two passes: how rare terms are, and the weights of each text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from selfsent.encoding.batches import BatchColumn, cleaned, names_of_cleaners
from selfsent.encoding.stages import (
    COUNTS,
    PART,
    Integers,
    Run,
    Stage,
    Summed,
    Work,
    check_new,
    counts_table,
    parts_for,
    place_of,
    remove,
    rows_of,
)
from selfsent.errors import DataError, first_line
from selfsent.lexical import Analyzer
from selfsent.lexical.bm25 import BM25Stats, term_number

SPARSE = pa.struct([("numbers", pa.list_(pa.int32())), ("weights", pa.list_(pa.float32()))])
"""A sparse vector: the places of its numbers that are not 0, and the numbers."""
_TEXTS, _TERMS = -1, -2
"""Keys of the numbers of texts and of their terms, among the numbers of terms."""


class BatchStems(BatchColumn):
    """A callable that adds the stems of texts, in order, without stop words, as `search` compares them.

    Args:
        text_column: column of texts.
        stem_column: name of the new column.
        language: of the stems, one of `lexical.LANGUAGES`; None for words as they are.
        clean: cleaners to apply, as for `BatchEncoder`.

    Examples:
        >>> import numpy as np
        >>> stems = BatchStems(language="english")
        >>> [each.tolist() for each in stems({"text": np.array(["The printers print"])})["stems"]]
        [['printer', 'print']]
    """

    def __init__(
        self,
        text_column: str = "text",
        stem_column: str = "stems",
        *,
        language: str | None = None,
        clean: str | Iterable[str] | None = None,
    ) -> None:
        super().__init__([text_column], stem_column)
        self.language, self.clean = Analyzer(language).language, names_of_cleaners(clean)

    @property
    def type(self) -> pa.DataType:
        """Lists of strings."""
        return pa.list_(pa.string())

    def array(self, *columns: Iterable[Any]) -> pa.Array:
        """The stems of a column of texts, (n,)."""
        analyzer = _analyzer(self.language)
        return pa.array([analyzer(text) for text in cleaned(columns[0], self.clean)], self.type)


@dataclass(frozen=True)
class TermCounts:
    """The number of texts of a collection with each term: the statistics of BM25.

    Args:
        texts: number of texts that are not empty.
        terms: number of their terms in all.
        numbers: (t,) distinct terms by `term_number`, ascending; terms that share a number count together, as they do
            in sparse vectors.
        frequencies: (t,) number of texts with each.
        language: of the stems.
        clean: names of cleaners.
    """

    texts: int
    terms: int
    numbers: Integers
    frequencies: Integers
    language: str | None = None
    clean: tuple[str, ...] = ()

    @property
    def stats(self) -> BM25Stats:
        """The statistics of BM25."""
        return BM25Stats(self.texts, self.terms / self.texts if self.texts else 0.0)

    def query_weights(self, query: str) -> dict[int, float]:
        """A query as a sparse vector: its inner product with a text's in the column of `BatchTerms` is BM25, 0 to 1."""

        def frequency(term: str) -> int:
            number = term_number(term)
            place = int(np.searchsorted(self.numbers, number))
            found = place < len(self.numbers) and self.numbers[place] == number
            return int(self.frequencies[place]) if found else 0

        return self.stats.query_weights(_analyzer(self.language)(query), frequency)

    def write(self, path: str) -> None:
        """Write it as a Parquet file."""
        about = {
            "texts": self.texts,
            "terms": self.terms,
            "language": self.language or "",
            "analyzer": _analyzer(self.language).fingerprint,
            "clean": " ".join(self.clean),
        }
        table = pa.table({"number": self.numbers, "texts": self.frequencies})
        system, place = place_of(path)
        with system.open_output_stream(place) as file:
            pq.write_table(table.replace_schema_metadata({name: str(each) for name, each in about.items()}), file)

    @classmethod
    def read(cls, path: str) -> TermCounts:
        """Read a file of `write`.

        Raises:
            DataError: the file is missing or another one, or its terms were found by other rules or stems.
        """
        system, place = place_of(path)
        try:
            with system.open_input_file(place) as file:
                table = pq.read_table(file)
            about = {name.decode(): each.decode() for name, each in (table.schema.metadata or {}).items()}
            numbers, counts = table["number"].to_numpy(), table["texts"].to_numpy()
            rest = about["language"] or None, tuple(about["clean"].split())
            if about.get("analyzer") != _analyzer(rest[0]).fingerprint:
                raise DataError(f"count the terms of {path} again: its texts were stemmed by other rules")
            return cls(int(about["texts"]), int(about["terms"]), numbers, counts, *rest)
        except (OSError, pa.ArrowInvalid, KeyError, ValueError) as error:
            raise DataError(f"{path} holds no counts of terms: {first_line(error)}") from None


class BatchTerms(BatchColumn):
    """A callable that adds BM25 weights of texts as sparse vectors, the second pass: the numbers that `push` sends.

    Args:
        counts: of the collection, the first pass (`count_terms`).
        text_column: column of texts.
        term_column: name of the new column: `numbers`, by `lexical.bm25.term_number`, and `weights`.

    Examples:
        >>> import numpy as np
        >>> counts = TermCounts(2, 4, np.array([]), np.array([]), "english")
        >>> found = BatchTerms(counts)({"text": np.array(["red cars"])})["terms"][0]
        >>> len(found["numbers"]), found["weights"].round(2).tolist()
        (2, [0.44999998807907104, 0.44999998807907104])
    """

    def __init__(self, counts: TermCounts, text_column: str = "text", term_column: str = "terms") -> None:
        super().__init__([text_column], term_column)
        none = np.empty(0, np.int64)
        self.counts = replace(counts, numbers=none, frequencies=none)  # the weight of a text needs but their sums

    @property
    def type(self) -> pa.DataType:
        """A struct of two lists."""
        return SPARSE

    def array(self, *columns: Iterable[Any]) -> pa.Array:
        """The sparse vectors of a column of texts, (n,)."""
        analyzer, stats = _analyzer(self.counts.language), self.counts.stats
        texts = cleaned(columns[0], self.counts.clean)
        found = [stats.text_weights([*map(term_number, analyzer(text))]) for text in texts]
        numbers = pa.array([[*each] for each in found], SPARSE.field("numbers").type)
        weights = pa.array([[*each.values()] for each in found], SPARSE.field("weights").type)
        return pa.StructArray.from_arrays([numbers, weights], fields=list(SPARSE))


def count_terms(
    run: Run,
    source: str,
    output: str,
    *,
    text_column: str = "text",
    language: str | None = None,
    clean: str | Iterable[str] | None = None,
) -> TermCounts:
    """Count in how many texts each term is: the first pass of BM25.

    Every row counts, so that equal texts count several times: take the rows that `deduplicate` left.

    Args:
        run: an engine, such as `selfsent.encoding.spark()`.
        source: folder of Parquet with the texts.
        output: a new Parquet file for the counts; `TermCounts.read` reads it.
        text_column: column of texts.
        language: of the stems, one of `lexical.LANGUAGES`; None for words as they are.
        clean: cleaners to apply, as for `BatchEncoder`.

    Raises:
        CorpusError: the folder has no Parquet, or no such column of texts.
        OutputError: the output exists.
    """
    check_new(output)
    parts = parts_for(rows_of(source).count_rows())
    counting = _Counting(text_column, Analyzer(language).language, names_of_cleaners(clean), parts)
    work = Work(run, f"{output}.work", [source], [text_column, counting.language, counting.clean])
    each = work("each", [source], counting)
    found = rows_of(work("terms", [each], Summed(parts), PART)).to_table(columns=["key", "count"]).sort_by("key")
    keys, counts = found["key"].to_numpy(), found["count"].to_numpy()
    sums = dict(zip(keys[keys < 0].tolist(), counts[keys < 0].tolist(), strict=True))
    rest = counting.language, counting.clean
    all_counts = TermCounts(sums.get(_TEXTS, 0), sums.get(_TERMS, 0), keys[keys >= 0], counts[keys >= 0], *rest)
    all_counts.write(output)
    remove(f"{output}.work")
    return all_counts


class _Counting(Stage):
    """In how many texts of a batch each term is."""

    def __init__(self, text_column: str, language: str | None, clean: tuple[str, ...], parts: int) -> None:
        super().__init__(pa.schema([(text_column, pa.string())]), COUNTS, parts)
        self.language, self.clean = language, clean

    def rows(self, table: pa.Table) -> pa.Table:
        """A row for each term, and the sums."""
        analyzer, texts = _analyzer(self.language), 0
        held, terms = Counter[int](), 0
        for text in filter(None, cleaned(table[0], self.clean)):
            found = [*map(term_number, analyzer(text))]
            texts, terms = texts + 1, terms + len(found)
            held.update({*found})
        held |= {_TEXTS: texts, _TERMS: terms}
        return counts_table(np.fromiter(held.keys(), np.int64), np.fromiter(held.values(), np.int64), self.parts)


@lru_cache(maxsize=4)
def _analyzer(language: str | None) -> Analyzer:
    """The analyzer of this process, which knows stems from the batches before."""
    return Analyzer(language)
