"""A new encoder for queries over texts that an old one has encoded: a map of its vectors, and what that costs.

Of texts t, both encoders give unit vectors N (n, d) and O (n, e). A query's vector q of the new one becomes q M, of
length 1, where M is one of

* U Σᵖ Vᵀ of NᵀO = U Σ Vᵀ: with p = 0 the orthogonal map of the least |N M − O|² (Schönemann, 1966); p < 0 damps the
  directions that all texts share, as whitening does;
* that, and a residual of low rank: ridge regression of O − N M on N, in its RANK strongest directions;
* ridge regression of the new encoder's scores, the least |N Nᵀ − N M Oᵀ|² + ridge · |M|²: M = NᵀO (OᵀO + ridge)⁻¹.

The one that is best on half of an exam's queries is taken. On the other half it is compared with both encoders in full.
Maps of this kind are those of drift adapters (arXiv:2509.23471).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.table import Table

from selfsent.data.vector_files import Vectors
from selfsent.display import span, table_of
from selfsent.errors import DataError
from selfsent.evaluation.results import Score
from selfsent.evaluation.tasks.retrieval import RetrievalTask
from selfsent.exam.adapt import RANK
from selfsent.index.query_map import Mapped, QueryMap
from selfsent.naming import short_names
from selfsent.progress import SILENT, Progress
from selfsent.scorers.lexical import Hybrid
from selfsent.scorers.scorer import Scorer

POWERS = (0.0, -0.1, -0.2, -0.3)
RESIDUALS, SCORES = (1.0,), (0.003, 0.01)
"""Ridges of the residual and of the scores, relative to the mean eigenvalue."""
_SMALLEST = 1e-4
"""Share of the largest singular value below which a direction is left out: its texts say nothing of it."""


class Asked(Scorer):
    """The texts of one encoder, asked with the mapped queries of another."""

    def __init__(self, old: Scorer, new: Scorer, change: Any) -> None:
        super().__init__(old, "mapped", new.pooling)
        self.old, self.new, self.change, self.lexical_weight = old, new, change, old.lexical_weight
        self.texts_read, self.parts = new.texts_read, (old, new)

    def query_document_vectors(
        self, queries: Sequence[str], texts: Sequence[str], search: bool = False
    ) -> tuple[Any, Any]:
        """Unit vectors of queries, mapped, and of texts."""
        held = self.old.query_document_vectors([], texts, search)[1]
        return self.change(self.new.query_document_vectors(queries, [], search)[0]), held


@dataclass(frozen=True)
class Swap:
    """A map, and nDCG@10 on the half of the queries that did not choose it.

    Args:
        query_map: the chosen map.
        old: of the old encoder in full.
        new: of the new encoder in full.
        mapped: of the new encoder's queries, mapped, over the old one's vectors.
        dev: of each map that was tried, on the half that chose.
    """

    query_map: QueryMap
    old: Score
    new: Score
    mapped: Score
    dev: dict[str, float]

    @property
    def _names(self) -> list[str]:
        """The old and the new encoder, in short."""
        return short_names([self.query_map.about.old, self.query_map.about.model])

    @property
    def kept(self) -> float | None:
        """Share of the gain of the new encoder that the map keeps; None where there is no gain beyond chance."""
        if not self.new.minus(self.old).low > 0:
            return None
        return (self.mapped.score - self.old.score) / (self.new.score - self.old.score)

    @property
    def line(self) -> str:
        """The loss by the map, and advice."""
        about, gain = self.query_map.about, self.mapped.minus(self.old)
        old, new = self._names
        told = f"The map ({about.name}) is {gain.shown} against {old}"
        told += f", and {self.mapped.minus(self.new).shown} against encoding all texts again."
        if self.kept is None:
            told += f" {new} is not ahead of {old} by more than chance."
        else:
            told += f" It keeps {max(0, self.kept):.0%} of the gain."
        if gain.low > 0:
            return f"{told} Worth it until the texts are encoded again."
        worse = "It loses" if gain.high < 0 else "It gains nothing that is sure"
        return f"{told} {worse}: ask with {old} while it can be had, or encode the texts again."

    def table(self) -> Table:
        """The three, with intervals."""
        old, new = self._names
        rows = [
            [name, f"{score.score:.2f}", span(score.low, score.high)]
            for name, score in (
                (f"{old}, as now", self.old),
                (f"queries of {new}, mapped", self.mapped),
                (f"{new}, all encoded again", self.new),
            )
        ]
        return table_of(("queries and texts", "nDCG@10", "95 % interval"), rows)

    def to_json(self) -> dict[str, Any]:
        """Scores and differences as JSON data."""
        scores = {name: getattr(self, name).to_json() for name in ("old", "mapped", "new")}
        less = {f"mapped_minus_{name}": self.mapped.minus(getattr(self, name)) for name in ("old", "new")}
        ends = {name: [each.difference, each.low, each.high] for name, each in less.items()}
        about = {"map": self.query_map.about.name, "kept": self.kept, "line": self.line, "dev": self.dev}
        return {**about, **scores, **ends}


def swap(
    old: Scorer,
    new: Scorer,
    texts: Sequence[str],
    dev: RetrievalTask,
    test: RetrievalTask,
    lexical_weight: float | None = None,
    *,
    about: Mapped | None = None,
    progress: Progress = SILENT,
) -> Swap:
    """Learn a map from the queries of a new encoder to the vectors that an old one made of texts.

    Args:
        old: the encoder of the texts.
        new: the encoder of queries to come.
        texts: to learn from, both encoders' vectors of them; some thousands, and more than a vector has numbers.
        dev: queries to choose by.
        test: queries to compare on.
        lexical_weight: of BM25 in all three; by default each encoder's own, and the old one's for the map.
        about: names and fingerprints of the encoders.
        progress: receives the number of maps tried.

    Raises:
        DataError: an encoder has no vectors.
    """
    for each in (old, new):
        if not each.has_vectors:
            raise DataError(f"{each.name} has no vectors to map: name an encoder")
    about = about or Mapped("", new.name, "", old.name, "")
    (_, held), (asked, _) = (each.query_document_vectors(texts, texts, search=True) for each in (old, new))
    seen = new.query_document_vectors(texts, texts, search=True)[1]

    def score(task: RetrievalTask, scorer: Scorer) -> Score:
        weight = scorer.lexical_weight if lexical_weight is None else lexical_weight
        return task.score(Hybrid(scorer, weight) if weight else scorer)

    tried = list[tuple[QueryMap, Score]]()
    candidates = list(maps(asked, seen, held))
    for name, matrix in candidates:
        query_map = QueryMap(Mapped(name, about.model, about.fingerprint, about.old, about.space), matrix)
        tried.append((query_map, score(dev, Asked(old, new, query_map))))
        progress.count("trying maps", 1, len(candidates))
    best, _ = max(tried, key=lambda each: each[1].score)
    before, full, mapped = (score(test, each) for each in (old, new, Asked(old, new, best)))
    return Swap(best, before, full, mapped, {each.about.name: result.score for each, result in tried})


def maps(asked: Vectors, seen: Vectors, held: Vectors) -> Iterator[tuple[str, Vectors]]:
    """The maps that are tried, by their names.

    Args:
        asked: (n, d) the texts as queries of the new encoder.
        seen: (n, d) the texts as texts of the new encoder.
        held: (n, e) the texts as texts of the old one.
    """
    one, other, target = (each.astype(np.float64) for each in (asked, seen, held))
    left, scales, right = np.linalg.svd(one.T @ target, full_matrices=False)
    kept = scales > _SMALLEST * scales[0]
    left, scales, right = left[:, kept], scales[kept] / scales[0], right[kept]
    for power in POWERS:
        damped = f", strong directions damped by {-power:g}" if power else ""
        yield f"orthogonal{damped}", _single((left * scales**power) @ right)
    turn = left @ right
    for ridge in RESIDUALS:
        down, some, up = np.linalg.svd(_ridge(one, target - one @ turn, ridge), full_matrices=False)
        name = f"orthogonal and a residual of rank {RANK}"
        yield name, _single(turn + (down[:, :RANK] * some[:RANK]) @ up[:RANK])
    for ridge in SCORES:
        yield f"regression of scores with a ridge of {ridge:g}", _single(_ridge(target, other, ridge).T)


def _ridge(rows: NDArray[np.float64], aims: NDArray[np.float64], ridge: float) -> NDArray[np.float64]:
    """W of the least |rows W − aims|² + ridge · |W|², the ridge relative to the mean eigenvalue."""
    moments = rows.T @ rows
    penalty = ridge * np.trace(moments) / len(moments) * np.eye(len(moments))
    found: NDArray[np.float64] = np.linalg.solve(moments + penalty, rows.T @ aims)
    return found


def _single(values: NDArray[np.float64]) -> Vectors:
    return np.ascontiguousarray(values, np.float32)
