"""A slow, obviously right version of the conformal cut-off, in exact fractions."""

from fractions import Fraction


def cutoff(scores, rate):
    """The largest c of the scores that a new one is below with a probability of at most 1 - rate; None without one.

    A new score is equally likely at each of the n + 1 places among n others. It is below c at one of as many places as
    there are scores below c, and one more.
    """
    allowed = 1 - Fraction(str(rate))
    fit = [c for c in scores if Fraction(sum(s < c for s in scores) + 1, len(scores) + 1) <= allowed]
    return max(fit, default=None)
