"""Many logistic regressions on the same features at once: all folds and penalties of a cross-validation together.

Fitting them one by one multiplies thin matrices hundreds of times; jointly, each step is two large products.

Each step divides the gradient by a fixed bound of the curvature (Böhning, 1992), the same for all of them, which makes
every problem well conditioned; Nesterov's momentum, restarted when it points uphill, does the rest.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from selfsent.progress import Counter
from selfsent.stats.resampling import Floats

STEPS = 500
TOLERANCE = 1e-4  # largest relative change of any problem's weights for stopping
COARSE = 1e-3  # likewise, where a tenth of a point of accuracy is no matter
BLOCK = 1 << 24  # probabilities held at once: 64 MiB of float32
_MANY = 16  # classes from which torch is faster at a softmax
_ROWS = 1 << 13
_NOTHING = 1e-12  # second moments below this share of the largest are rounding errors

Features = NDArray[np.float32]
Labels = NDArray[np.int64]
Masks = NDArray[np.bool_]


def fit_predict(
    features: Features,
    labels: Labels,
    train: Masks,
    penalty: Floats,
    classes: int,
    tolerance: float = TOLERANCE,
    advance: Counter = lambda count: None,
    block: int = BLOCK,
) -> Labels:
    """Fit a softmax regression per problem on its training rows, and predict all rows.

    The objective is the mean cross-entropy plus penalty / 2 times the squared norm of weights and biases, as in
    SentEval's linear layer with weight decay.

    Args:
        features: (n, d), shared by all problems.
        labels: (n,) classes from 0.
        train: (problems, n) mask of training rows.
        penalty: (problems,) L2 penalties.
        classes: number of classes.
        tolerance: largest relative change of any problem's weights for stopping.
        advance: called with the number of steps done or spared since the last call, `STEPS` a problem.
        block: maximum number of probabilities in memory.

    Returns:
        (problems, n) predicted classes.
    """
    rotated, curvature = _principal_axes(extended(features))
    goal, size = np.eye(classes, dtype=np.float32)[labels][:, None, :], max(1, block // (len(labels) * classes))

    def fit(train: Masks, penalty: Features) -> Labels:
        count = train.sum(1).astype(np.float32)
        rate = 1 / (curvature[:, None] / (2 * count) + penalty)[:, :, None]
        share = (train / count[:, None]).T.astype(np.float32)[:, :, None]
        weights = np.zeros((rotated.shape[1], len(train), classes), np.float32)
        ahead, momentum = weights, np.ones(len(train), np.float32)
        left = STEPS
        for _ in range(STEPS):
            error = (softmax(product(rotated, ahead)) - goal) * share
            gradient = product(rotated.T, error) + penalty[:, None] * ahead
            new = ahead - rate * gradient
            change = new - weights
            uphill = (gradient * change).sum((0, 2)) > 0
            momentum = np.where(uphill, 1, momentum).astype(np.float32)
            following = np.asarray((1 + np.sqrt(1 + 4 * momentum**2)) / 2, np.float32)
            ahead = new + ((momentum - 1) / following)[:, None] * change
            weights, momentum = new, following
            left -= 1
            advance(len(train))
            if (np.square(change).sum((0, 2)) <= tolerance**2 * np.square(new).sum((0, 2))).all():
                break
        advance(left * len(train))
        return np.asarray(product(rotated, weights).argmax(2).T, np.int64)

    blocks = (slice(start, start + size) for start in range(0, len(train), size))
    return np.concatenate([fit(train[block], penalty[block].astype(np.float32)) for block in blocks])


def extended(features: Features) -> Features:
    """Features with a constant column for the bias: (n, d + 1)."""
    return np.concatenate([features, np.ones((len(features), 1), np.float32)], axis=1)


def _principal_axes(features: Features) -> tuple[Features, NDArray[np.float32]]:
    """Features in the axes of their second moments, and the moments: (n, r) and (r,).

    Axes without variance are dropped, as their weights stay 0. A file of few, often repeated texts has few others.
    """
    total = np.zeros((features.shape[1],) * 2)
    for start in range(0, len(features), _ROWS):
        block = features[start : start + _ROWS].astype(np.float64)
        total += block.T @ block
    moments, axes = np.linalg.eigh(total)
    reached = moments > _NOTHING * moments[-1]
    return features @ axes[:, reached].astype(np.float32), moments[reached].astype(np.float32)


def product(matrix: Features, blocks: Features) -> Features:
    """(a, b) times (b, problems, classes), as one product."""
    return (matrix @ blocks.reshape(len(blocks), -1)).reshape(len(matrix), *blocks.shape[1:])


def softmax(logits: Features) -> Features:
    """Probabilities over the last axis of (n, problems, classes)."""
    if logits.shape[2] >= _MANY:
        import torch

        return np.asarray(torch.softmax(torch.from_numpy(logits), 2))
    probability = np.ascontiguousarray(np.moveaxis(logits, 2, 0))  # numpy is slow over a short last axis
    probability -= probability.max(0)
    np.exp(probability, out=probability)
    probability /= probability.sum(0)
    return np.ascontiguousarray(np.moveaxis(probability, 0, 2))
