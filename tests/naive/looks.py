"""Whether a system may be stopped at one of several looks, by sorting differences and counting from the end."""

import math


def lower_and_upper(differences, looks):
    """The interval that leaves out 5 / looks per cent of resampled differences, half of them at either end."""
    ordered = sorted(differences)
    outside = 0.05 / looks / 2

    def at(share):
        place = share * (len(ordered) - 1)
        below = math.floor(place)
        above = min(below + 1, len(ordered) - 1)
        return ordered[below] + (place - below) * (ordered[above] - ordered[below])

    return at(outside), at(1 - outside)
