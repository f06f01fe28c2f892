"""The warranty: how much of a training to keep, by an exam of documents that were kept apart from it.

Weights are interpolated, (1 − α) · base + α · trained (WiSE-FT, arXiv:2109.01903). On one half of the exam's queries
the best α is chosen among those that are no worse than the base by more than chance, and that keep what the base knows
of general sentences. α = 0 is an answer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from selfsent.data.corpus import Corpus
from selfsent.data.corpus.clean import letters_of
from selfsent.data.vector_files import unit
from selfsent.evaluation.datasets.catalogue import STSB_DEV
from selfsent.evaluation.datasets.declared import Store
from selfsent.evaluation.hold_out import HoldOut, by_document
from selfsent.evaluation.results import Score
from selfsent.evaluation.suites import TASKS
from selfsent.evaluation.tasks.retrieval import KnownItemTask
from selfsent.exam.draw import QUERIES, draw_exam
from selfsent.exam.exam import Exam, Text
from selfsent.models.merge import WeightInterpolation
from selfsent.scorers.lexical import Hybrid
from selfsent.scorers.load_scorer import scorer_of
from selfsent.scorers.scorer import Scorer
from selfsent.stats.resampling import Difference

ALPHAS = (0.0, 0.25, 0.5, 0.75, 1.0)
"""Weights of the trained model that are compared."""
LOSS = 0.5
"""Points that may be lost on general sentences."""
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
"""General sentences, many of which share half of their meaning."""


@dataclass(frozen=True)
class Candidate:
    """An interpolation: `alpha`, its scores on both halves of the exam, and its loss in the regression check."""

    alpha: float
    dev: Score
    test: Score
    loss: float


@dataclass(frozen=True)
class Warranty:
    """The candidates, and the chosen one.

    Args:
        candidates: one for each alpha, the base (alpha 0) first.
        chosen: index of the chosen candidate.
        exam: summary of the exam.
        regression_check: name of the regression check.
        maximum_loss: points that may be lost in it.
    """

    candidates: tuple[Candidate, ...]
    chosen: int
    exam: str
    regression_check: str
    maximum_loss: float = LOSS

    @property
    def alpha(self) -> float:
        """Weight of the trained model in the chosen interpolation, from 0 to 1."""
        return self.candidates[self.chosen].alpha

    @property
    def line(self) -> str:
        """The result in a few sentences."""
        if not self.chosen:
            return f"Keep your model; rank with words: {self._why}."
        found = self.candidates[self.chosen]
        dev, test = (less.shown for less in self._gains(self.chosen))
        gains = f"that is {dev} over the base on the half of the exam that chose it, and {test} on the other half"
        loss = f"on {self.regression_check} it loses {max(0.0, found.loss):.2f}"
        return f"Kept {found.alpha:.0%} of the training. As search ranks, {gains}; {loss}."

    @property
    def _why(self) -> str:
        """The reason why nothing is kept."""
        freely = choose([each.dev for each in self.candidates], [0.0] * len(self.candidates))
        if not freely:
            return "no share of the training is ahead of it in the exam by more than chance"
        found, ahead = self.candidates[freely], self._gains(freely)[0].shown
        loss = f"loses {found.loss:.2f} points on {self.regression_check}, more than the {self.maximum_loss:g} allowed"
        return f"{found.alpha:.0%} of the training is {ahead} ahead of it in the exam, but {loss}"

    def _gains(self, index: int) -> tuple[Difference, Difference]:
        (base, found) = self.candidates[0], self.candidates[index]
        return found.dev.minus(base.dev), found.test.minus(base.test)

    def to_json(self) -> dict[str, Any]:
        """The result as JSON data."""
        rows = []
        for index, each in enumerate(self.candidates):
            row: dict[str, Any] = {"alpha": each.alpha, "loss": round(each.loss, 3)}
            for half, score, less in zip(("dev", "test"), (each.dev, each.test), self._gains(index), strict=True):
                row[half] = {"score": score.score, "n": score.n, "gain": less.difference}
                row[half] |= {"low": less.low, "high": less.high}
            rows.append(row)
        about = {
            "exam": self.exam,
            "regression_check": self.regression_check,
            "maximum_loss": self.maximum_loss,
        }
        return {"alpha": self.alpha, "line": self.line, **about, "candidates": rows}


def choose(scores: Sequence[Score], losses: Sequence[float], most: float = LOSS) -> int:
    """The index of the best score ahead of the first one whose paired 95 % interval does not reach below zero.

    Args:
        scores: of each candidate on the same queries; the base first.
        losses: of each candidate in the regression check.
        most: maximum loss.
    """
    base, best = scores[0], 0
    for index, (score, loss) in enumerate(zip(scores, losses, strict=True)):
        if score.score > scores[best].score and loss <= most and score.minus(base).low >= 0:
            best = index
    return best


def warranty(
    interpolation: WeightInterpolation, exam: Exam, data: str | Path | None = None, *, most: float = LOSS
) -> Warranty:
    """Choose how much of a training to keep: `interpolation.at(found.alpha)` is the encoder to use.

    Args:
        interpolation: the encoders before and after training.
        exam: from documents that it was not trained on; see `held_exam`.
        data: mirror of evaluation data sets with the dev set of STS-B; by default SELFSENT_DATA. The hub is not asked.
        most: points that may be lost in the regression check.

    Raises:
        DataError: no query in a half of the exam.

    Examples:
        >>> interpolation = WeightInterpolation(load_encoder("bundled"), load_encoder("runs/tickets"))
        >>> warranty(interpolation, exam).alpha  # doctest: +SKIP
        0.0
    """
    dev, test = exam.halves
    plain = scorer_of(interpolation.base, "base")
    check, loss_of = regression_check(plain, data)
    candidates = [Candidate(0.0, dev.score(Hybrid(plain)), test.score(Hybrid(plain)), 0.0)]
    for alpha in ALPHAS[1:]:
        merged = scorer_of(interpolation.at(alpha), "merged")
        hybrid = Hybrid(merged)
        candidates.append(Candidate(alpha, dev.score(hybrid), test.score(hybrid), loss_of(merged)))
    chosen = choose([each.dev for each in candidates], [each.loss for each in candidates], most)
    return Warranty(tuple(candidates), chosen, exam.summary, check, most)


def regression_check(base: Scorer, data: str | Path | None = None) -> tuple[str, Callable[[Scorer], float]]:
    """Name of the regression check, and a function from an encoder to its loss against the base, in points.

    STS-B's dev set if a mirror has it. Otherwise 20 · (1 − ρ), with Spearman's ρ between the cosines of both
    encoders for pairs of `GENERAL`.
    """
    store = Store(data)
    if store.mirror is not None and STSB_DEV.is_in(store.mirror):
        before = TASKS[STSB_DEV.name](base, store).score
        return "STS-B dev", lambda encoder: before - TASKS[STSB_DEV.name](encoder, store).score
    from scipy.stats import spearmanr

    known = _similarities(base)
    return "general sentences", lambda encoder: 20 * (1 - float(spearmanr(known, _similarities(encoder))[0]))


def _similarities(encoder: Scorer) -> np.ndarray:
    vectors = unit(encoder(GENERAL))
    return np.asarray((vectors @ vectors.T)[np.triu_indices(len(GENERAL), 1)])


def titles_find_texts(corpus: Corpus, hold_out: HoldOut) -> KnownItemTask:
    """Search for the texts that were kept apart by their titles, less some of the words that both have.

    Raises:
        DataError: fewer than two have a title.
    """
    assert hold_out.test is not None
    exam = held_exam(corpus, hold_out.train, hold_out.test)
    relation = f"{hold_out.title} finds its {corpus.read_columns[0]}, less some of the words that both have"
    bodies = [text.body for text in exam.documents]
    return KnownItemTask(relation, bodies, {query.text: {*query.answers} for query in exam.queries})


def held_exam(corpus: Corpus, train: np.ndarray, held: np.ndarray, pairs: bool = False) -> Exam:
    """An exam whose queries are from held-out documents alone; documents of the training are searched, too.

    Of a document of two sentences the first one is taken for a title, which must find the other.

    Args:
        corpus: sentences with documents, pairs, or texts with titles.
        train: rows of the training.
        held: rows kept apart.
        pairs: whether rows are pairs: the first text must find the second one.

    Raises:
        DataError: nothing can be asked.
    """
    kept = np.asarray(held)
    if pairs:
        rows = np.concatenate([kept, train[: max(0, SEARCHED - len(kept))]])
        one, other = (corpus.texts(rows, name) for name in corpus.input_columns[:2])
        texts = [Text(str(n), (a,), (b,)) for n, (a, b) in enumerate(zip(one, other, strict=True))]
        asked = set(letters_of(other[: len(kept)]))
        return draw_exam(texts, QUERIES, paired=True, kept=asked, searched=len(texts))
    if corpus.documents is None:
        rows = np.concatenate([kept, train[: max(0, SEARCHED - len(kept))]])
        known = corpus.titles()
        named = zip(rows.tolist(), corpus.texts(rows), strict=True)
        texts = [Text(str(row), (known[row],) if known[row].strip() else (), (text,)) for row, text in named]
        return draw_exam(texts, QUERIES, kept={*letters_of(corpus.texts(kept))}, searched=len(texts))
    documents = np.asarray(corpus.documents)
    names = [np.unique(documents[rows]) for rows in (kept, train)]
    chosen = np.concatenate([names[0], names[1][: max(0, SEARCHED - len(names[0]))]])
    asked, texts = set(letters_of(corpus.texts(kept))), list[Text]()
    for name, sentences in by_document(corpus, np.flatnonzero(np.isin(documents, chosen))).items():
        titles = len(sentences) == 2
        texts.append(Text(str(name), tuple(sentences[:titles]), tuple(sentences[titles:])))
    return draw_exam(texts, QUERIES, kept=asked, searched=len(texts))
