"""Slow, obviously right versions of the evaluation's metrics."""

import math


def dot(a, b):
    return sum(x * y for x, y in zip(a, b, strict=True))


def cosine(a, b):
    norm = math.sqrt(dot(a, a)) * math.sqrt(dot(b, b))
    return dot(a, b) / norm if norm else 0.0


def average_precision(labels, scores):
    """The sum over thresholds of precision times the gain in recall; equal scores share a threshold."""
    total, value, found_before = sum(labels), 0.0, 0
    for threshold in sorted(set(scores), reverse=True):
        chosen = [label for label, score in zip(labels, scores, strict=True) if score >= threshold]
        value += sum(chosen) / len(chosen) * (sum(chosen) - found_before) / total
        found_before = sum(chosen)
    return value


def ranking_average_precision(labels):
    """The mean of precision at the rank of each relevant item in a ranked list."""
    precisions = [sum(labels[: rank + 1]) / (rank + 1) for rank, label in enumerate(labels) if label]
    return sum(precisions) / len(precisions) if precisions else 0.0


def words(text):
    cleaned = "".join(c if c.isalnum() or c == "_" else " " for c in text.lower())
    return set(cleaned.split())


def alike(a, b, threshold=0.8):
    """Whether two sentences are near-duplicates."""
    letters = ["".join(c for c in text.lower() if c.isalnum()) for text in (a, b)]
    shared, both = words(a) & words(b), words(a) | words(b)
    return letters[0] == letters[1] or (bool(both) and len(shared) / len(both) > threshold)


def context_ranks(texts, documents, vectors, tie=1e-6):
    """For each query: its row, how many candidates are as near as its answer, and how many candidates there are."""
    found = []
    for query in range(len(texts)):
        answers = [query + 1] if query + 1 < len(texts) and documents[query + 1] == documents[query] else []
        answers = [row for row in answers if not alike(texts[query], texts[row])]
        if not answers:
            continue
        best = max(answers, key=lambda row: cosine(vectors[query], vectors[row]))
        goal = cosine(vectors[query], vectors[best])
        others = [
            row
            for row in range(len(texts))
            if row != query
            and row not in answers
            and not alike(texts[row], texts[query])
            and not alike(texts[row], texts[best])
        ]
        beaten = sum(cosine(vectors[query], vectors[row]) >= goal - tie for row in others)
        found.append((query, beaten, len(others)))
    return found
