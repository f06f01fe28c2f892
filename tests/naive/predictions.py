"""Losses of words that a sentence predicts, slow and straight from the papers' equations: one word at a time."""

import math


def sent2vec(sentences, table, output, frequency, threshold, chances, others):
    """The words that are left out of their sentences, one by one: Pagliardini, Gupta and Jaggi 2018, section 2.2.

    Args:
        sentences: for each sentence, its words' numbers.
        table: a vector for each word, as lists of numbers.
        output: an output vector for each word, likewise.
        frequency: the share of each word among all.
        threshold: from which share on a word is predicted less often.
        chances: for each word of all sentences, a random number; it is predicted where that is small enough.
        others: for each word that is predicted, those that it is held against; None for the softmax over all.

    Returns:
        The loss, and the number of words that are predicted.
    """

    def dot(a, b):
        return sum(x * y for x, y in zip(a, b, strict=True))

    total, count, drawn = 0.0, 0, iter(chances)
    for words in sentences:
        for place, word in enumerate(words):
            share = threshold / frequency[word]
            if not next(drawn) < math.sqrt(share) + share or len(words) == 1:
                continue
            left = [table[other] for at, other in enumerate(words) if at != place]
            mean = [sum(vector[number] for vector in left) / len(left) for number in range(len(left[0]))]
            if others is None:
                total += math.log(sum(math.exp(dot(each, mean)) for each in output)) - dot(output[word], mean)
            else:
                total += math.log(1 + math.exp(-dot(output[word], mean)))
                total += sum(math.log(1 + math.exp(dot(output[n], mean))) for n in others[count] if n != word)
            count += 1
    return total, count
