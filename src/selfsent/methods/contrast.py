"""The in-batch cross-entropy that contrastive methods share, and which sentences of a batch are no negatives."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional as F

from selfsent.distributed import gather, rank
from selfsent.fast.packing import Packed


def similarities(vectors: Tensor, candidates: Tensor) -> Tensor:
    """(n, N) inner products in float32 of this process' vectors, (n, d), and the candidates of all, (n, d) on each."""
    return (vectors @ gather(candidates).T).float()


def no_negatives(
    query: Packed, partner: Packed, candidates: Sequence[Packed], hard: Sequence[Packed] = (), by_document: bool = True
) -> Tensor:
    """(n, (k + h) N) whether a candidate, of all processes, must not count against a query of this one.

    What may well be an answer does not count: what equals the query or its partner, belongs to an equal query, or is
    from the query's document. Hard negatives were told to be none, whatever their document: only their text counts.

    Args:
        query: n sentences that look for their partners.
        partner: their partners.
        candidates: k batches of n, row by row of the same origin as the queries, among which they look.
        hard: h batches of n hard negatives, behind the candidates.
        by_document: whether candidates of the same document are left out, too, and not equal ones alone.
    """
    belongs = query.texts[:, None] == gather(query.texts)
    if by_document and query.documents is not None:
        belongs = belongs | (query.documents[:, None] == gather(query.documents))
    found = []
    for place, batch in enumerate((*candidates, *hard)):
        texts = gather(batch.texts)
        same = (query.texts[:, None] == texts) | (partner.texts[:, None] == texts)
        found.append(same | belongs if place < len(candidates) else same)
    return torch.cat(found, dim=1)


def in_batch_cross_entropy(scores: Tensor, left_out: Tensor | None = None) -> Tensor:
    """−Σᵢ log exp(sᵢᵢ) / Σⱼ exp(sᵢⱼ), over the candidates j of all processes (Henderson et al. 2017, section 4).

    Args:
        scores: (n, m) of this process' queries and all candidates, the first n of each process being its queries'
            partners.
        left_out: (n, m) which candidates do not count; a query's own partner always does.

    Returns:
        A float32 scalar: the sum over the n queries, in nats.
    """
    own = torch.arange(len(scores), device=scores.device) + rank() * len(scores)
    if left_out is not None:
        left_out = left_out.scatter(1, own[:, None], False)
        scores = scores.masked_fill(left_out, -torch.inf)
    return F.cross_entropy(scores.float(), own, reduction="sum")


def nt_xent(
    first: Tensor,
    second: Tensor,
    first_target: Tensor,
    second_target: Tensor,
    temperature: float,
    views: Sequence[Packed],
) -> Tensor:
    """−Σ log exp(cos(z, h′)/τ) / Σ exp(cos(z, h)/τ), over both views of every sentence (Chen et al. 2020, eq. 1).

    Args:
        first: (n, d) what looks for the second view, made of the first.
        second: (n, d) what looks for the first view, made of the second.
        first_target: (n, d) what is found of the first view; `first` itself where there is one network.
        second_target: (n, d) what is found of the second view.
        temperature: τ.
        views: the two views. What z was made from is no candidate, as no equal text is.

    Returns:
        A float32 scalar: the sum over 2n cross-entropies, each of one positive and 2(n − 1) negatives.
    """
    targets = [F.normalize(part.float(), dim=-1) for part in (first_target, second_target)]
    total = first.new_zeros((), dtype=torch.float32)
    for own, vectors in enumerate((first, second)):
        unit = F.normalize(vectors.float(), dim=-1)
        candidates = (1 - own, own)  # the other view first: there partners stand
        scores = torch.cat([similarities(unit, targets[place]) for place in candidates], dim=1)
        left_out = no_negatives(views[own], views[1 - own], [views[place] for place in candidates])
        total = total + in_batch_cross_entropy(scores / temperature, left_out)
    return total


def similarity_loss(vectors: Tensor, wanted: Tensor, scale: float) -> Tensor:
    """Σᵢ KL(q ‖ p), p and q the softmaxes over j ≠ i of s·cos of the vectors and of the wanted ones, summed, in nats.

    Args:
        vectors: (n, d) of length 1; j runs over those of all processes.
        wanted: (n, e) of length 1, without gradient: vectors of the same texts whose similarities are to be had.
        scale: s.
    """
    own = torch.arange(len(vectors), device=vectors.device)[:, None] + rank() * len(vectors)
    # Not minus infinity, which times a probability of zero would be no number.
    p, q = ((scale * similarities(part, part)).scatter(1, own, -1e4).log_softmax(dim=1) for part in (vectors, wanted))
    return F.kl_div(p, q, reduction="sum", log_target=True)
