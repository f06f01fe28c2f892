"""Contrastive learning: where two views come from, the in-batch losses, and multiple-negatives ranking on them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, Self, cast

import torch
from torch import Tensor
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from selfsent.data.packed import Packed, concatenate
from selfsent.data.views.noise import CropWords, DeleteWords, Noise, PickWords
from selfsent.data.views.positives import WHOLE, Mixed, Passage, Span, Surroundings, Title
from selfsent.data.views.view import View
from selfsent.distributed import gather, rank
from selfsent.errors import SettingsError, guess
from selfsent.methods.method import OF_DOCUMENTS, Learner, Loss, Method, MethodOptions
from selfsent.models.bases import resolve
from selfsent.models.cross_encoder import is_cross_encoder
from selfsent.models.encoder import Encoder
from selfsent.naming import names
from selfsent.settings import Settings, setting

POSITIVES = (
    "what the two views read. itself: the sentence twice; neighbours: a sentence and a neighbour in its document, or"
    " several in a row with --span; surroundings: a sentence, and those around it without it; document: a sentence, and"
    " its document without it; title: the first sentence of a document, and the rest. Several are mixed:"
    " title,document,neighbours"
)
_KEEP_BASE = (
    "weight of a loss that keeps the similarities of a batch near those of the base; neighbours and cropping take 1"
    " where the base is a sentence encoder already"
)
MinedBy = Literal["base", "words", "both"]
_READ: dict[str, tuple[str, ...]] = {
    "itself": (),
    "neighbours": ("within", "span", "overlap"),
    "surroundings": ("within", "kept"),
    "document": ("kept",),
    "title": (),
}
"""The positives, each with the options that it reads."""
_UNREAD = {"within": 1, "span": 1, "overlap": False, "kept": 0.1}
"""These options, each with the only value allowed where nothing reads it."""
LONG = {"document", "title"}
"""Positives that are as long as a document."""
LARGE, BLOCK = 1 << 22, 1 << 20
"""Scores beyond which a batch is compared in blocks, and scores of a block."""
NOISES: dict[str, Callable[[Any], Noise]] = {
    **{"delete_words": DeleteWords, "pick_words": PickWords, "crop_words": CropWords}
}


@dataclass(frozen=True)
class ViewOptions(MethodOptions):
    """Options for the two views of a sentence, and the noise on them."""

    positives: str = setting("itself", POSITIVES)
    within: int = setting(1, "how many sentences away a neighbour, or the surroundings, may be", minimum=1)
    span: int = setting(1, "most sentences in a view that reads neighbours, drawn anew each time", minimum=1)
    overlap: bool = setting(False, "the two spans may share sentences")
    kept: float = setting(0.1, "share of sentences that stay in their surroundings", minimum=0.0, maximum=1.0)
    delete_words: float = setting(0.0, "share of the words deleted from each view", minimum=0.0, maximum=0.95)
    pick_words: int = setting(0, "largest number of words that stay in a view; 0 keeps all", minimum=0)
    crop_words: float = setting(0.0, "largest share of words that stay, in one run; 0: all", minimum=0.0, maximum=1.0)

    def __post_init__(self) -> None:
        super().__post_init__()
        if sum(bool(getattr(self, name)) for name in NOISES) > 1:
            raise SettingsError("delete_words, pick_words and crop_words are kinds of noise for one view: give one")
        if unknown := [kind for kind in self.kinds if kind not in _READ]:
            raise SettingsError(f"there are no positives {unknown[0]!r}; {guess(unknown[0], _READ)}")
        if "itself" in self.kinds and len(self.kinds) > 1:
            raise SettingsError("positives=itself cannot be mixed with others, which read documents: leave it out")
        read = {option for kind in self.kinds for option in _READ[kind]}
        # All are listed: some may be the method's defaults.
        needed = [f"{name}={value}" for name, value in _UNREAD.items() if getattr(self, name) != value]
        if needed := [each for each in needed if each.partition("=")[0] not in read]:
            raise SettingsError(f"positives={self.positives} needs {' '.join(needed)}: give that, or other positives")

    @property
    def kinds(self) -> tuple[str, ...]:
        """The positives, each once."""
        return tuple(dict.fromkeys(names(self.positives)))

    @property
    def reads_whole_documents(self) -> bool:
        """Whether a view reads as much of a document as the encoder does."""
        return not LONG.isdisjoint(self.kinds)

    def views(self, second_column: int = 0) -> tuple[View, ...]:
        """The two views of each row; noise is on both, but on no whole document."""
        noise = next((make(value) for name, make in NOISES.items() if (value := getattr(self, name))), None)
        passages = [self._passages(kind) for kind in self.kinds]
        anchor, positive = (each[0] if len({*each}) == 1 else Mixed(each) for each in zip(*passages, strict=True))
        other = None if self.reads_whole_documents else noise
        return View(noise=noise, passage=anchor), View(second_column, other, passage=positive)

    def _passages(self, kind: str) -> tuple[Passage | None, Passage | None]:
        """The two views of positives of one kind; None for the row itself."""
        if kind == "neighbours":
            positive = Span("positive", self.within, self.span, self.overlap)
            return (replace(positive, part="anchor") if self.span > 1 else None), positive
        if kind == "title":
            return Title("anchor"), Title("positive")
        within = {"surroundings": self.within, "document": WHOLE}.get(kind)
        return None, Surroundings(within, self.kept) if within else None

    @property
    def varied(self) -> bool:
        """Whether the two views differ without dropout."""
        return self.positives != "itself" or any(getattr(self, name) for name in NOISES)


@dataclass(frozen=True)
class PairOptions(ViewOptions):
    """Options for two views made from one row, which must differ."""

    columns: bool = setting(False, "the views are the first two text columns, instead of one column read twice")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.columns and self.positives != "itself":
            raise SettingsError("`columns` and `positives` both say what the second view reads: give one of them")

    def views(self, second_column: int = 0) -> tuple[View, ...]:
        """The two views: of one column, or of the first two."""
        return super().views(int(self.columns))

    @property
    def varied(self) -> bool:
        """Whether the two views differ without dropout."""
        return self.columns or super().varied

    @property
    def suits_static(self) -> bool:
        """Whether views differ without dropout, which static embeddings do not have."""
        return self.varied

    def require_difference(self, model: Encoder) -> None:
        """Reject two identical views.

        Raises:
            SettingsError: nothing makes the views differ.
        """
        if not (model.dropout_rate or self.varied):
            dropout = "dropout=0.1, or " if model.has_transformer else ""
            raise SettingsError(
                "the two views of a sentence would be identical: this base has no dropout and no noise is set;"
                f" give positives=neighbours if the corpus has documents, or {dropout}delete_words=0.3"
            )


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
        A float32 scalar: the sum over the n queries, in nats.
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
        A float32 scalar: the sum over the n texts, in nats.
    """
    everyone, excluded = [gather(each) for each in candidates], no_negatives(query, texts, hard, by_document)

    def loss(rows: slice) -> Tensor:
        scores = torch.cat([scale * (vectors[rows] @ each.T).float() for each in everyone], dim=1)
        return in_batch_cross_entropy(scores, excluded(rows), rank() * len(vectors) + rows.start)

    return by_rows(loss, len(vectors), sum(map(len, everyone)))


