"""Shared by methods that compare sentences: two views of each, the in-batch cross-entropy, and which texts count."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import torch
from torch import Tensor
from torch.nn import functional as F

from selfsent.data.packed import Packed
from selfsent.data.views.noise import CropWords, DeleteWords, Noise, PickWords, RepeatWords
from selfsent.data.views.positives import Passage, Span, Surroundings
from selfsent.data.views.view import View
from selfsent.distributed import gather, rank
from selfsent.errors import SettingsError
from selfsent.methods.method import MethodOptions
from selfsent.models.encoder import Encoder
from selfsent.settings import setting

Positives = Literal["itself", "neighbours", "surroundings"]
POSITIVES = (
    "what the other view reads. itself: the sentence again; neighbours: a neighbour in its document, or several in a"
    " row with --span; surroundings: what stands around it, without it"
)
_NEUTRAL = {"within": (1, "--within 1"), "span": (1, "--span 1"), "overlap": (False, "--no-overlap")}
_UNREAD: dict[Positives, dict[str, tuple[float, str]]] = {
    "itself": {**_NEUTRAL, "kept": (0.1, "--kept 0.1")},
    "neighbours": {"kept": (0.1, "--kept 0.1")},
    "surroundings": {name: _NEUTRAL[name] for name in ("span", "overlap")},
}
"""Options that positives do not read, each with the one value that it may have."""
NOISES: dict[str, Callable[[Any], Noise]] = {
    "delete_words": DeleteWords,
    "pick_words": PickWords,
    "crop_words": CropWords,
    "repeat_words": RepeatWords,
}


@dataclass(frozen=True)
class ViewOptions(MethodOptions):
    """Where the two views of a sentence come from, and the noise on them."""

    positives: Positives = setting("itself", POSITIVES)
    within: int = setting(1, "how many sentences away a neighbour, or the surroundings, may be", minimum=1)
    span: int = setting(1, "most sentences in a view that reads neighbours, drawn anew each time", minimum=1)
    overlap: bool = setting(False, "the two spans may share sentences")
    kept: float = setting(0.1, "share of sentences that stay in their surroundings", minimum=0.0, maximum=1.0)
    delete_words: float = setting(
        0.0, "share of the words deleted from each view, beside dropout", minimum=0.0, maximum=0.95
    )
    pick_words: int = setting(0, "largest number of words that stay in a view, beside dropout; 0 keeps all", minimum=0)
    crop_words: float = setting(
        0.0, "largest share of the words that stay in a view, in one run; 0 keeps all", minimum=0.0, maximum=1.0
    )
    repeat_words: float = setting(
        0.0, "largest share of the words said twice in one view (ESimCSE: 0.32)", minimum=0.0, maximum=1.0
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if sum(bool(getattr(self, name)) for name in NOISES) > 1:
            raise SettingsError(
                "--delete-words, --pick-words, --crop-words and --repeat-words are kinds of noise for the same views:"
                " give one"
            )
        # All of them at once: some may be the method's defaults.
        needed = [flag for name, (value, flag) in _UNREAD[self.positives].items() if getattr(self, name) != value]
        if needed:
            raise SettingsError(f"--positives {self.positives} needs {' '.join(needed)}: give that, or other positives")

    def views(self) -> tuple[View, ...]:
        """The two views of each sentence."""
        return self.pair()

    def pair(self, second_column: int = 0) -> tuple[View, View]:
        """The two views; words are repeated in the second one only, so that the lengths differ (Wu et al. 2021)."""
        noise = next((make(value) for name, make in NOISES.items() if (value := getattr(self, name))), None)
        anchor: Passage | None = None
        positive: Passage | None = None
        if self.positives == "neighbours":
            positive = Span("positive", self.within, self.span, self.overlap)
            anchor = replace(positive, part="anchor") if self.span > 1 else None
        elif self.positives == "surroundings":
            positive = Surroundings(self.within, self.kept)
        first = View(noise=None if self.repeat_words else noise, passage=anchor)
        return first, View(second_column, noise, passage=positive)

    @property
    def varied(self) -> bool:
        """Whether the two views differ without dropout."""
        return self.positives != "itself" or any(getattr(self, name) for name in NOISES)


@dataclass(frozen=True)
class PairOptions(ViewOptions):
    """How one row gives two views of a sentence, which must differ."""

    columns: bool = setting(False, "the views are the first two text columns, instead of one column read twice")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.columns and self.positives != "itself":
            raise SettingsError("--columns and --positives both say what the second view reads: give one of them")

    def views(self) -> tuple[View, ...]:
        """The two views: of one column, or of the first two."""
        return self.pair(int(self.columns))

    @property
    def varied(self) -> bool:
        """Whether the two views differ without dropout."""
        return self.columns or super().varied

    @property
    def suits_static(self) -> bool:
        """Whether views differ without dropout, which static embeddings do not have, and no words are predicted."""
        return self.varied and not self.predicts_words

    def require_difference(self, model: Encoder) -> None:
        """Refuse two views that are the same.

        Raises:
            SettingsError: nothing makes the views differ.
        """
        if not (model.dropout_rate or self.varied):
            noise = "--delete-words 0.3" if not model.has_transformer else "--dropout 0.1, or --delete-words 0.3"
            raise SettingsError(
                "the two views of a sentence would be identical: this base has no dropout and no noise is set;"
                f" give --positives neighbours if the corpus has documents, or {noise}"
            )


def similarities(vectors: Tensor, candidates: Tensor) -> Tensor:
    """(n, N) inner products in float32 of this process' vectors, (n, d), and the candidates of all, (n, d) on each."""
    return (vectors @ gather(candidates).T).float()


def no_negatives(query: Packed, candidates: Sequence[Packed], hard: int = 0, by_document: bool = True) -> Tensor:
    """(n, k N) whether a candidate, of all processes, must not count against a query of this one.

    Likely answers do not count: texts equal to the query or its partner, partners of equal queries, and texts of the
    query's document. Of hard negatives, which are known to be no answers, only the text counts.

    Args:
        query: n sentences that look for their partners.
        candidates: k batches of n among which they look, row by row of the same origin; the first are the partners.
        hard: how many of the batches, at the end, are hard negatives.
        by_document: whether candidates of the same document are left out, too, and not equal ones alone.
    """
    belongs = query.texts[:, None] == gather(query.texts)
    if by_document and query.documents is not None:
        belongs = belongs | (query.documents[:, None] == gather(query.documents))
    found = []
    for number, batch in enumerate(candidates):
        texts = gather(batch.texts)
        same = (query.texts[:, None] == texts) | (candidates[0].texts[:, None] == texts)
        found.append(same | belongs if number < len(candidates) - hard else same)
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
        texts: what the candidates were made from; the rest as `no_negatives` has it.
        scale: s.
        hard: how many of the candidates, at the end, are hard negatives.
        by_document: whether candidates of the same document are left out.

    Returns:
        A float32 scalar: the sum over the n texts, in nats.
    """
    scores = torch.cat([scale * similarities(vectors, each) for each in candidates], dim=1)
    return in_batch_cross_entropy(scores, no_negatives(query, texts, hard, by_document))


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
    one, other, *targets = (F.normalize(part.float(), dim=-1) for part in (first, second, first_target, second_target))
    there = ranking_loss(one, targets[::-1], views[0], (views[1], views[0]), 1 / temperature)
    return there + ranking_loss(other, targets, views[1], views[:2], 1 / temperature)


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
