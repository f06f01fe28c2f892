"""Many logistic regressions on the same features at once: all folds and penalties of a cross-validation together.

Fitting them one by one multiplies thin matrices hundreds of times; side by side they are two large products a step.

Two classes: problems of one penalty differ in a tenth of their rows, so Newton's method solves the problem they share
(rows weighted by how many of them train on each), and its curvature there takes every problem to its own minimum in a
few steps. Penalties descend, each starting where the last one ended.

More classes: each step divides the gradient by a fixed bound of the curvature (Böhning, 1992), the same for all of
them, which makes every problem well conditioned; Nesterov's momentum, restarted when it points uphill, does the rest.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from selfsent.evaluation.stats.resampling import Floats

STEPS = 500
TOLERANCE = 1e-4
"""Largest relative change of any problem's weights at which to stop."""
WIDEST = 2048
"""Features up to which curvature is computed; beyond, its bound is cheaper."""
BLOCK = 1 << 24
"""Probabilities held at once: 64 MiB of float32."""
_MANY = 16
"""Classes from which torch is faster at a softmax."""
_ROWS = 1 << 13
_NOTHING = 1e-12
"""Share of the largest second moment below which one is rounding in float64."""

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
    if classes == 2 and features.shape[1] <= WIDEST:
        return _two_classes(extended(features), labels.astype(np.float32), train, penalty)
    return _many_classes(features, labels, train, penalty, classes)


