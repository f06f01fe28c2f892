"""CNN-SBERT's pooling of one sentence, number by number, from the layers of the paper's figure."""

import math


def maxima(rows, stride):
    """The larger of every row and its right neighbour, where there is one; a row is {channel: [d numbers]}."""
    found = []
    for first in range(0, len(rows), stride):
        neighbours = rows[first : first + 2]
        found.append(
            {channel: [max(values) for values in zip(*(row[channel] for row in neighbours))] for channel in rows[first]}
        )
    return found


def convolution(rows, weight, bias):
    """tanh of a convolution along the rows, with zeros around them; weight[out][in][tap], bias[out]."""
    found = []
    for centre in range(len(rows)):
        row = {}
        for out, (taps, start) in enumerate(zip(weight, bias)):
            size = len(rows[centre][0])
            total = [start] * size
            for channel, own in enumerate(taps):
                for tap, factor in enumerate(own):
                    place = centre + tap - len(own) // 2
                    if 0 <= place < len(rows):
                        total = [t + factor * value for t, value in zip(total, rows[place][channel])]
            row[out] = [math.tanh(value) for value in total]
        found.append(row)
    return found


def pooled(states, layers, stride=2):
    """The vector of one sentence from its [tokens][d] states, by five (weight, bias) layers."""
    rows = [{0: state} for state in states]
    for weight, bias in layers:
        rows = convolution(maxima(rows, stride), weight, bias)
    return [sum(row[0][unit] for row in rows) / len(rows) for unit in range(len(states[0]))]
