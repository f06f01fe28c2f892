"""SentEval's own classifier (Conneau and Kiela, 2018): a linear layer trained by Adam and stopped early.

Published scores use this classifier. It stops before the minimum, far before it on unit vectors, so exact fits may
score a point more or less.

Folds and penalties are trained jointly: a batch is drawn from all rows, and each problem uses its own training rows in
it, 64 on average, where SentEval draws 64. Everything else is as in SentEval.
"""

from __future__ import annotations

import numpy as np

from selfsent.stats.logistic import Features, Labels, Masks, extended, product, softmax
from selfsent.stats.resampling import Floats

BATCH, RATE, LOOKS, EPOCHS_PER_LOOK, PATIENCE = 64, 1e-3, 51, 4, 5
HELD_OUT = 0.05  # share of training rows for early stopping, without validation rows
_MEAN, _SQUARE, _EPSILON = 0.9, 0.999, 1e-8  # of Adam


def fit_predict(
    features: Features, labels: Labels, train: Masks, penalty: Floats, classes: int, valid: Masks | None, seed: int
) -> Labels:
    """Train a linear classifier per problem, and predict all rows with its best state.

    Args:
        features: (n, d), shared by all problems.
        labels: (n,) classes from 0.
        train: (problems, n) mask of training rows.
        penalty: (problems,) weight decay.
        classes: number of classes.
        valid: (problems, n) mask of validation rows, scored every 4 epochs; by default 5 % of the training rows are
            held out.
        seed: of initial weights, batches and held-out rows.

    Returns:
        (problems, n) predicted classes.
    """
    draw = np.random.default_rng(seed)
    if valid is None:
        valid = np.zeros_like(train)
        for mask, held in zip(train, valid, strict=True):
            chosen = draw.permutation(np.flatnonzero(mask))
            held[chosen[: max(1, int(HELD_OUT * len(chosen)))]] = True
        train = train & ~valid
    features, goal = extended(features), np.eye(classes, dtype=np.float32)
    bound = 1 / np.sqrt(features.shape[1] - 1)
    first = draw.uniform(-bound, bound, (features.shape[1], 1, classes)).astype(np.float32)
    weights = np.repeat(first, len(train), axis=1)
    mean, square, decay = np.zeros_like(weights), np.zeros_like(weights), penalty.astype(np.float32)[:, None]
    best, accuracy, steps = weights.copy(), np.full(len(train), -1.0), 0
    stale, active = np.zeros(len(train), np.int64), np.arange(len(train))
    rows = np.flatnonzero(train.any(0))
    batch = round(BATCH * len(rows) / train.sum(1).mean())
    for _ in range(LOOKS):
        trained, looked_at = train[active], valid[active]
        for order in (draw.permutation(rows) for _ in range(EPOCHS_PER_LOOK)):
            for chosen in (order[start : start + batch] for start in range(0, len(order), batch)):
                share = trained[:, chosen].T.astype(np.float32)
                share /= np.maximum(share.sum(0), 1)
                error = softmax(product(features[chosen], weights)) - goal[labels[chosen]][:, None, :]
                gradient = product(features[chosen].T, error * share[:, :, None]) + decay * weights
                steps += 1
                mean += np.float32(1 - _MEAN) * (gradient - mean)
                square += np.float32(1 - _SQUARE) * (np.square(gradient) - square)
                size = np.sqrt(square / np.float32(1 - _SQUARE**steps)) + np.float32(_EPSILON)
                weights -= np.float32(RATE / (1 - _MEAN**steps)) * mean / size
        right = (labels == product(features, weights).argmax(2).T) & looked_at
        found = right.sum(1) / looked_at.sum(1)
        better = found > accuracy[active]
        best[:, active[better]], accuracy[active[better]] = weights[:, better], found[better]
        going = better | (stale[active] < PATIENCE)
        stale[active] += ~better
        active = active[going]
        if not len(active):
            break
        weights, mean, square, decay = weights[:, going], mean[:, going], square[:, going], decay[going]
    return np.asarray(product(features, best).argmax(2).T, np.int64)
