"""Losses of words that a sentence predicts, slow and straight from the papers' equations: one word at a time."""

import math


def fastsent(sentences, beside, table, output, own_words=False):
    """Minus the sum of log softmax of the words beside each sentence: Hill, Cho and Korhonen 2016, section 2.2.

    Args:
        sentences: for each sentence, its words' numbers.
        beside: for each sentence, the numbers of the words to predict.
        table: a vector for each word, as lists of numbers.
        output: an output vector for each word, likewise.
        own_words: whether a sentence predicts its own words too.

    Returns:
        The loss, and the number of words that are predicted.
    """
    total, count = 0.0, 0
    for words, others in zip(sentences, beside, strict=True):
        vector = [sum(table[word][place] for word in words) for place in range(len(table[0]))]
        scores = [sum(a * b for a, b in zip(vector, each, strict=True)) for each in output]
        whole = math.log(sum(math.exp(score) for score in scores))
        for word in [*others, *(words if own_words else [])]:
            total -= scores[word] - whole
            count += 1
    return total, count