def _two_classes(features: Features, labels: Features, train: Masks, penalty: Floats) -> Labels:
    """One logit stands for the softmax layer's two opposite ones, whose squares sum to half of its own."""
    predicted = np.zeros(train.shape, np.int64)
    centre = np.zeros(features.shape[1], np.float32)
    for value in np.unique(penalty)[::-1]:
        problems = np.flatnonzero(penalty == value)
        count = train[problems].sum(1, dtype=np.float32)
        shared = ((1 / count) @ train[problems] / len(problems)).astype(np.float32)
        centre, factor = _newton(features, labels, shared, value / 2, centre)
        size = max(1, BLOCK // len(features))
        for start in range(0, len(problems), size):
            block = problems[start : start + size]
            share = (train[block].T / count[start : start + size]).astype(np.float32)
            weights = _from_centre(features, labels, share, value / 2, centre, factor)
            predicted[block] = (features @ weights > 0).T
    return predicted


def _newton(
    features: Features, labels: Features, share: Features, penalty: float, weights: Features
) -> tuple[Features, Any]:
    """The minimum of one problem, and its curvature there as a Cholesky factor.

    Args:
        features: (n, d).
        labels: (n,) 0 or 1.
        share: (n,) weight of each row.
        penalty: times half the squared norm of the weights.
        weights: (d,) to start from.
    """
    from scipy.linalg import cho_factor, cho_solve

    rows, goal = share[:, None], labels[:, None]
    weights, diagonal = weights[:, None], np.diag_indices(len(weights))
    loss, gradient, probability = _loss(features, goal, rows, penalty, weights)
    while True:
        bend = np.sqrt(rows * probability * (1 - probability)) * features
        curvature = bend.T @ bend
        # The product is exact to about a millionth of its largest entry, and must stay positive.
        curvature[diagonal] += penalty + 1e-6 * curvature[diagonal].max()
        factor = cho_factor(curvature.astype(np.float64), check_finite=False)
        step, rate = cho_solve(factor, gradient, check_finite=False).astype(np.float32), 1.0
        while rate > TOLERANCE:
            moved = _loss(features, goal, rows, penalty, weights - np.float32(rate) * step)
            if moved[0] < loss:
                break
            rate /= 2
        else:
            return weights[:, 0], factor
        weights = weights - np.float32(rate) * step
        loss, gradient, probability = moved
        if rate == 1 and np.square(step).sum() <= TOLERANCE * np.square(weights).sum():
            return weights[:, 0], factor


def _from_centre(
    features: Features, labels: Features, share: Features, penalty: float, centre: Features, factor: Any
) -> Features:
    """The minima of problems that are like the one at the centre, (d, problems); `share` is (n, problems)."""
    from scipy.linalg import cho_solve

    goal = labels[:, None]
    weights = np.repeat(centre[:, None], share.shape[1], axis=1)
    rate = np.ones(share.shape[1], np.float32)
    loss, gradient, _ = _loss(features, goal, share, penalty, weights)
    for _ in range(STEPS):
        step = rate * cho_solve(factor, gradient, check_finite=False).astype(np.float32)
        if (np.square(step).sum(0) <= TOLERANCE**2 * np.square(weights).sum(0)).all():
            break
        new_loss, new_gradient, _ = _loss(features, goal, share, penalty, weights - step)
        # Where the loss rises by more than rounding, the curvature at the centre is too small: shorter steps.
        better = new_loss <= loss * (1 + 1e-6)
        rate = np.where(better, rate, rate / 2)
        weights, gradient = np.where(better, weights - step, weights), np.where(better, new_gradient, gradient)
        loss = np.where(better, new_loss, loss)
    return weights


def _loss(
    features: Features, goal: Features, share: Features, penalty: float, weights: Features
) -> tuple[Features, Features, Features]:
    """Penalised cross-entropy of each problem (problems,), its gradient (d, problems) and the probabilities."""
    logits = features @ weights
    shrunk = np.exp(-np.abs(logits))
    loss = (share * (np.maximum(logits, 0) - goal * logits + np.log1p(shrunk))).sum(0, dtype=np.float64)
    probability = np.where(logits >= 0, 1, shrunk) / (1 + shrunk)
    gradient = features.T @ (share * (probability - goal)) + np.float32(penalty) * weights
    return loss + penalty / 2 * np.square(weights).sum(0, dtype=np.float64), gradient, probability


def _many_classes(features: Features, labels: Labels, train: Masks, penalty: Floats, classes: int) -> Labels:
    rotated, curvature = _principal_axes(extended(features))
    problems, size = train.shape[0], train.sum(1).astype(np.float32)
    penalty = penalty.astype(np.float32)
    rate = 1 / (curvature[:, None] / (2 * size) + penalty)[:, :, None]
    share = (train / size[:, None]).T.astype(np.float32)[:, :, None]
    goal = np.eye(classes, dtype=np.float32)[labels][:, None, :]
    weights = np.zeros((rotated.shape[1], problems, classes), np.float32)
    ahead, momentum = weights, np.ones(problems, np.float32)
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
        if (np.square(change).sum((0, 2)) <= TOLERANCE**2 * np.square(new).sum((0, 2))).all():
            break
    return np.asarray(product(rotated, weights).argmax(2).T, np.int64)


def extended(features: Features) -> Features:
    """Features and a constant, whose weight is the bias: (n, d + 1)."""
    return np.concatenate([features, np.ones((len(features), 1), np.float32)], axis=1)


def _principal_axes(features: Features) -> tuple[Features, NDArray[np.float32]]:
    """Features in the axes of their second moments, and the moments: (n, r) and (r,).

    Axes that no row reaches are left out: their weights stay 0. A file of few texts, often repeated, has few others.
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
    product: Features = (matrix @ blocks.reshape(len(blocks), -1)).reshape(len(matrix), *blocks.shape[1:])
    return product


def softmax(logits: Features) -> Features:
    """Probabilities over the last axis of (n, problems, classes)."""
    if logits.shape[2] >= _MANY:
        return np.asarray(torch.softmax(torch.from_numpy(logits), 2))
    probability = np.ascontiguousarray(np.moveaxis(logits, 2, 0))  # numpy is slow over a short last axis
    probability -= probability.max(0)
    np.exp(probability, out=probability)
    probability /= probability.sum(0)
    return np.ascontiguousarray(np.moveaxis(probability, 0, 2))
