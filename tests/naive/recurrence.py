"""Recurrent networks and what they predict, one step at a time, straight from the equations."""

import numpy as np


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def gru(inputs, w_input, w_state, b_input, b_state, state=None):
    """The state after each input: Cho et al. 2014, with the reset gate on what the state is multiplied to.

    Args:
        inputs: vectors, in the order in which they are read.
        w_input: what inputs are multiplied by: rows for reset gate, update gate and new state, one below the other.
        w_state: likewise states.
        b_input: what is added to the one.
        b_state: what is added to the other.
        state: before the first input; zeros by default.
    """
    size, states = w_state.shape[1], []
    state = np.zeros(size) if state is None else state
    for x in inputs:
        given, kept = w_input @ x + b_input, w_state @ state + b_state
        reset = sigmoid(given[:size] + kept[:size])
        update = sigmoid(given[size : 2 * size] + kept[size : 2 * size])
        new = np.tanh(given[2 * size :] + reset * kept[2 * size :])
        state = (1 - update) * new + update * state
        states.append(state)
    return states


def lstm(inputs, w_input, w_state, b_input, b_state):
    """The state after each input: Hochreiter and Schmidhuber 1997, with a forget gate.

    The rows are those of input gate, forget gate, new cell and output gate.
    """
    size, states = w_state.shape[1], []
    state, cell = np.zeros(size), np.zeros(size)
    for x in inputs:
        enter, forget, new, leave = np.split(w_input @ x + b_input + w_state @ state + b_state, 4)
        cell = sigmoid(forget) * cell + sigmoid(enter) * np.tanh(new)
        state = sigmoid(leave) * np.tanh(cell)
        states.append(state)
    return states


def both_ways(network, inputs, forth, back):
    """The states of two networks side by side, one of which reads from the end."""
    return [
        np.concatenate(pair) for pair in zip(network(inputs, *forth), network(inputs[::-1], *back)[::-1], strict=True)
    ]
