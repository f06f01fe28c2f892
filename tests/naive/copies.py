"""Near-copies by all pairs, from the equations: TF-IDF cosines, and families by preference."""

import math
import re
from collections import Counter


def tfidf_cosines(texts):
    """(n, n) cosines of (1 + ln c)(1 + ln((1 + n) / (1 + d))) over lower-case words."""
    words = [Counter(re.findall(r"[a-z0-9]+", text.lower())) for text in texts]
    frequency = Counter(word for each in words for word in each)

    def weight(word, count):
        return (1 + math.log(count)) * (1 + math.log((1 + len(texts)) / (1 + frequency[word])))

    rows = [{word: weight(word, count) for word, count in each.items()} for each in words]
    lengths = [math.sqrt(sum(value**2 for value in row.values())) for row in rows]

    def cosine(one, other):
        shared = rows[one].keys() & rows[other].keys()
        product = sum(rows[one][word] * rows[other][word] for word in shared)
        return product / (lengths[one] * lengths[other]) if shared else 0.0

    return [[cosine(one, other) for other in range(len(texts))] for one in range(len(texts))]


def kept_for(scores, order, threshold):
    """Of each text the one that is kept: the closest of those kept before, if it is close, else itself."""
    kept, found = [], {}
    for text in order:
        close = [one for one in kept if scores[one][text] >= threshold]
        found[text] = max(close, key=lambda one: scores[one][text], default=text)
        if not close:
            kept.append(text)
    return [found[text] for text in range(len(order))]
