"""SentEval's own classifier (Conneau and Kiela, 2018): a linear layer trained by Adam and stopped early.

The published scores are this classifier's. It stops before the minimum, on vectors of length one far before it, so
exact fits may score a point more or less than it.

Folds and penalties are trained side by side: a batch is drawn from all rows, and each problem takes those of it that it
trains on, 64 on average where SentEval draws 64. Everything else is SentEval's.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from selfsent.evaluation.stats.logistic import Features, Labels, Masks, extended, product, softmax
from selfsent.evaluation.stats.resampling import Floats

BATCH, RATE, LOOKS, EPOCHS_PER_LOOK, PATIENCE = 64, 1e-3, 51, 4, 5
HELD_OUT = 0.05
"""Share of the training rows that decides when to stop where no other rows do."""
_MEAN, _SQUARE, _EPSILON = 0.9, 0.999, 1e-8


def fit_predict(
    features: Features, labels: Labels, train: Masks, penalty: Floats, classes: int, valid: Masks | None, seed: int
) -> Labels:
    """Train a linear classifier per problem, and predict all rows with its best state.

    Args:
        features: (n, d), shared by all problems.
        labels: (n,) classes from 0.
        train: (problems, n) which rows each problem trains on.
        penalty: (problems,) weight decay.
        classes: number of classes.
        valid: (problems, n) rows whose accuracy is looked at after every 4 epochs; without it, 5 % of the training
            rows, which then are not trained on.
        seed: of the first weights, of the batches and of the rows held out.

    Returns:
        (problems, n) predicted classes.
    """
    draw = np.random.default_rng(seed)
    if valid is None:
        train, valid = _hold_out(train, draw)
    features = extended(features)
    bound = 1 / np.sqrt(features.shape[1] - 1)
    weights = draw.uniform(-bound, bound, (features.shape[1], 1, classes)).astype(np.float32)
    adam = _Adam(np.repeat(weights, len(train), axis=1), penalty.astype(np.float32)[:, None])
    best, accuracy = adam.weights.copy(), np.full(len(train), -1.0)
    stale, active = np.zeros(len(train), np.int64), np.arange(len(train))
    rows = np.flatnonzero(train.any(0))
    batch = round(BATCH * len(rows) / train.sum(1).mean())
    for _ in range(LOOKS):
        for _ in range(EPOCHS_PER_LOOK):
            _epoch(features, labels, train[active], adam, draw.permutation(rows), batch)
        found = _accuracy(features, labels, valid[active], adam.weights)
        better = found > accuracy[active]
        best[:, active[better]], accuracy[active[better]] = adam.weights[:, better], found[better]
        going = better | (stale[active] < PATIENCE)
        stale[active] += ~better
        active = active[going]
        adam.keep(going)
        if not len(active):
            break
    return np.asarray(product(features, best).argmax(2).T, np.int64)


class _Adam:
    """Adam with its usual rates; the penalty is added to the gradient, as its weight decay does.

    Args:
        weights: (d, problems, classes).
        penalty: (problems, 1).
    """

    def __init__(self, weights: Features, penalty: Features) -> None:
        self.weights, self.penalty = weights, penalty
        self.first, self.second, self.steps = np.zeros_like(weights), np.zeros_like(weights), 0

    def step(self, gradient: Features) -> None:
        """Move the weights against a gradient of their shape."""
        self.steps += 1
        gradient += self.penalty * self.weights
        self.first += np.float32(1 - _MEAN) * (gradient - self.first)
        self.second += np.float32(1 - _SQUARE) * (np.square(gradient) - self.second)
        size = np.sqrt(self.second / np.float32(1 - _SQUARE**self.steps)) + np.float32(_EPSILON)
        self.weights -= np.float32(RATE / (1 - _MEAN**self.steps)) * self.first / size

    def keep(self, chosen: NDArray[np.bool_]) -> None:
        """Go on with some of the problems."""
        if not chosen.all():
            self.weights, self.first, self.second = (
                each[:, chosen] for each in (self.weights, self.first, self.second)
            )
            self.penalty = self.penalty[chosen]


def _epoch(features: Features, labels: Labels, train: Masks, adam: _Adam, order: Labels, batch: int) -> None:
    goal = np.eye(adam.weights.shape[2], dtype=np.float32)
    for start in range(0, len(order), batch):
        rows = order[start : start + batch]
        share = train[:, rows].T.astype(np.float32)
        share /= np.maximum(share.sum(0), 1)
        error = softmax(product(features[rows], adam.weights)) - goal[labels[rows]][:, None, :]
        adam.step(product(features[rows].T, error * share[:, :, None]))


def _accuracy(features: Features, labels: Labels, valid: Masks, weights: Features) -> Floats:
    right = labels == product(features, weights).argmax(2).T
    return np.asarray((right & valid).sum(1) / valid.sum(1), np.float64)


def _hold_out(train: Masks, draw: np.random.Generator) -> tuple[Masks, Masks]:
    valid = np.zeros_like(train)
    for mask, held in zip(train, valid, strict=True):
        rows = draw.permutation(np.flatnonzero(mask))
        held[rows[: max(1, int(HELD_OUT * len(rows)))]] = True
    return train & ~valid, valid