def nt_xent(pairs: Sequence[Tensor], targets: Sequence[Tensor], temperature: float, views: Sequence[Packed]) -> Tensor:
    """−Σ log exp(cos(z, h′)/τ) / Σ exp(cos(z, h)/τ), over both views of every sentence (Chen et al. 2020, eq. 1).

    Args:
        pairs: two tensors (n, d): what looks for the second view, made of the first; and the reverse.
        targets: two tensors (n, d): what is found of the first and of the second view; `pairs` with one network.
        temperature: τ.
        views: the two views. What z was made from is no candidate, as no equal text is.

    Returns:
        A float32 scalar: the sum over 2n cross-entropies, each of one positive and 2(n − 1) negatives.
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


@dataclass(frozen=True)
class MNRL(ViewOptions):
    """Multiple-negatives ranking.

    −log exp(s·cos(aᵢ, pᵢ)) / Σⱼ exp(s·cos(aᵢ, pⱼ)), p the partners of all texts of the batch.

    Henderson et al., 2017. arXiv:1705.00652.
    """

    positives: str = setting("itself", POSITIVES.replace("the sentence twice", "the first two text columns"))
    scale: float = setting(20.0, "multiplies the cosines: one over the temperature", above=0.0)
    both_directions: bool = setting(False, "a partner must find its text too; the mean of both losses")
    keep_base: float = setting(0.0, _KEEP_BASE, minimum=0.0)
    hard_negatives: bool | None = setting(None, "the third text column is a wrong partner (default: if there is one)")
    mined: int = setting(0, "hard negatives of each text, mined by the base before training", minimum=0, maximum=100)
    mined_by: MinedBy = setting("both", "what ranks them. base: the cosine; words: BM25; both: as search ranks")
    at_most: float = setting(0.95, "largest score of a hard negative, as a share of the partner's", above=0, maximum=1)
    teacher: str = setting("", "ranks partner and mined negatives: search, for what mined them, or a cross-encoder")
    teacher_weight: float = setting(1.0, "weight of the loss that follows the teacher", above=0.0)
    teacher_scale: float = setting(20.0, "multiplies the teacher's scores: one over their temperature", above=0.0)
    teacher_loss: Literal["list", "margin"] = setting(
        "list", "what follows the teacher. list: the order of all; margin: how far each negative is behind the partner"
    )
    in_batch: float = setting(1.0, "weight of the loss among the texts of a batch", minimum=0.0)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.mined and self.kinds != ("itself",) and not LONG.issuperset(self.kinds):
            raise SettingsError("`mined` reads pairs or whole documents: give positives=document or title, or mined=0")
        if self.teacher and not self.mined:
            raise SettingsError("a teacher ranks mined negatives: give mined=4 or so")
        if not (self.in_batch or self.teacher):
            raise SettingsError("without `in_batch` there is no loss: give a teacher")
        if self.positives != "itself" and self.hard_negatives:
            one = f"positives={self.positives} for one: leave it out, or give method=mnrl with positives=itself"
            raise SettingsError(f"`hard_negatives` is for three text columns, and {one}")

    def views(self, second_column: int = 0) -> tuple[View, ...]:
        """The text and its partner, and a hard negative where there is one."""
        pairs = self.kinds == ("itself",)
        views = super().views(int(pairs))
        whole = None if pairs else Surroundings(WHOLE, kept=1.0)
        mined = (View(int(pairs), passage=whole, mined=number) for number in range(self.mined))
        return (*views, *mined, *([View(2)] if self.hard_negatives else ()))

    @property
    def teachers(self) -> tuple[str, ...]:
        """The cross-encoder to follow, if any."""
        return (self.teacher,) if self.teacher not in ("", "search") else ()

    def fitted(self, columns: int, classes: int | None = None, largest: float | None = None) -> Self:
        """The options, with hard negatives where there is a third column."""
        return self.completed(hard_negatives=columns > 2) if self.positives == "itself" else self


@dataclass(frozen=True)
class Neighbours(MNRL):
    """Neighbours.

    −log exp(s·cos(aᵢ, bᵢ)) / Σⱼ exp(s·cos(aᵢ, bⱼ)), b a neighbour of a, j of other documents.

    the loss: Henderson et al., 2017. arXiv:1705.00652.
    """

    positives: str = setting("neighbours", POSITIVES)
    both_directions: bool = setting(True, "the neighbour must find its sentence, too; the mean of both losses")
    hard_negatives: bool | None = setting(False, "the third text column is a wrong partner of the first")


@dataclass(frozen=True)
class Cropping(Neighbours):
    """Cropping.

    −log exp(s·cos(aᵢ, bᵢ)) / Σⱼ exp(s·cos(aᵢ, bⱼ)), a and b two crops of one document.

    González-Márquez, Berens and Kobak, 2025. arXiv:2508.03453.
    """

    within: int = setting(10, "how many sentences away the other crop may be", minimum=1)
    span: int = setting(2, "sentences in a crop at most, drawn anew each time", minimum=1)
    overlap: bool = setting(True, "the two crops may share sentences")
    both_directions: bool = setting(False, "the other crop must find its partner, too; the mean of both losses")


@dataclass(frozen=True)
class GPL(MNRL):
    """Generative pseudo-labelling.

    KL(q ‖ p) of the softmaxes q of a teacher's scores and p of s·cos, over the text that a query was made for and its
    mined negatives; or, as published, the squared differences of their margins.

    Wang et al., 2022. arXiv:2112.07577.
    """

    mined: int = setting(4, "hard negatives of each query, mined by the base before training", minimum=1, maximum=100)
    teacher: str = setting("search", "scores the texts: search, for what mined them, or a cross-encoder")
    in_batch: float = setting(0.0, "weight of the loss among the texts of a batch", minimum=0.0)


class RankingLearner(Learner):
    """−log exp(s·cos(aᵢ, pᵢ)) / Σⱼ exp(s·cos(aᵢ, cⱼ)), c all partners pⱼ and hard negatives nⱼ of all processes.

    Henderson et al. 2017, section 4; with cosines, scale and hard negatives as in sentence-transformers. Added to it is
    `keep_base` times KL(q ‖ p), where q and p are the softmaxes, over the other texts of the batch, of the base's
    similarities and of the model's; and `teacher_weight` times `list_loss` over a text's partner and mined negatives.

    | | shape | |
    |---|---|---|
    | `views[0]` | n texts |  |
    | `views[1]` | n texts | the partner of each |
    | `views[2:]` | n texts each | hard negatives: those mined, then those of a column |
    | `labels` | (n, 1 + mined) | with a teacher, its scores of the partner and the mined negatives |
    | loss | a sum | over the n pairs |

    Example:
        >>> learner = RankingLearner(model, MNRL(both_directions=True))
        >>> pairs = pack(model, ["a cat sat", "dogs bark"]), pack(model, ["it slept", "loudly"])
        >>> learner(pairs).count
        2
    """

    options: MNRL
    compares = "documents"

    def __init__(self, model: Encoder, options: MNRL) -> None:
        super().__init__(model, options)
        for name in options.teachers:
            if not is_cross_encoder(resolve(name)):
                raise SettingsError(f"the teacher {name} is no cross-encoder: give one, or teacher=search")
        # In a tuple it is no submodule: neither trained, nor wrapped, nor part of checkpoints.
        self._base = (model.twin().eval().requires_grad_(False),) if options.keep_base else ()

    def forward(self, views: Sequence[Packed], labels: Tensor | None = None) -> Loss:
        """The loss of one batch; all its texts go through the encoder in one pass."""
        packed, scale = concatenate(views), self.options.scale
        vectors = F.normalize(self.model(packed).float(), dim=-1)
        text, *others = vectors.chunk(len(views))
        hard = len(views) - 2 - self.options.mined
        total = ranking_loss(text, others, views[0], views[1:], scale, hard=hard)
        if self.options.both_directions:
            total = (total + ranking_loss(others[0], [text], views[1], views[:1], scale)) / 2
        total = self.options.in_batch * total
        if self.options.teacher:
            assert labels is not None
            follow = margin_loss if self.options.teacher_loss == "margin" else list_loss
            own = torch.stack([(text * other).sum(1) for other in others[: 1 + self.options.mined]], dim=1)
            total = total + self.options.teacher_weight * follow(scale * own, self.options.teacher_scale * labels)
        for base in self._base:
            with torch.no_grad():
                before = F.normalize(base.to(packed.device)(packed).float(), dim=-1)
            total = total + self.options.keep_base * similarity_loss(vectors, before, scale) / len(views)
        return Loss(total, len(text))


MNRL.method = Method("mnrl", MNRL, RankingLearner).but(
    published=Settings(batch_size=128, learning_rate=2e-5, epochs=1, weight_decay=0.01, epsilon=1e-6, max_length=75),
    presets={"published": {"both_directions": True}},
    supervised=True,
)

GPL.method = MNRL.method.but(
    name="gpl",
    options=GPL,
    published=Settings(batch_size=32, learning_rate=2e-5, epochs=1, max_length=350),
    presets={"published": {"teacher_loss": "margin", "teacher_scale": 1.0, "scale": 1.0}},
    compared=False,
)

Neighbours.method = Method("neighbours", Neighbours, RankingLearner).but(
    published=Settings(batch_size=64, learning_rate=2e-5, epochs=1),
    defaults=MNRL.method.defaults.but(max_length=64),
    static_whiten=0.1,
    for_encoders={"keep_base": 1.0},
    aimed_at=OF_DOCUMENTS,
)

Cropping.method = Neighbours.method.but(
    name="cropping",
    options=Cropping,
    published=Settings(batch_size=64, learning_rate=2e-5, epochs=1, clip=0, max_length=512),
    defaults=MNRL.method.defaults,
    static_whiten=0.0,
    compared=False,
)
