"""Classifiers on counts of words, for SentEval's tasks: a logistic regression on sparse rows, fitted on training rows.

Nothing of a test row is seen before it is predicted: its words are neither in the vocabulary nor in the frequencies,
which are those of the training rows of each single fit.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, Literal

import numpy as np

from selfsent.evaluation.stats.logistic import Labels
from selfsent.evaluation.stats.resampling import Floats

STEPS, TOLERANCE = 1000, 1e-4
PROBED = ("tfidf", "counts")
"""What a classifier can be trained on. BM25 weighs texts for a query, and there is none."""


class WordProblem:
    """Texts, or pairs of texts, and labels (n,) of all rows, and how classifiers are trained on some of them.

    A text is a row of TF-IDF or of counts, of length one, and of a pair |u - v| and u * v are read. The classifier is
    that of `stats.logistic`: mean cross-entropy plus penalty / 2 times the squared norm of weights and biases.

    Args:
        kind: one of `PROBED`.
        sides: (n,) texts, or both texts of each pair.
        labels: (n,) classes from 0.
        seed: of the folds.
    """

    classifier: Literal["exact"] = "exact"

    def __init__(self, kind: str, sides: Sequence[Sequence[str]], labels: Labels, seed: int) -> None:
        self.kind, self.labels, self.seed, self._sides = kind, labels, seed, sides

    def fit(self, trains: Sequence[Labels], penalties: Floats, stops: object = None) -> Labels:
        """Train a classifier on each set of rows, and predict all rows: (classifiers, n).

        Args:
            trains: rows of each classifier.
            penalties: (classifiers,).
            stops: not needed: it goes on to the minimum.
        """
        from sklearn.linear_model import LogisticRegression

        made = dict[bytes, Any]()  # each set of rows comes with several penalties
        predicted = np.zeros((len(trains), len(self.labels)), np.int64)
        for number, (rows, penalty) in enumerate(zip(trains, penalties, strict=True)):
            key = rows.tobytes()
            features = made[key] = made[key] if key in made else self._features(rows)
            # Of two classes there is one logit, which stands for two opposite ones.
            share = (1 if len(np.unique(self.labels[rows])) > 2 else 2) / (len(rows) * penalty)
            fitted = LogisticRegression(C=share, fit_intercept=False, max_iter=STEPS, tol=TOLERANCE)
            predicted[number] = fitted.fit(features[rows], self.labels[rows]).predict(features)
        return predicted

    @cached_property
    def _counts(self) -> list[Any]:
        """How often each word is in each text, (n, words) sparse, for each side."""
        from scipy.sparse import csr_matrix
        from sklearn.feature_extraction.text import CountVectorizer

        maker = CountVectorizer(dtype=np.float64)
        try:
            maker.fit(text for side in self._sides for text in side)
        except ValueError:  # the texts hold no words
            return [csr_matrix((len(side), 1)) for side in self._sides]
        return [maker.transform(side) for side in self._sides]

    def _features(self, rows: Labels) -> Any:
        """Features of all rows and a constant, (n, d + 1) sparse, as the texts of some rows make them."""
        from scipy.sparse import csr_matrix, hstack, vstack
        from sklearn.feature_extraction.text import TfidfTransformer

        seen = vstack([side[rows] for side in self._counts])
        words, constant = np.flatnonzero(np.asarray(seen.sum(axis=0)).ravel()), np.ones((len(self.labels), 1))
        if not len(words):
            return csr_matrix(constant)
        weigh = TfidfTransformer(use_idf=self.kind == "tfidf").fit(seen[:, words])
        weighed = [weigh.transform(side[:, words]) for side in self._counts]
        parts = weighed if len(weighed) == 1 else [abs(weighed[0] - weighed[1]), weighed[0].multiply(weighed[1])]
        return hstack([*parts, csr_matrix(constant)], format="csr")
