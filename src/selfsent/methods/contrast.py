"""The in-batch cross-entropy that contrastive methods share, and which sentences of a batch are no negatives."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional as F

from selfsent.distributed import gather, rank
from selfsent.packing import Packed


def similarities(vectors: Tensor, candidates: Tensor) -> Tensor:
    """(n, N) inner products in float32 of this process' vectors, (n, d), and the candidates of all, (n, d) on each."""
    return (vectors @ gather(candidates).T).float()


def no_negatives(query: Packed, partner: Packed, candidates: Sequence[Packed]) -> Tensor:
    """(n, k N) whether a candidate, of all processes, must not count against a query of this one.

    Nothing counts that is from the query's document, or that equals the query or its partner: it may well be an answer.

    Args:
        query: n sentences that look for their partners.
        partner: their partners.
        candidates: k batches of n, among which they look.
    """
    found = []
    for batch in candidates:
        texts = gather(batch.texts)
        same = (query.texts[:, None] == texts) | (partner.texts[:, None] == texts)
        if query.documents is not None and batch.documents is not None:
            same |= query.documents[:, None] == gather(batch.documents)
        found.append(same)
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
