"""Losses that compare sentences, slow and straight from the papers' equations: one token, one pair at a time."""

import math

import torch


def cosine(a, b):
    return (a * b).sum() / (a.square().sum().sqrt() * b.square().sum().sqrt())


def product(a, b):
    return (a * b).sum()


def ranking(vectors, candidates, scale=1.0, similarity=cosine, left_out=None):
    """Minus the sum over i of log exp(s sim(v_i, c_i)) / sum_j exp(s sim(v_i, c_j)), j = i and those not left out.

    With products: Logeswaran and Lee 2018, equation 1; with cosines over a temperature: Gao et al. 2021, equation 1.
    """
    total = 0.0
    for i, v in enumerate(vectors):
        counted = [c for j, c in enumerate(candidates) if j == i or left_out is None or not left_out[i][j]]
        terms = [torch.exp(scale * similarity(v, c)) for c in counted]
        total = total - torch.log(torch.exp(scale * similarity(v, candidates[i])) / sum(terms))
    return total


def softplus(x):
    return torch.log(1 + torch.exp(x))


def jensen_shannon(scores):
    """Minus I^JSD(local; global), shifted to 0 for scores of 0: Zhang et al. 2020, equations 2 and 3.

    Args:
        scores: for every sentence a list with, for each of its tokens, the scores with all sentences.

    Returns:
        For every sentence a list of its tokens' losses.
    """
    losses = []
    for own, tokens in enumerate(scores):
        losses.append([])
        for row in tokens:
            negatives = [softplus(s) - math.log(2) for other, s in enumerate(row) if other != own]
            losses[-1].append(sum(negatives) / len(negatives) - (math.log(2) - softplus(-row[own])))
    return losses


def average(losses, kind):
    """Over the tokens of all sentences, or over the sums of the sentences."""
    if kind == "token":
        every = [loss for sentence in losses for loss in sentence]
        return sum(every) / len(every)
    return sum(map(sum, losses)) / len(losses)


def batch_norm(rows, epsilon):
    """Each column less its mean, divided by its standard deviation."""
    columns = []
    for column in rows.T:
        mean = sum(column) / len(column)
        variance = sum((value - mean) ** 2 for value in column) / len(column)
        columns.append(torch.stack([(value - mean) / torch.sqrt(variance + epsilon) for value in column]))
    return torch.stack(columns, dim=1)


def bootstrap(first, second, first_target, second_target):
    """Mean over the sentences of |z1 - h2|^2 + |z2 - h1|^2, each of length one: Zhang et al. 2021, section 3."""
    total = 0.0
    for z1, z2, h1, h2 in zip(first, second, first_target, second_target, strict=True):
        for z, h in ((z1, h2), (z2, h1)):
            total = total + (z / z.square().sum().sqrt() - h / h.square().sum().sqrt()).square().sum()
    return total / len(first)


def ntxent(predictions, targets, temperature):
    """NT-Xent over 2n views, Chen et al. 2020, equation 1: view i and view i + n are of the same sentence.

    Args:
        predictions: (2n, d), what recognises.
        targets: (2n, d), what is recognised; the view that the prediction comes from is not among the candidates.
        temperature: divides the cosines.
    """
    views = len(predictions)
    total = 0.0
    for i in range(views):
        other = (i + views // 2) % views
        candidates = [torch.exp(cosine(predictions[i], targets[j]) / temperature) for j in range(views) if j != i]
        assert len(candidates) == 1 + 2 * (views // 2 - 1)
        total = total - torch.log(torch.exp(cosine(predictions[i], targets[other]) / temperature) / sum(candidates))
    return total / views


def tension(first, second, same):
    """Mean binary cross-entropy of the products of pairs: Carlsson et al. 2021, section 3."""
    total = 0.0
    for a, b, y in zip(first, second, same, strict=True):
        p = 1 / (1 + torch.exp(-(a * b).sum()))
        total = total - (torch.log(p) if y else torch.log(1 - p))
    return total / len(first)


def no_negative(query, partner, candidate, its_query, document, other):
    """Whether a candidate must not count against a query.

    It equals the query or its partner, belongs to an equal query, or is of the query's document.
    """
    return candidate in (query, partner) or its_query == query or document == other


def similarity_divergence(vectors, wanted, scale):
    """The sum over i and j != i of q_ij log(q_ij / p_ij), softmaxes over j of the scaled cosines of each set."""
    total = 0.0
    for i in range(len(vectors)):
        others = [j for j in range(len(vectors)) if j != i]
        p, q = (
            torch.softmax(torch.stack([scale * cosine(part[i], part[j]) for j in others]), dim=0)
            for part in (vectors, wanted)
        )
        total = total + sum(b * torch.log(b / a) for a, b in zip(p, q, strict=True))
    return total


def hardest(scores, partner, count, at_most):
    """The candidates with the largest scores, one by one, none above the share of the partner's score."""
    order = sorted(range(len(scores)), key=lambda n: (-scores[n], n))
    limit = partner - (1 - at_most) * abs(partner)
    chosen = [n for n in order if -math.inf < scores[n] <= limit][:count]
    return chosen + [-1] * (count - len(chosen))


def list_divergence(scores, targets):
    """KL(q || p) of the softmaxes of a teacher's scores and of a student's, over the candidates that are there."""
    total = 0.0
    for own, wanted in zip(scores, targets, strict=True):
        there = [n for n, target in enumerate(wanted) if target > -math.inf]
        p_sum = sum(math.exp(own[n]) for n in there)
        q_sum = sum(math.exp(wanted[n]) for n in there)
        for n in there:
            p, q = math.exp(own[n]) / p_sum, math.exp(wanted[n]) / q_sum
            total += q * math.log(q / p)
    return total
