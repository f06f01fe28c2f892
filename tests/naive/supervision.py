"""The losses of methods with labels, slow and straight from the papers' equations: one pair at a time."""

import math


def dot(a, b):
    return sum(x * y for x, y in zip(a, b, strict=True))


def cosine(a, b):
    return dot(a, b) / math.sqrt(dot(a, a) * dot(b, b))


def log_softmax(scores, place):
    return scores[place] - math.log(sum(math.exp(score) for score in scores))


def softmax(first, second, classes, weight, bias):
    """Minus the sum of log softmax(W [u; v; |u - v|] + b) at the pair's class: Reimers and Gurevych 2019, section 3."""
    total = 0.0
    for u, v, chosen in zip(first, second, classes, strict=True):
        features = [*u, *v, *(abs(x - y) for x, y in zip(u, v, strict=True))]
        total -= log_softmax([dot(row, features) + b for row, b in zip(weight, bias, strict=True)], chosen)
    return total


def regression(first, second, scores, scale):
    """The sum of (cos(u, v) - y / scale) squared."""
    return sum((cosine(u, v) - y / scale) ** 2 for u, v, y in zip(first, second, scores, strict=True))


def triplet(anchors, positives, negatives, margin):
    """The sum of max(|a - p| - |a - n| + margin, 0)."""
    total = 0.0
    for a, p, n in zip(anchors, positives, negatives, strict=True):
        near, far = (math.sqrt(sum((x - y) ** 2 for x, y in zip(a, other, strict=True))) for other in (p, n))
        total += max(near - far + margin, 0.0)
    return total


def ranking(texts, partners, hard, scale):
    """Minus the sum of log exp(s cos(a_i, p_i)) / sum over partners and hard negatives c of exp(s cos(a_i, c))."""
    candidates = [*partners, *hard]
    return -sum(log_softmax([scale * cosine(a, c) for c in candidates], i) for i, a in enumerate(texts))


def divergence(vectors, wanted, scale):
    """The sum over i and j != i of q_ij log(q_ij / p_ij), softmaxes over j of the scaled cosines of each set."""
    total = 0.0
    for i in range(len(vectors)):
        others = [j for j in range(len(vectors)) if j != i]
        p, q = ([scale * cosine(part[i], part[j]) for j in others] for part in (vectors, wanted))
        for place in range(len(others)):
            log_p, log_q = log_softmax(p, place), log_softmax(q, place)
            total += math.exp(log_q) * (log_q - log_p)
    return total


def contrast(vectors, wanted, scale):
    """Minus half of the sum of both directions of log softmax(s cos) at the right one."""
    total = 0.0
    for i, (vector, goal) in enumerate(zip(vectors, wanted, strict=True)):
        forth = log_softmax([scale * cosine(vector, other) for other in wanted], i)
        back = log_softmax([scale * cosine(goal, other) for other in vectors], i)
        total -= (forth + back) / 2
    return total


def distillation(students, wanted, objective, scale):
    """How far a student's vectors, of one column or of two, are from the teacher's of the first, summed.

    Args:
        students: for each column a list of vectors.
        wanted: the teacher's vectors.
        objective: `mse` or `contrast`.
        scale: multiplies cosines.
    """
    if objective == "contrast":
        return sum(contrast(vectors, wanted, scale) + divergence(vectors, wanted, scale) for vectors in students)
    squares = [dot(d, d) / len(d) for v in students for d in ([x - y for x, y in zip(*ab)] for ab in zip(v, wanted))]
    return sum(squares)


def together(teachers, objective):
    """Each sentence's vectors by several teachers, one behind the other; for `contrast` of length 1 each.

    Args:
        teachers: for each teacher a list of vectors.
        objective: as for `distillation`.
    """
    lengths = [[1.0 if objective == "mse" else math.sqrt(dot(v, v)) for v in vectors] for vectors in teachers]
    return [[x / lengths[t][i] for t in range(len(teachers)) for x in teachers[t][i]] for i in range(len(teachers[0]))]


def binary(scores, goals):
    """The sum of -(y log s(x) + (1 - y) log(1 - s(x))), s the sigmoid."""
    total = 0.0
    for score, goal in zip(scores, goals, strict=True):
        share = 1 / (1 + math.exp(-score))
        total -= goal * math.log(share) + (1 - goal) * math.log(1 - share)
    return total


def margins(scores, targets):
    """The mean over negatives of the squared difference of margins, summed; lists begin with the partner."""
    total = 0.0
    for own, wanted in zip(scores, targets):
        squares = [
            ((own[0] - own[n]) - (wanted[0] - wanted[n])) ** 2 for n in range(1, len(own)) if wanted[n] > -math.inf
        ]
        total += sum(squares) / len(squares) if squares else 0.0
    return total
