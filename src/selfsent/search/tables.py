"""Hits, pairs and clusters as tables with texts and metadata columns, and files of these."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np

from selfsent.data.corpus.batch import POSITIONS
from selfsent.errors import SettingsError
from selfsent.files import atomic_file
from selfsent.search.vectors import ARROW_TYPES

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from selfsent.data.corpus import Corpus
    from selfsent.search.clusters import Clusters
    from selfsent.search.exact import Hit
    from selfsent.search.pairs import Pair

TABLES = (".csv", ".tsv", ".jsonl", ".parquet")
RESERVED = ("query", "cosine", "words", "cluster", *POSITIONS, "repeats", "text", "embedding")
"""Column names used by results."""
_TOGETHER = 4096

_SIGNS = "=+\\-@\uff1d\uff0b\uff0d\uff20"
_FORMULA = re.compile(rf"^(?=[\s\ufeff\u200b]*[{_SIGNS}])")
_LATER_FORMULA = re.compile(rf"([;|\n]\s*)(?=[{_SIGNS}])")


@runtime_checkable
class Described(Protocol):
    """A searchable collection that describes its own hits: an index."""

    @property
    def columns(self) -> dict[str, type]:
        """Columns with their types, without `repeats`."""
        ...

    def describe(self, hits: Iterable[Hit | int], where: str | Sequence[str] | None = None) -> list[dict[str, Any]]:
        """The columns of hits, with `repeats`."""
        ...


def check_metadata_columns(names: Sequence[str], flags: str) -> None:
    """Reject metadata columns with the name of a result column.

    Raises:
        SettingsError: a name clash.
    """
    if taken := [name for name in names if name in RESERVED]:
        raise SettingsError(f"{flags}: results have a column {taken[0]!r} of their own; rename yours")


def check_table(output: Path) -> None:
    """Check the suffix of a table.

    Raises:
        SettingsError: it is none of `TABLES`.
    """
    if output.suffix not in TABLES:
        raise SettingsError(f"`output` {output} must end in {', '.join(TABLES[:-1])} or {TABLES[-1]}")


def _described_columns(texts: Corpus | Described) -> dict[str, type]:
    columns = texts.columns if isinstance(texts, Described) else {**texts.input_rows.columns, "text": str}
    others = {name: kind for name, kind in columns.items() if name != "text"}
    return {**others, "repeats": int, **({"text": str} if "text" in columns else {})}


def hit_columns(texts: Corpus | Described, measure: str = "cosine") -> dict[str, type]:
    """The columns of `hit_rows`.

    Raises:
        SettingsError: a metadata column has the name of the measure.
    """
    columns = _described_columns(texts)
    if measure in columns:
        raise SettingsError(f"the results of a cross-encoder have a column {measure!r} of their own; rename yours")
    return {"query": str, measure: float, "words": float, **columns}


def pair_columns(corpus: Corpus) -> dict[str, type]:
    """The columns of `pair_rows`."""
    sides = {f"{name}{side}": kind for name, kind in _described_columns(corpus).items() for side in (1, 2)}
    return {"score": float, "cosine": float, "words": float} | sides


def cluster_columns(corpus: Corpus, levels: int = 1) -> dict[str, type]:
    """The columns of `cluster_rows`, with a `parent` where there are two levels."""
    parent: dict[str, type] = {"parent": int} if levels > 1 else {}
    return {"cluster": int, **parent, "cosine": float, **corpus.input_rows.columns, "text": str}


def describe(corpus: Corpus, rows: Iterable[int]) -> list[dict[str, Any]]:
    """For rows of a corpus: first position in the input, metadata columns, `repeats` and text.

    `repeats` is the number of further input rows with the same text.
    """
    numbers, inputs = np.fromiter(rows, dtype=np.int64), corpus.input_rows
    columns = inputs.describe(np.asarray(inputs.first[numbers]))
    columns |= {"repeats": (inputs.repeats[numbers] - 1).tolist(), "text": corpus.texts(numbers)}
    return [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]


def hit_rows(
    query: str, hits: Sequence[Hit], texts: Corpus | Described, measure: str = "cosine", where: Sequence[str] = ()
) -> Iterator[dict[str, Any]]:
    """The hits of a query as table rows: query, cosine, words and the columns of `describe`.

    Args:
        query: its text.
        hits: of this query.
        texts: the searched collection.
        measure: column of `Hit.dense_score`: `cosine`, or `score` of a cross-encoder.
        where: conditions of a search in an index.
    """
    if isinstance(texts, Described):
        rows = texts.describe(hits, where)
    else:
        inputs = texts.input_rows
        numbers = inputs.numbers([hit.row for hit in hits], [hit.sentence or 0 for hit in hits])
        rows = describe(texts, inputs.corpus_rows[numbers].tolist())
    for hit, found in zip(hits, rows, strict=True):
        yield {"query": query, measure: round(hit.dense_score, 6), "words": round(hit.lexical_score, 6), **found}


def pair_rows(pairs: Sequence[Pair], corpus: Corpus, lexical_weight: float = 0.0) -> Iterator[dict[str, Any]]:
    """Pairs as table rows: score, cosine, words and the columns of `describe`, as `row1`, `row2` and so on."""
    left, right = describe(corpus, (pair.first for pair in pairs)), describe(corpus, (pair.second for pair in pairs))
    for pair, one, other in zip(pairs, left, right, strict=True):
        found = {f"{name}{side}": each[name] for name in one for side, each in ((1, one), (2, other))}
        numbers = {"score": pair.score(lexical_weight), "cosine": pair.cosine, "words": pair.lexical_score}
        yield {**{name: round(number, 6) for name, number in numbers.items()}, **found}


def cluster_rows(
    clusters: Clusters, corpus: Corpus, parents: NDArray[np.int64] | None = None
) -> Iterator[dict[str, Any]]:
    """Nonempty input rows as table rows: cluster, parent, cosine to its centre, position, metadata columns, text.

    Ordered by cluster, the outliers last, then from most to least typical.
    """
    inputs = corpus.input_rows
    input_rows = np.flatnonzero(inputs.corpus_rows >= 0)
    rows = inputs.corpus_rows[input_rows]
    order = np.lexsort((-clusters.cosine[rows], clusters.cluster[rows], clusters.cluster[rows] < 0))
    for start in range(0, len(order), _TOGETHER):
        here = order[start : start + _TOGETHER]
        columns: dict[str, list[Any]] = {"cluster": clusters.cluster[rows[here]].tolist()}
        if parents is not None:
            columns["parent"] = np.append(parents, -1)[clusters.cluster[rows[here]]].tolist()
        columns["cosine"] = [round(cosine, 6) for cosine in clusters.cosine[rows[here]].tolist()]
        columns |= inputs.describe(input_rows[here]) | {"text": corpus.texts(rows[here])}
        yield from (dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True))


def write_table(
    rows: Iterable[dict[str, Any]], columns: Mapping[str, type], output: Path, for_spreadsheets: bool = False
) -> None:
    """Write a table atomically.

    Args:
        rows: of the table.
        columns: types by name: `bool`, `int`, `float` or `str`.
        output: a `.csv`, `.tsv`, `.jsonl` or `.parquet` file.
        for_spreadsheets: in a `.csv` or `.tsv` file prefix `'` to texts that a spreadsheet would evaluate as a formula.

    Raises:
        SettingsError: another suffix.
        OutputError: it cannot be written.
    """
    check_table(output)
    with atomic_file(output) as temporary:
        if output.suffix == ".parquet":
            import pyarrow as pa
            import pyarrow.parquet as pq

            schema = pa.schema([(name, ARROW_TYPES[kind]) for name, kind in columns.items()])
            with pq.ParquetWriter(temporary, schema) as writer:
                left = iter(rows)
                while block := list(islice(left, _TOGETHER)):
                    writer.write_table(pa.Table.from_pylist(block, schema=schema))
            return
        with temporary.open("w", encoding="utf-8", newline="") as file:
            if output.suffix == ".jsonl":
                file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
                return
            table = csv.writer(file, delimiter="\t" if output.suffix == ".tsv" else ",", lineterminator="\n")
            for row in chain([tuple(columns)], (row.values() for row in rows)):
                # One kind of line end: a lone carriage return does not make the writer quote a cell.
                cells = [re.sub("\r\n?", "\n", cell) if isinstance(cell, str) else cell for cell in row]
                table.writerow(map(_harmless, cells) if for_spreadsheets else cells)


def _harmless(cell: Any) -> Any:
    """A cell that no spreadsheet evaluates.

    Some ignore white space before a formula, and some split at semicolons even within quotes.
    """
    if not isinstance(cell, str):
        return cell
    return _LATER_FORMULA.sub(r"\1'", _FORMULA.sub("'", cell))
