"""A corpus without near-copies: the rows that stay, and the families of near-copies."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from selfsent.data.corpus.batch import POSITIONS
from selfsent.errors import SettingsError
from selfsent.progress import SILENT, Progress
from selfsent.search.comparing import LIMITS, Comparison, DedupLimits, allowing, ranks_of
from selfsent.search.differences import Guard
from selfsent.search.families import ROUNDING, Family, Stars, families_of
from selfsent.search.near import near_candidates
from selfsent.search.precision import Precision, choose_threshold
from selfsent.search.similarity import Similarity
from selfsent.search.timeline import order_of_dates

if TYPE_CHECKING:
    from selfsent.data.corpus import Corpus
    from selfsent.search.pairs import Pair

Vectors = NDArray[np.float32]
Integers = NDArray[np.int64]
Level = Literal["exact", "near", "meaning"]

THRESHOLDS: dict[Level, float] = {"exact": 1.0, "near": 0.8, "meaning": 0.85}
"""Minimum similarity of near-copies where none is given."""
NEWEST = "newest:"


@dataclass(frozen=True)
class Deduplicated:
    """The rows of a corpus that stay, and the families of copies.

    Args:
        kept: (k,) rows of the input that stay, ascending; rows without text among them.
        families: of two rows or more, by ascending kept row.
        level: how copies were told.
        threshold: minimum similarity of a copy to the row that is kept.
        precision: estimated at this threshold, if it was chosen by one.
    """

    kept: Integers
    families: list[Family]
    level: Level
    threshold: float
    precision: Precision | None = None

    @property
    def dropped(self) -> int:
        """Number of rows that go."""
        return sum(len(family.others) for family in self.families)


def check_dedup(
    level: str,
    keep_row: str,
    guard: Sequence[str] = (),
    threshold: float | None = None,
    precision: float | None = None,
) -> None:
    """Reject unknown levels, rows to keep and guards, and two thresholds.

    Raises:
        SettingsError: one of them.
    """
    if level not in get_args(Level):
        raise SettingsError(f"level is {level!r}; it is one of {', '.join(get_args(Level))}")
    if keep_row not in ("first", "longest") and not keep_row.removeprefix(NEWEST) != keep_row:
        raise SettingsError(f"keep_row is {keep_row!r}; it is first, longest, or newest:COLUMN with dates or numbers")
    if keep_row == NEWEST:
        raise SettingsError("keep_row is newest: without a column; write newest:COLUMN")
    if unknown := [each for each in guard if each not in get_args(Guard)]:
        raise SettingsError(f"guard is {unknown[0]!r}; it is one of {', '.join(get_args(Guard))}")
    if threshold is not None and not 0 <= threshold <= 1:
        raise SettingsError(f"threshold is {threshold:g}; it must be from 0 to 1")
    if precision is not None and not 0 < precision < 1:
        raise SettingsError(f"precision is {precision:g}; it must be above 0 and below 1")
    if precision is not None and (threshold is not None or level == "exact"):
        other = "level=exact" if level == "exact" else "`threshold`"
        raise SettingsError(f"`precision` chooses the threshold, and {other} says it: give one of them")


def deduplicate(
    corpus: Corpus,
    level: Level = "near",
    threshold: float | None = None,
    keep_row: str = "first",
    guard: Sequence[Guard] = (),
    precision: float | None = None,
    similarity: Similarity | None = None,
    progress: Progress = SILENT,
    limits: DedupLimits = LIMITS,
) -> Deduplicated:
    """Tell which rows of the input stay, and of which others they are near-copies.

    Args:
        corpus: the texts, with the column of `newest` among its metadata.
        level: `exact`: equal once cleaned; `near`: nearly the same words; `meaning`: alike to an encoder, and by words.
        threshold: minimum similarity, 0 to 1; None for the level's.
        keep_row: the row of a family that stays: `first`, `longest`, or `newest:COLUMN`, the one with the latest date
            or largest number; the first among equals.
        guard: changes that no two texts of a family may have.
        precision: choose the threshold at which this share of the copies are copies (see `choose_threshold`).
        similarity: for `meaning`, with vectors.
        progress: receives the number of distinct texts done.
        limits: of the comparison.

    Raises:
        SettingsError: an unknown option, a column without dates or numbers, or too few texts for a precision.
    """
    check_dedup(level, keep_row, guard, threshold, precision)
    chosen: Precision | None = None
    if precision is not None:
        similarity = similarity or Similarity(corpus)
        chosen = choose_threshold(similarity, precision, progress, guard)
        threshold, guard = chosen.threshold, chosen.guard
    threshold = THRESHOLDS[level] if threshold is None else threshold
    first, order = preferred(corpus, keep_row)
    stars = Stars(len(corpus))
    if level != "exact":
        similarity = similarity or Similarity(corpus)
        advance = progress.counting("comparing", len(corpus))
        Comparison(stars, similarity, order, threshold, allowing(corpus, guard), advance, limits).run()
    return _of_input(corpus, stars, first, order, level, threshold, chosen)


def families_of_pairs(pairs: Sequence[Pair], corpus: Corpus, lexical_weight: float = 0.0) -> Deduplicated:
    """The families of pairs of rows of a corpus, with the first row of each kept; rows in no pair have none.

    Args:
        pairs: rows of the corpus, as `most_similar_pairs` and `by_tfidf` give them.
        corpus: of the rows.
        lexical_weight: of their scores.
    """
    first, order = preferred(corpus, "first")
    rank, stars = ranks_of(order), Stars(len(corpus))
    ends = np.array([pair[1:3] for pair in pairs], np.int64).reshape(-1, 2)
    score = np.array([pair.score(lexical_weight) for pair in pairs])
    places = np.sort(rank[ends], axis=1)
    stars.join(places[:, 0], places[:, 1], score)
    return _of_input(corpus, stars, first, order, "meaning", float(score.min(initial=1.0)))


def _of_input(
    corpus: Corpus,
    stars: Stars,
    first: Integers,
    order: Integers,
    level: Level,
    threshold: float,
    precision: Precision | None = None,
) -> Deduplicated:
    """Families of texts as families of rows of the input; rows with the same text are of one."""
    inputs = corpus.input_rows
    rows = np.flatnonzero(inputs.corpus_rows >= 0)
    rank = ranks_of(order)[np.asarray(inputs.corpus_rows[rows])]
    kept, score = np.arange(len(inputs)), np.ones(len(inputs), np.float32)
    kept[rows] = first[order[stars.kept[rank]]]
    score[rows] = stars.score[rank]
    stays = np.flatnonzero(kept == np.arange(len(inputs)))
    return Deduplicated(stays, families_of(kept, score), level, threshold, precision)


def copies_across(corpus: Corpus, rows: Integers, others: Integers, threshold: float = THRESHOLDS["near"]) -> Integers:
    """The rows, (n,) of a corpus, that are near-copies of a row of `others`, (m,): for sides of a hold-out.

    All text columns count together.
    """
    texts = _Joined(corpus, np.concatenate([others, rows]))
    similarity = Similarity(texts)
    assert similarity.counts is not None
    found = np.zeros(len(texts), bool)
    # The others come first, so that a band compares with them.
    for earlier, later in near_candidates(texts, similarity.counts, np.arange(len(texts)), lambda count: None):
        across = (earlier < len(others)) & (later >= len(others))
        earlier, later = earlier[across], later[across]
        found[later[similarity(earlier, later) >= threshold - ROUNDING]] = True
    return np.asarray(rows[found[len(others) :]])


class _Joined:
    """Some rows of a corpus, each with the texts of all columns."""

    def __init__(self, corpus: Corpus, rows: Integers) -> None:
        self._corpus, self._rows = corpus, rows

    def __len__(self) -> int:
        return len(self._rows)

    def texts(self, rows: Integers) -> list[str]:
        columns = [self._corpus.texts(self._rows[rows], column) for column in self._corpus.input_columns]
        return ["\n".join(texts) for texts in zip(*columns, strict=True)]

    def batches(self, size: int = LIMITS.block) -> Iterator[list[str]]:
        for start in range(0, len(self), size):
            yield self.texts(np.arange(start, min(start + size, len(self))))


def preferred(corpus: Corpus, keep_row: str) -> tuple[Integers, Integers]:
    """The preferred row of the input of each text, (n,), and the texts in the order of preference, (n,)."""
    inputs = corpus.input_rows
    first = np.asarray(inputs.first)
    if keep_row == "longest":
        sizes = np.fromiter((len(text) for batch in corpus.batches() for text in batch), np.int64, len(corpus))
        return first, np.lexsort((first, -sizes))
    if not keep_row.startswith(NEWEST):
        return first, np.argsort(first, kind="stable")
    rows = np.flatnonzero(inputs.corpus_rows >= 0)
    column = keep_row.removeprefix(NEWEST)
    value = order_of_dates(inputs.describe(rows)[column], column)
    own = np.asarray(inputs.corpus_rows[rows])
    latest = np.lexsort((rows, -value, own))
    begins = latest[np.flatnonzero(np.diff(own[latest], prepend=-1))]
    return rows[begins], np.lexsort((rows[begins], -value[begins]))


def table_rows(found: Deduplicated, corpus: Corpus) -> Iterator[dict[str, Any]]:
    """The families as rows of a table, as `table_columns` names them."""
    from selfsent.search.differences import differences

    inputs = corpus.input_rows
    for number, family in enumerate(found.families, start=1):
        rows = np.array([family.kept, *family.others])
        cells = inputs.describe(rows)
        ids = next((cells[name] for name in cells if name not in POSITIONS), cells["row"])
        named = [f"row {row}" if name is None else name for row, name in zip(cells["row"], ids, strict=True)]
        own = np.asarray(inputs.corpus_rows[rows])
        kept, *others = corpus.texts(own[: 1 + _TOLD])
        told = []
        for name, text in zip(named[1:], others, strict=False):
            told.append(f"{name}: {'exact copy' if text == kept else differences(kept, text) or 'capitals alone'}")
        told += ["…"] if len(family.others) > _TOLD else []
        yield {
            "family": number,
            "kept": str(named[0]),
            "rows": len(family),
            "others": ", ".join(map(str, named[1:])),
            "differs": "\n".join(told),
            "least": min(family.scores),
            "row": cells["row"][0],
            "other_rows": ", ".join(map(str, cells["row"][1:])),
            "text": kept,
        }


_TOLD = 50
"""Others of a family whose differences are told."""


def table_columns() -> dict[str, type]:
    """The columns of `table_rows`, with their types."""
    numbers = {"family": int, "kept": str, "rows": int, "others": str, "differs": str, "least": float, "row": int}
    return {**numbers, "other_rows": str, "text": str}
