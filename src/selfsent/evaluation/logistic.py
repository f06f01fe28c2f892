"""Many logistic regressions on the same features at once: all folds and penalties of a cross-validation together.

Fitting them one by one multiplies thin matrices hundreds of times; side by side they are two large products a step.
Each step divides the gradient by a fixed bound of the curvature (Böhning, 1992), the same for all of them, which makes
every problem well conditioned; Nesterov's momentum, restarted when it points uphill, does the rest.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from selfsent.evaluation.bootstrap import Floats

STEPS = 500
TOLERANCE = 1e-4
"""Largest relative change of any problem's weights at which to stop."""

Features = NDArray[np.float32]
Labels = NDArray[np.int64]
Masks = NDArray[np.bool_]


def fit_predict(features: Features, labels: Labels, train: Masks, penalty: Floats, classes: int) -> Labels:
    """Fit a softmax regression per problem on its training rows, and predict all rows.

    It minimises the mean cross-entropy plus penalty / 2 times the squared norm of weights and biases, which is what
    SentEval's linear layer and weight decay stand for.

    Args:
        features: (n, d), shared by all problems.
        labels: (n,) classes from 0.
        train: (problems, n) which rows each problem is fitted on.
        penalty: (problems,) L2 penalties.
        classes: number of classes.

    Returns:
        (problems, n) predicted classes.
    """
    rotated, curvature = _principal_axes(features)
    problems, size = train.shape[0], train.sum(1).astype(np.float32)
    penalty = penalty.astype(np.float32)
    rate = 1 / (curvature[:, None] / (2 * size) + penalty)[:, :, None]
    share = (train / size[:, None]).T.astype(np.float32)[:, :, None]
    goal = np.eye(classes, dtype=np.float32)[labels][:, None, :]
    weights = np.zeros((rotated.shape[1], problems, classes), np.float32)
    ahead, momentum = weights, np.ones(problems, np.float32)
    for _ in range(STEPS):
        error = (_softmax(_product(rotated, ahead)) - goal) * share
        gradient = _product(rotated.T, error) + penalty[:, None] * ahead
        new = ahead - rate * gradient
        change = new - weights
        uphill = (gradient * change).sum((0, 2)) > 0
        momentum = np.where(uphill, 1, momentum).astype(np.float32)
        following = np.asarray((1 + np.sqrt(1 + 4 * momentum**2)) / 2, np.float32)
        ahead = new + ((momentum - 1) / following)[:, None] * change
        weights, momentum = new, following
        if (np.square(change).sum((0, 2)) <= TOLERANCE**2 * np.square(new).sum((0, 2))).all():
            break
    return np.asarray(_product(rotated, weights).argmax(2).T, np.int64)


def _principal_axes(features: Features) -> tuple[Features, NDArray[np.float32]]:
    """Features and a constant in the axes of their second moments, and the moments: (n, d + 1) and (d + 1,)."""
    extended = np.concatenate([features, np.ones((len(features), 1), np.float32)], axis=1)
    moments, axes = np.linalg.eigh((extended.T @ extended).astype(np.float64))
    return extended @ axes.astype(np.float32), np.maximum(moments, 0).astype(np.float32)


def _product(matrix: Features, blocks: Features) -> Features:
    """(a, b) times (b, problems, classes), as one product."""
    product: Features = (matrix @ blocks.reshape(len(blocks), -1)).reshape(len(matrix), *blocks.shape[1:])
    return product


def _softmax(logits: Features) -> Features:
    exponent = np.exp(logits - logits.max(2, keepdims=True))
    softmax: Features = exponent / exponent.sum(2, keepdims=True)
    return softmax
