"""Selection of informative pairs of sentences for human judgement, and the file of judgements."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from selfsent.data.corpus import Corpus
from selfsent.data.vector_files import inner
from selfsent.errors import DataError
from selfsent.evaluation.datasets.own_files import is_number, read_tabs
from selfsent.evaluation.tasks.own import PAIRS
from selfsent.files import write_text
from selfsent.scorers.scorer import Scorer
from selfsent.stats.duplicates import near_duplicates

Pair = tuple[str, str]
Pairs = NDArray[np.int64]
KEYS = {**{str(score): score for score in range(6)}, "y": 5, "n": 0}
"""Keys of an answer, and their scores."""
MAX_SENTENCES = 2000
"""Maximum number of sentences to draw pairs from."""
NEAREST = (1, 2, 4, 8, 16, 32)
"""Ranks of neighbours for pairs, by each encoder; as many pairs are random."""
STRATA = 5


def spread_sentences(corpus: Corpus, seed: int = 0) -> list[str]:
    """A random sample of at most MAX_SENTENCES sentences of a corpus."""
    rows = np.random.default_rng(seed).choice(len(corpus), min(MAX_SENTENCES, len(corpus)), replace=False)
    return corpus.texts(np.sort(rows))


def draw_pairs(sentences: Sequence[str], scorers: Sequence[Scorer], count: int, seed: int = 0) -> Pairs:
    """Pairs to judge, (count, 2) sentence numbers, ordered so that any prefix is spread like the whole.

    All scorers rank a pool of near and random pairs. It is cut into STRATA bands of equal width by mean rank. Equal
    numbers are drawn from each band, half of them with the largest differences between scorers.

    Args:
        sentences: distinct, such as from `spread_sentences`.
        scorers: the candidates, or any.
        count: number of pairs; fewer if the pool is smaller.
        seed: of the choice.

    Raises:
        DataError: fewer than two distinct sentences.
    """
    rng = np.random.default_rng(seed)
    pool, cosines = _pool(sentences, scorers, rng)
    ranks = cosines.argsort(1).argsort(1) / max(1, cosines.shape[1] - 1)
    mean_rank, deviation = ranks.mean(0), ranks.std(0) + 1e-9 * rng.random(len(pool))
    bands = np.minimum((STRATA * mean_rank).astype(int), STRATA - 1)
    drawn = [_drawn(np.flatnonzero(bands == band), deviation, -(-count // STRATA), rng) for band in range(STRATA)]
    longest = max(map(len, drawn))
    in_turn = [part[number] for number in range(longest) for part in drawn if number < len(part)]
    return np.asarray(pool[in_turn[:count]], np.int64)


def _pool(
    texts: Sequence[str], scorers: Sequence[Scorer], rng: np.random.Generator
) -> tuple[Pairs, NDArray[np.float64]]:
    """Pairs to draw from, (p, 2), and their similarity by each scorer, (scorers, p)."""
    near = near_duplicates(texts).toarray().astype(bool)
    similar = [inner(*scorer.query_document_vectors(texts, texts)) for scorer in scorers]
    line = np.arange(len(texts))
    found = []
    for similarity in similar:
        order = np.argsort(-np.where(near, -np.inf, similarity), axis=1, kind="stable")
        found += [np.stack([line, order[:, rank - 1]], 1) for rank in NEAREST if rank < len(texts)]
    found.append(rng.integers(len(texts), size=(len(texts) * len(NEAREST), 2)))
    pool = np.unique(np.sort(np.concatenate(found), axis=1), axis=0)
    pool = pool[~near[pool[:, 0], pool[:, 1]]]
    if not len(pool):
        raise DataError("there are no two sentences that differ from each other")
    return pool, np.stack([similarity[pool[:, 0], pool[:, 1]] for similarity in similar]).astype(np.float64)


def _drawn(members: Pairs, deviation: NDArray[np.float64], count: int, rng: np.random.Generator) -> Pairs:
    """Alternately the pairs with the largest rank differences, and random ones."""
    most = members[np.argsort(-deviation[members], kind="stable")][: count // 2]
    others = rng.permutation(np.setdiff1d(members, most))[: count - len(most)]
    order = np.argsort(np.r_[np.arange(len(most)) * 2 + 1, np.arange(len(others)) * 2], kind="stable")
    return np.asarray(np.r_[most, others][order], np.int64)


class PairsToJudge:
    """The answers so far, and the pairs left to judge.

    Args:
        path: a tab-separated file with a heading: sentence1, sentence2, score. Read if it exists.
        pairs: to judge, in order; pairs in the file are skipped.

    Raises:
        DataError: the file cannot be read, or has another format.

    Examples:
        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as folder:
        ...     found = PairsToJudge(Path(folder) / "pairs.tsv", [("a car", "an auto"), ("a car", "a cat")])
        ...     found.answer("y")
        ...     found.next
        ('a car', 'a cat')
    """

    keys = tuple(KEYS)

    def __init__(self, path: Path, pairs: Sequence[Pair]) -> None:
        self.path, self.answers = path, _read(path)
        known = {frozenset(pair) for pair in self.answers}
        self.todo = [pair for pair in map(_plain, pairs) if frozenset(pair) not in known]
        self.given: list[Pair] = []
        """Pairs answered in this session, which can be undone."""

    def __len__(self) -> int:
        return len(self.answers)

    @property
    def next(self) -> Pair | None:
        """The pair to judge; None if all are done."""
        return self.todo[0] if self.todo else None

    def answer(self, key: str) -> None:
        """Record the answer to the next pair: one of KEYS."""
        pair = self.todo.pop(0)
        self.answers[pair] = float(KEYS[key])
        self.given.append(pair)
        self._write()

    def undo(self) -> bool:
        """Take the last answer back, and its pair is next again; returns whether there was one."""
        if not self.given:
            return False
        pair = self.given.pop()
        del self.answers[pair]
        self.todo.insert(0, pair)
        self._write()
        return True

    def skip(self) -> None:
        """Skip the next pair in this session."""
        self.todo.pop(0)

    def _write(self) -> None:
        lines = ["\t".join(PAIRS), *(f"{a}\t{b}\t{score:g}" for (a, b), score in self.answers.items())]
        write_text(self.path, "\n".join(lines) + "\n")


def _plain(pair: Pair) -> Pair:
    """Both texts on one line, without tabs."""
    return " ".join(pair[0].split()), " ".join(pair[1].split())


def _read(path: Path) -> dict[Pair, float]:
    rows = read_tabs(path, PAIRS)[0] if path.exists() else []
    if not rows and path.exists() and path.read_text("utf-8", "replace").strip() not in ("", "\t".join(PAIRS)):
        raise DataError(f"{path} is not written by selfsent label; use another file")
    if odd := [score for *_, score in rows if not is_number(score)]:
        raise DataError(f"{path}: the score {odd[0]!r} is not one of selfsent label; use another file")
    return {(first, second): float(score) for first, second, score in rows}
