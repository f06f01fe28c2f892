"""The log density that a flow gives one vector, in plain Python arithmetic, from its weights."""

import math


def matrix_times(matrix, vector):
    return [sum(m * v for m, v in zip(row, vector, strict=True)) for row in matrix]


def actnorm(weights, name, x):
    """exp(3 l) (x + b)."""
    scales, shifts = weights[f"{name}.log_scale"].tolist(), weights[f"{name}.shift"].tolist()
    return [math.exp(3 * scale) * (value + shift) for scale, value, shift in zip(scales, x, shifts, strict=True)]


def shift_of(weights, name, x):
    """Two hidden layers, each linear, ActNorm, ReLU; then linear, times exp(3 s)."""
    for linear, norm in ((0, 1), (3, 4)):
        x = matrix_times(weights[f"{name}.hidden.{linear}.weight"].tolist(), x)
        x = [max(0.0, value) for value in actnorm(weights, f"{name}.hidden.{norm}", x)]
    x = matrix_times(weights[f"{name}.output.weight"].tolist(), x)
    biases, scales = weights[f"{name}.output.bias"].tolist(), weights[f"{name}.log_scale"].tolist()
    return [(value + bias) * math.exp(3 * scale) for value, bias, scale in zip(x, biases, scales, strict=True)]


def flow(weights, x, levels, depth):
    """log N(z; 0, I) + log |det dz/dx|, halves leaving after every level but the last: Li et al. 2020, equation 4."""
    squares, log_determinant, size = 0.0, 0.0, len(x)
    for level in range(levels):
        for step in range(depth):
            name = f"steps.{level}.{step}"
            log_determinant += sum(3 * scale for scale in weights[f"{name}.norm.log_scale"].tolist())
            x = actnorm(weights, f"{name}.norm", x)[::-1]
            half = len(x) - len(x) // 2
            shifts = shift_of(weights, f"{name}.coupling", x[:half])
            x = x[:half] + [value + shift for value, shift in zip(x[half:], shifts, strict=True)]
        if level < levels - 1:
            half = len(x) - len(x) // 2
            squares += sum(value**2 for value in x[half:])
            x = x[:half]
    squares += sum(value**2 for value in x)
    return -0.5 * (squares + size * math.log(2 * math.pi)) + log_determinant
