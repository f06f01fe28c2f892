"""A linear layer in 8 bits, from its equations, in float64."""

import numpy as np


def linear(states, weight, bias, channels, scale, zero):
    """(tokens, in), (out, in) and (out,) to (tokens, out).

    States x become q = round(x / (channels · scale)) + zero, cut to 0..255; the weights of an output, times channels,
    become whole multiples of a 127th of the largest.
    """
    states, weight, channels = (np.asarray(each, np.float64) for each in (states, weight, channels))
    quantised = np.clip(np.floor(states / (channels * scale) + zero + 0.5), 0, 255)
    scaled = weight * channels
    scales = np.abs(scaled).max(1) / 127
    whole = np.rint(scaled / scales[:, None])
    return (quantised - zero) * scale @ (whole * scales[:, None]).T + np.asarray(bias, np.float64)
