"""The warranty: how much of a training to keep, by an exam of documents that were kept apart from it.

Weights are merged, (1 − a) · base + a · trained. On one half of the exam's queries the best a is chosen among those
that are no worse than the base by more than chance, and that keep what the base knows of general sentences. a = 0 is
an answer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import spearmanr

from selfsent.data.corpus import Corpus
from selfsent.data.corpus.clean import letters
from selfsent.data.vector_files import unit
from selfsent.evaluation.datasets.catalogue import STSB_DEV
from selfsent.evaluation.datasets.declared import Store
from selfsent.evaluation.exam import QUERIES, Exam, Text, draw_exam
from selfsent.evaluation.hold_out import by_document
from selfsent.evaluation.lexical import Hybrid
from selfsent.evaluation.load_scorer import scorer_of
from selfsent.evaluation.results import Score
from selfsent.evaluation.scorer import Scorer
from selfsent.evaluation.stats.resampling import Difference
from selfsent.evaluation.suites import TASKS
from selfsent.models.merge import Between

SHARES = (0.0, 0.25, 0.5, 0.75, 1.0)
"""Shares of the training that are tried."""
LOSS = 0.5
"""Points that a share may lose on general sentences."""
SEARCHED = 2000
"""Documents of the exam at most, unless more were kept apart."""
_WHO = """
A man, A woman, Two children, The dog, My neighbour, A young teacher, The old doctor, Some people, The government,
A football player, The cook, Nobody
"""
_DOES = """
is playing a guitar, slices an onion in the kitchen, runs across the field, reads a letter aloud,
is riding a horse on the beach, signed the contract on Monday, won the last game of the season,
waits for the train in the rain, lost a lot of money, does not want to talk about the war, is sleeping on the sofa,
bought a new car
"""
GENERAL = [f"{who.strip()} {does.strip()}." for who, does in product(_WHO.split(","), _DOES.split(","))]
"""Sentences of no field, many of which share half of what they say."""


@dataclass(frozen=True)
class Tried:
    """A share of the training, its scores on both halves of the exam, and its loss on general sentences."""

    share: float
    dev: Score
    test: Score
    loss: float


@dataclass(frozen=True)
class Warranty:
    """What was tried, and what came of it.

    Args:
        tried: each share, the base (share 0) first.
        chosen: index of the chosen share.
        exam: what was asked, in words.
        guard: what the loss was measured by.
        most: points that may be lost there.
    """

    tried: tuple[Tried, ...]
    chosen: int
    exam: str
    guard: str
    most: float = LOSS

    @property
    def share(self) -> float:
        """The share of the training that is kept."""
        return self.tried[self.chosen].share

    @property
    def line(self) -> str:
        """The result in a few sentences."""
        if not self.chosen:
            return f"Keep your model; rank with words: {self._why}."
        found = self.tried[self.chosen]
        dev, test = (less.shown for less in self._gains(self.chosen))
        gains = f"that is {dev} over the base on the half of the exam that chose it, and {test} on the other half"
        loss = f"on {self.guard} it loses {max(0.0, found.loss):.2f}"
        return f"Kept {found.share:.0%} of the training. As search ranks, {gains}; {loss}."

    @property
    def _why(self) -> str:
        """The reason why nothing is kept."""
        freely = choose([each.dev for each in self.tried], [0.0] * len(self.tried))
        if not freely:
            return "no share of the training is ahead of it in the exam by more than chance"
        found, ahead = self.tried[freely], self._gains(freely)[0].shown
        loss = f"loses {found.loss:.2f} points on {self.guard}, more than the {self.most:g} allowed"
        return f"{found.share:.0%} of the training is {ahead} ahead of it in the exam, but {loss}"

    def _gains(self, index: int) -> tuple[Difference, Difference]:
        (base, found) = self.tried[0], self.tried[index]
        return found.dev.minus(base.dev), found.test.minus(base.test)

    def to_json(self) -> dict[str, Any]:
        """The result as JSON data."""
        rows = []
        for index, each in enumerate(self.tried):
            row: dict[str, Any] = {"share": each.share, "loss": round(each.loss, 3)}
            for half, score, less in zip(("dev", "test"), (each.dev, each.test), self._gains(index), strict=True):
                row[half] = {"score": score.score, "n": score.n, "gain": less.difference}
                row[half] |= {"low": less.low, "high": less.high}
            rows.append(row)
        about = {"exam": self.exam, "guard": self.guard, "most": self.most}
        return {"share": self.share, "line": self.line, **about, "tried": rows}


def choose(scores: Sequence[Score], losses: Sequence[float], most: float = LOSS) -> int:
    """The index of the best score ahead of the first one whose paired 95 % interval does not reach below zero.

    Args:
        scores: of each share on the same queries; the base first.
        losses: of each share on the guard.
        most: that may be lost there.
    """
    base, best = scores[0], 0
    for index, (score, loss) in enumerate(zip(scores, losses, strict=True)):
        if score.score > scores[best].score and loss <= most and score.minus(base).low >= 0:
            best = index
    return best


def warranty(between: Between, exam: Exam, data: str | Path | None = None, *, most: float = LOSS) -> Warranty:
    """Choose how much of a training to keep: `between.at(found.share)` is the encoder to use.

    Args:
        between: the encoders before and after training.
        exam: from documents that it was not trained on; see `held_exam`.
        data: mirror of evaluation data sets with the dev set of STS-B; by default SELFSENT_DATA. The hub is not asked.
        most: points that may be lost on the guard.

    Raises:
        DataError: no query in a half of the exam.

    Example:
        >>> between = Between(load_encoder("bundled"), load_encoder("runs/tickets"))
        >>> warranty(between, exam).share  # doctest: +SKIP
        0.0
    """
    dev, test = exam.halves
    plain = scorer_of(between.base, "base")
    guard, loss_of = guard_of(plain, data)
    tried = [Tried(0.0, dev.score(Hybrid(plain)), test.score(Hybrid(plain)), 0.0)]
    for share in SHARES[1:]:
        merged = scorer_of(between.at(share), "merged")
        hybrid = Hybrid(merged)
        tried.append(Tried(share, dev.score(hybrid), test.score(hybrid), loss_of(merged)))
    chosen = choose([each.dev for each in tried], [each.loss for each in tried], most)
    return Warranty(tuple(tried), chosen, exam.summary, guard, most)


def guard_of(base: Scorer, data: str | Path | None = None) -> tuple[str, Callable[[Scorer], float]]:
    """The name of the guard, and a function for what an encoder loses on it against the base, in points.

    STS-B's dev set if a mirror has it. Otherwise 20 · (1 − ρ), with Spearman's ρ between the cosines of both
    encoders for pairs of `GENERAL`.
    """
    store = Store(data)
    if store.mirror is not None and STSB_DEV.is_in(store.mirror):
        before = TASKS[STSB_DEV.name](base, store).score
        return "STS-B dev", lambda encoder: before - TASKS[STSB_DEV.name](encoder, store).score
    known = _similarities(base)
    return "general sentences", lambda encoder: 20 * (1 - float(spearmanr(known, _similarities(encoder))[0]))


def _similarities(encoder: Scorer) -> np.ndarray:
    vectors = unit(encoder(GENERAL))
    return np.asarray((vectors @ vectors.T)[np.triu_indices(len(GENERAL), 1)])


def held_exam(corpus: Corpus, train: np.ndarray, held: np.ndarray, pairs: bool = False) -> Exam:
    """An exam whose queries are from held-out documents alone; documents of the training are searched, too.

    Of a document of two sentences the first one is taken for a title, which must find the other.

    Args:
        corpus: sentences with documents, or pairs.
        train: rows of the training.
        held: rows kept apart.
        pairs: whether rows are pairs: the first text must find the second one.

    Raises:
        DataError: nothing can be asked.
    """
    kept = np.asarray(held)
    if pairs:
        rows = np.concatenate([kept, train[: max(0, SEARCHED - len(kept))]])
        one, other = (corpus.texts(rows, name) for name in corpus.view_columns[:2])
        texts = [Text(str(n), (a,), (b,)) for n, (a, b) in enumerate(zip(one, other, strict=True))]
        asked = set(map(letters, other[: len(kept)]))
        return draw_exam(texts, QUERIES, paired=True, kept=asked, searched=len(texts))
    documents = np.asarray(corpus.documents)
    names = [np.unique(documents[rows]) for rows in (kept, train)]
    chosen = np.concatenate([names[0], names[1][: max(0, SEARCHED - len(names[0]))]])
    asked, texts = set(map(letters, corpus.texts(kept))), list[Text]()
    for name, sentences in by_document(corpus, np.flatnonzero(np.isin(documents, chosen))).items():
        titles = len(sentences) == 2
        texts.append(Text(str(name), tuple(sentences[:titles]), tuple(sentences[titles:])))
    return draw_exam(texts, QUERIES, kept=asked, searched=len(texts))
