"""The baselines, slow and straight from the papers' equations: one word, one step at a time."""

import math
from itertools import pairwise

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


def decoded(sentence, vector, table, weights, output, bias, first=None, at_all_steps=True):
    """Minus the sum of log softmax(V h + b) of every word but the first, h a GRU's state that has read those before it.

    Args:
        sentence: numbers of the words, the first of which says that it begins.
        vector: of the sentence that the words are predicted from.
        table: a vector for each word.
        weights: of the GRU.
        output: V.
        bias: b.
        first: the GRU's first state; zeros by default.
        at_all_steps: whether it reads the vector beside every word.
    """
    inputs = [np.concatenate([table[word], vector]) if at_all_steps else table[word] for word in sentence[:-1]]
    total = 0.0
    for state, word in zip(gru(inputs, *weights, first), sentence[1:], strict=True):
        scores = output @ state + bias
        total -= scores[word] - np.log(np.exp(scores).sum())
    return total


def fastsent(sentences, beside, table, output):
    """Minus the sum of log softmax of the words beside each sentence: Hill, Cho and Korhonen 2016, section 2.3.

    Args:
        sentences: for each sentence, its words' numbers.
        beside: for each sentence, the numbers of the words to predict.
        table: a vector for each word, as lists of numbers.
        output: an output vector for each word, likewise.

    Returns:
        The loss, and the number of words that are predicted.
    """
    total, count = 0.0, 0
    for words, others in zip(sentences, beside, strict=True):
        vector = [sum(table[word][place] for word in words) for place in range(len(table[0]))]
        scores = [sum(a * b for a, b in zip(vector, each, strict=True)) for each in output]
        whole = math.log(sum(math.exp(score) for score in scores))
        for word in others:
            total -= scores[word] - whole
            count += 1
    return total, count


def infersent(first, second, classes, layers):
    """Minus the sum of log softmax of linear layers over [u; v; |u - v|; u * v]: Conneau et al. 2017, section 3.1.

    Args:
        first: vectors of premises.
        second: of hypotheses.
        classes: of the pairs.
        layers: weight and bias of each, between which there is nothing.
    """
    total = 0.0
    for u, v, chosen in zip(first, second, classes, strict=True):
        values = np.concatenate([u, v, np.abs(u - v), u * v])
        for weight, bias in layers:
            values = weight @ values + bias
        total -= values[chosen] - math.log(sum(math.exp(value) for value in values))
    return total


def swap_pairs(words, chances, ratio):
    """The first word and the second change places, the third and the fourth, ..., where the first's chance says so."""
    swapped = list(words)
    for place in range(0, len(words) - 1, 2):
        if chances[place] < ratio:
            swapped[place : place + 2] = words[place + 1], words[place]
    return swapped


def bigram(first, second, buckets):
    """The number of the vector of a bigram."""
    return (first * 116049371 + second) % buckets


def sentence_vector(words, table, pairs):
    """The mean of the vectors of a sentence's words and bigrams."""
    found = [table[word] for word in words]
    found += [pairs[bigram(a, b, len(pairs))] for a, b in pairwise(words)]
    return sum(found) / len(found)


def sent2vec(sentences, table, pairs, output, dropped, others):
    """Sent2Vec with bigrams, every word predicted: Pagliardini, Gupta and Jaggi 2018, section 2.2.

    Args:
        sentences: for each sentence, its words' numbers.
        table: a vector for each word.
        pairs: a vector for each bucket of bigrams.
        output: an output vector for each word.
        dropped: for each sentence, for each word, whether no bigram of it is read.
        others: for each word that is predicted, those that it is held against.
    """
    total, count = 0.0, 0
    for words, gone in zip(sentences, dropped, strict=True):
        for place, word in enumerate(words):
            if len(words) == 1:
                continue
            left = [table[other] for at, other in enumerate(words) if at != place]
            for at in range(len(words) - 1):
                if place not in (at, at + 1) and not gone[at] and not gone[at + 1]:
                    left.append(pairs[bigram(words[at], words[at + 1], len(pairs))])
            v = sum(left) / len(left)
            total += math.log(1 + math.exp(-output[word] @ v))
            total += sum(math.log(1 + math.exp(output[other] @ v)) for other in others[count] if other != word)
            count += 1
    return total, count
