"""Merged weights and the choice among them, written from their definitions, number by number."""


def merged(base, trained, share):
    """Nested lists of numbers: (1 − share) · base + share · trained."""
    if isinstance(base, list):
        return [merged(one, other, share) for one, other in zip(base, trained, strict=True)]
    return (1 - share) * base + share * trained


def chosen(values, losses, draws, most):
    """The share to keep.

    Args:
        values: of each share, the score of each query; the base first.
        losses: of each share on the guard.
        draws: resamples, each a list of indices of queries.
        most: that may be lost.
    """
    best, reached = 0, sum(values[0]) / len(values[0])
    for share in range(1, len(values)):
        gains = [one - base for one, base in zip(values[share], values[0], strict=True)]
        means = sorted(sum(gains[index] for index in draw) / len(draw) for draw in draws)
        place = 0.025 * (len(means) - 1)
        below = int(place)
        low = means[below] + (place - below) * (means[below + 1] - means[below])
        score = sum(values[share]) / len(values[share])
        if losses[share] <= most and low >= 0 and score > reached:
            best, reached = share, score
    return best
