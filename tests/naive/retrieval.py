"""Slow, obviously right versions of the metrics of search, written from trec_eval's definitions."""

import math


def ranked(scores, query=None):
    """Ids of documents, best first; of equal scores the larger id first. The query itself is no document."""
    return sorted((name for name in scores if name != query), key=lambda name: (scores[name], name), reverse=True)


def ndcg(ranking, grades, cutoff):
    def gained(values):
        return sum(max(0, grade) / math.log2(rank + 1) for rank, grade in enumerate(values[:cutoff], 1))

    best = gained(sorted(grades.values(), reverse=True))
    return gained([grades.get(name, 0) for name in ranking]) / best


def relevant(grades):
    return {name for name, grade in grades.items() if grade > 0}


def reciprocal_rank(ranking, grades, cutoff):
    for rank, name in enumerate(ranking[:cutoff], 1):
        if name in relevant(grades):
            return 1 / rank
    return 0.0


def recall(ranking, grades, cutoff):
    return len(relevant(grades) & set(ranking[:cutoff])) / len(relevant(grades))


def average_precision(ranking, grades, cutoff):
    total = 0.0
    for rank, name in enumerate(ranking[:cutoff], 1):
        if name in relevant(grades):
            total += len(relevant(grades) & set(ranking[:rank])) / rank
    return total / len(relevant(grades))
