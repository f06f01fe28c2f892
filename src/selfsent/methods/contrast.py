"""In-batch contrastive losses, over the candidates of all processes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import cast

import torch
from torch import Tensor
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from selfsent.data.packed import Packed
from selfsent.distributed import gather, rank

LARGE, BLOCK = 1 << 22, 1 << 20
"""Scores beyond which a batch is compared in blocks, and scores of a block."""


def no_negatives(
    query: Packed, candidates: Sequence[Packed], hard: int = 0, by_document: bool = True
) -> Callable[[slice], Tensor]:
    """Of rows of the n queries, (rows, k N) whether a candidate, of all processes, must not count against each.

    Likely answers do not count: texts equal to the query or its partner, partners of equal queries, and texts of the
    query's document. Of hard negatives, which are known to be no answers, only the text counts.

    Args:
        query: n sentences that look for their partners.
        candidates: k batches of n among which they look; the first are the partners.
        hard: number of batches, at the end, that are hard negatives.
        by_document: whether candidates of the same document are left out, too, and not equal ones alone.
    """
    own, partners, documents = query.texts, candidates[0].texts, query.documents if by_document else None
    queries, texts, near = gather(own), [gather(batch.texts) for batch in candidates], list[Tensor]()
    for batch in candidates[: len(candidates) - hard] if documents is not None else ():
        assert batch.documents is not None
        near.append(gather(batch.documents))

    def excluded(rows: slice) -> Tensor:
        found = [(own[rows, None] == each) | (partners[rows, None] == each) for each in texts]
        found[0] = found[0] | (own[rows, None] == queries)
        for number, each in enumerate(near):
            assert documents is not None
            found[number] = found[number] | (documents[rows, None] == each)
        return torch.cat(found, dim=1)

    return excluded


def by_rows(loss: Callable[[slice], Tensor], rows: int, columns: int) -> Tensor:
    """A sum over rows of a (rows, columns) matrix; a large one is never held whole, but block by block."""
    size = rows if rows * columns <= LARGE else max(1, BLOCK // columns)
    if size >= rows:
        return loss(slice(0, rows))
    parts = [checkpoint(loss, slice(start, start + size), use_reentrant=False) for start in range(0, rows, size)]
    return torch.stack(cast(list[Tensor], parts)).sum()


def in_batch_cross_entropy(scores: Tensor, excluded: Tensor | None = None, first: int | None = None) -> Tensor:
    """−Σᵢ log exp(sᵢᵢ) / Σⱼ exp(sᵢⱼ), over the candidates j of all processes (Henderson et al. 2017, section 4).

    Args:
        scores: (n, m) of this process' queries and all candidates, the first n of each process being its queries'
            partners.
        excluded: (n, m) which candidates do not count; a query's own partner always does.
        first: the partner of the first query; by default they are all queries of this process.

    Returns:
        A float32 scalar, the sum over the n queries, in nats.
    """
    own = torch.arange(len(scores), device=scores.device) + (rank() * len(scores) if first is None else first)
    if excluded is not None:
        scores = scores.masked_fill(excluded.scatter(1, own[:, None], False), -torch.inf)
    return F.cross_entropy(scores.float(), own, reduction="sum")


def ranking_loss(
    vectors: Tensor,
    candidates: Sequence[Tensor],
    query: Packed,
    texts: Sequence[Packed],
    scale: float | Tensor,
    hard: int = 0,
    by_document: bool = True,
) -> Tensor:
    """−Σᵢ log exp(s aᵢ·bᵢ) / Σⱼ exp(s aᵢ·cⱼ): a text must find its partner among the candidates of all processes.

    Args:
        vectors: (n, d) vectors a of this process' texts.
        candidates: k tensors (n, d) of vectors c; the first are the partners b.
        query: the n texts.
        texts: the batches of the candidates.
        scale: s.
        hard: number of tensors, at the end, that are hard negatives.
        by_document: whether candidates of the same document are left out.

    Returns:
        A float32 scalar, the sum over the n texts, in nats.
    """
    everyone, excluded = [gather(each) for each in candidates], no_negatives(query, texts, hard, by_document)

    def loss(rows: slice) -> Tensor:
        scores = torch.cat([scale * (vectors[rows] @ each.T).float() for each in everyone], dim=1)
        return in_batch_cross_entropy(scores, excluded(rows), rank() * len(vectors) + rows.start)

    return by_rows(loss, len(vectors), sum(map(len, everyone)))


def nt_xent(pairs: Sequence[Tensor], targets: Sequence[Tensor], temperature: float, views: Sequence[Packed]) -> Tensor:
    """−Σ log exp(cos(z, h′)/τ) / Σ exp(cos(z, h)/τ), over both views of every sentence (Chen et al. 2020, eq. 1).

    Args:
        pairs: two tensors (n, d): the vectors that search for the second view, made of the first; and the reverse.
        targets: two tensors (n, d): vectors of the first and of the second view, to be found; `pairs` with one network.
        temperature: τ.
        views: the two views. The text that z was made from is no candidate, and nor is any equal text.

    Returns:
        A float32 scalar, the sum over 2n cross-entropies, each of one positive and 2(n − 1) negatives.
    """
    first, second, *found = (F.normalize(part.float(), dim=-1) for part in (*pairs, *targets))
    there = ranking_loss(first, found[::-1], views[0], views[1::-1], 1 / temperature)
    return there + ranking_loss(second, found, views[1], views[:2], 1 / temperature)


def list_loss(scores: Tensor, targets: Tensor) -> Tensor:
    """Σᵢ KL(q ‖ p), p and q the softmaxes of scores (n, k) and of a teacher's targets (n, k), summed, in nats.

    A target of −inf is of no candidate: it counts in neither.
    """
    there = targets > -torch.inf
    p, q = (part.float().masked_fill(~there, -1e4).log_softmax(dim=1) for part in (scores, targets))
    return F.kl_div(p, q, reduction="sum", log_target=True)


def margin_loss(scores: Tensor, targets: Tensor) -> Tensor:
    """Σᵢ meanⱼ ((s(aᵢ, pᵢ) − s(aᵢ, nᵢⱼ)) − (t(aᵢ, pᵢ) − t(aᵢ, nᵢⱼ)))² (MarginMSE, Hofstätter et al. 2020, eq. 3).

    Args:
        scores: (n, 1 + k) of the partner and of k negatives.
        targets: (n, 1 + k) a teacher's; −inf for a negative that is not there.
    """
    there = targets[:, 1:] > -torch.inf
    margins, wanted = (part[:, :1].float() - part[:, 1:].float() for part in (scores, targets))
    squares = torch.where(there, margins - wanted, 0.0) ** 2
    return (squares.sum(1) / there.sum(1).clamp(min=1)).sum()


def similarity_loss(vectors: Tensor, targets: Tensor, scale: float) -> Tensor:
    """Σᵢ KL(q ‖ p), p and q the softmaxes over j ≠ i of s·cos of the vectors and of the targets, summed, in nats.

    Args:
        vectors: (n, d) of length 1; j runs over those of all processes.
        targets: (n, e) of length 1, without gradient: vectors of the same texts with the wanted similarities.
        scale: s.
    """
    own = torch.arange(len(vectors), device=vectors.device)[:, None] + rank() * len(vectors)
    sides = [(part, gather(part)) for part in (vectors, targets)]

    def loss(rows: slice) -> Tensor:
        # Not minus infinity, which times a probability of zero would be no number.
        scores = ((scale * (part[rows] @ each.T).float()).scatter(1, own[rows], -1e4) for part, each in sides)
        p, q = (each.log_softmax(dim=1) for each in scores)
        return F.kl_div(p, q, reduction="sum", log_target=True)

    return by_rows(loss, len(vectors), len(sides[0][1]))
