"""A table fitted to a teacher's vectors, slow and straight from the equations: dense normal equations."""

import numpy as np


def bags(texts, vocabulary):
    """B: the count of each token in a text, over the root of the text's tokens."""
    found = np.zeros((len(texts), vocabulary))
    for row, text in enumerate(texts):
        for token in text:
            found[row, token] += 1 / np.sqrt(len(text))
    return found


def goals(teachers, size):
    """G: the teachers' unit vectors side by side, less half of their mean, in their widest directions."""
    parts = [rows / np.linalg.norm(rows, axis=1, keepdims=True) for rows in teachers]
    whole = np.hstack(parts)
    whole = whole - whole.mean(0) / 2
    directions = np.linalg.svd(whole)[2]
    return whole @ directions[:size].T


def start(matrix, aims, table):
    """W₀: the table led to the aims by the map of unit vectors, and at the scale that comes nearest."""
    reached = matrix @ table
    unit = reached / np.linalg.norm(reached, axis=1, keepdims=True)
    inner = unit.T @ unit
    led = table @ np.linalg.solve(inner + 0.01 * np.diag(inner).mean() * np.eye(len(inner)), unit.T @ aims)
    far = matrix @ led
    return led * (far * aims).sum() / (far * far).sum()


def fitted(texts, teachers, table, stiffness, size):
    """The minimum of ‖B W − G‖² + λ Σₜ √cₜ ‖wₜ − w₀ₜ‖², c the diagonal of BᵀB, and its W₀."""
    matrix, aims = bags(texts, len(table)), goals(teachers, size)
    begin = start(matrix, aims, table)
    weights = stiffness * np.sqrt((matrix**2).sum(0))
    unread = (weights == 0).astype(float)  # they stay
    left = matrix.T @ matrix + np.diag(weights + unread)
    return np.linalg.solve(left, matrix.T @ aims + (weights + unread)[:, None] * begin), begin
