"""Programs above a search, text by text: scores of a query for documents of vectors with words' scores beside them."""

import math


def dot(one, other):
    return sum(a * b for a, b in zip(one, other, strict=True))


def normed(vector):
    length = math.sqrt(dot(vector, vector))
    return [value / length for value in vector]


def mean(vectors):
    return [sum(values) / len(vectors) for values in zip(*vectors, strict=True)]


def sentences(query, documents, words, share, parts):
    """The whole text and its best sentence; `parts` has the vectors of each document's sentences."""
    return [
        (1 - share) * dot(query, document) + share * max(dot(query, part) for part in own) + word
        for document, word, own in zip(documents, words, parts, strict=True)
    ]


def hubs(query, documents, words, share, nearest=10):
    """Less the mean similarity of a document to its nearest others."""
    found = []
    for place, document in enumerate(documents):
        others = [dot(document, other) for number, other in enumerate(documents) if number != place]
        near = sorted(others, reverse=True)[:nearest]
        found.append(dot(query, document) - share * sum(near) / len(near) + words[place])
    return found


def feedback(query, documents, words, share, first=3):
    """The query moved towards the mean of the first documents."""
    plain = [dot(query, document) + word for document, word in zip(documents, words, strict=True)]
    best = sorted(range(len(documents)), key=lambda place: (-plain[place], place))[:first]
    away = normed(mean([documents[place] for place in best]))
    moved = normed([(1 - share) * a + share * b for a, b in zip(query, away, strict=True)])
    return [dot(moved, document) + word for document, word in zip(documents, words, strict=True)]
