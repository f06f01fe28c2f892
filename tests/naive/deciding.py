"""What hangs on the judgement of a hit, from nDCG's definition: the compared rankings' gains with and without it."""

import math


def gain(ranking, relevant, depth):
    """Discounted gain of a ranking: the sum of 1 / log2(1 + rank) over its relevant texts, down to `depth`."""
    total = 0.0
    for rank, text in enumerate(ranking[:depth], 1):
        if text in relevant:
            total += 1 / math.log2(1 + rank)
    return total


def hangs_on(text, rankings, depth):
    """The largest change in the difference of two rankings' gains when this text turns out to be relevant."""
    most = 0.0
    for one in rankings:
        for other in rankings:
            before = gain(one, set(), depth) - gain(other, set(), depth)
            after = gain(one, {text}, depth) - gain(other, {text}, depth)
            most = max(most, abs(after - before))
    return most
