"""SimCSE: a sentence must recognise itself, seen twice through different dropout, among the others of the batch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from selfsent.data.views import MaskTokens, View
from selfsent.distributed import gather, mean_over_processes, rank
from selfsent.errors import SettingsError
from selfsent.fast.packing import Packed, concatenate
from selfsent.methods.contrast import in_batch_cross_entropy, no_negatives, similarities
from selfsent.methods.method import STATIC, Learner, Loss, Method
from selfsent.methods.mlm import masked_loss
from selfsent.methods.predictor import standardised
from selfsent.methods.two_views import PairOptions, pair_of_views, require_difference, varied, whole_batch
from selfsent.models.dropout import without_dropout
from selfsent.models.encoder import Encoder
from selfsent.settings import Settings, setting


@dataclass(frozen=True)
class Options(PairOptions):
    """Options of SimCSE."""

    temperature: float = setting(0.05, "divides the cosines", above=0.0)
    mlp: bool = setting(True, "a dense layer with tanh above the pooling, in training only")
    keep_mlp: bool = setting(False, "the dense layer becomes part of the saved model")
    mlm_weight: float = setting(0.0, "weight of an added masked-language-model loss (the paper's: 0.1)", minimum=0.0)
    clean_negatives: bool = setting(False, "negatives are seen without dropout (SimCSE++)")
    positive_scale: float = setting(1.0, "multiplies the score of the positive (SimCSE++: 0.9)", above=0.0)
    dimension_weight: float = setting(
        0.0, "weight of a loss that tells the dimensions apart (SimCSE++: 0.1)", minimum=0.0
    )
    dimension_temperature: float = setting(5.0, "divides the correlations of dimensions in that loss", above=0.0)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.keep_mlp and not self.mlp:
            raise SettingsError("--keep-mlp and --no-mlp contradict each other: give one of them")


def views(options: Options) -> tuple[View, ...]:
    """The sentence twice, and once masked when the masked-language-model loss is on."""
    pair = pair_of_views(options)
    return (*pair, View(noise=MaskTokens())) if options.mlm_weight else pair


def contrastive_loss(
    first: Tensor,
    second: Tensor,
    temperature: float,
    clean: Tensor | None = None,
    positive_scale: float = 1.0,
    left_out: Tensor | None = None,
) -> Loss:
    """−Σᵢ log exp(cos(aᵢ, bᵢ)/τ) / Σⱼ exp(cos(aᵢ, bⱼ)/τ), j over the batches of all processes (Gao et al. 2021, eq. 1).

    Args:
        first: (n, d) vectors aᵢ of this process' sentences.
        second: (n, d) vectors bᵢ of the same sentences seen otherwise.
        temperature: τ.
        clean: (n, d) vectors cᵢ of them seen without dropout: cos(cᵢ, cⱼ) then stands for cos(aᵢ, bⱼ) where j ≠ i, as
            in SimCSE++ (Xu et al. 2023, arXiv:2305.13192, section 3).
        positive_scale: multiplies cos(aᵢ, bᵢ).
        left_out: (n, m) which j do not count.
    """
    first, second = F.normalize(first.float(), dim=-1), F.normalize(second.float(), dim=-1)
    if clean is None:
        scores = similarities(first, second)
    else:
        clean = F.normalize(clean.float(), dim=-1)
        scores = similarities(clean, clean)
    if clean is not None or positive_scale != 1:
        own = torch.arange(len(first), device=first.device) + rank() * len(first)
        positives = positive_scale * (first * second).sum(-1, keepdim=True)
        scores = scores.scatter(1, own[:, None], positives.to(scores.dtype))
    return Loss(in_batch_cross_entropy(scores / temperature, left_out), len(first))


def dimension_loss(first: Tensor, second: Tensor, temperature: float) -> Tensor:
    """−mean over k of log softmaxₗ(cₖₗ/τ)ₖ, c correlations of dimensions k of a and l of b (Xu et al. 2023).

    Args:
        first: (n, d) vectors a of this process' sentences; the correlations are over the sentences of all processes.
        second: (n, d) vectors b of the same sentences seen otherwise.
        temperature: τ.
    """
    a, b = gather(standardised(first)), gather(standardised(second))
    correlations = (a.T @ b).float() / len(a)
    return F.cross_entropy(correlations / temperature, torch.arange(a.shape[1], device=a.device))


class ContrastiveLearner(Learner):
    """−log exp(cos(uᵢ, vᵢ)/τ) / Σⱼ exp(cos(uᵢ, vⱼ)/τ), u and v two looks at each sentence (Gao et al. 2021, section 3).

    | | shape | |
    |---|---|---|
    | `views[0]` | n sentences |  |
    | `views[1]` | the same n | read again: with other dropout, other noise, or another sentence of the document |
    | loss | a sum | over the n sentences |

    Example:
        >>> learner = ContrastiveLearner(model, Options(temperature=0.05))
        >>> batch = pack(model, ["a cat sat", "dogs bark", "it rains"])
        >>> learner([batch, batch]).count
        3
    """

    options: Options

    def __init__(self, model: Encoder, options: Options) -> None:
        super().__init__(model, options)
        require_difference(model, options)
        width = model.embedding_size
        self.mlp = nn.Sequential(nn.Linear(width, width), nn.Tanh()) if options.mlp else nn.Identity()
        if options.keep_mlp:
            self.mlp = nn.Identity()
            model.sentence_transformer.append(_dense(width))
        if options.mlm_weight:
            model.require_head("the masked-language-model loss")

    def forward(self, views: Sequence[Packed], labels: Tensor | None = None) -> Loss:
        """The loss of one batch; both views go through the encoder in one pass."""
        whole_batch(len(views[0]))
        chosen = self.options
        first, second = self.mlp(self.model(concatenate(views[:2]))).chunk(2)
        clean = None
        if chosen.clean_negatives:
            with without_dropout(self.model):
                clean = self.mlp(self.model(views[0]))
        left_out = no_negatives(views[0], views[1], views[1:2])
        loss = contrastive_loss(first, second, chosen.temperature, clean, chosen.positive_scale, left_out)
        total, count = loss.total, loss.count
        if chosen.dimension_weight:
            weight = chosen.dimension_weight * count
            total = total + weight * dimension_loss(first, second, chosen.dimension_temperature)
        if chosen.mlm_weight:
            masked = views[2]
            words = masked_loss(self.model.require_head("simcse"), self.model.states(masked), masked)
            # A mean over the hidden tokens of all processes, as every process has the same number of sentences.
            weight = chosen.mlm_weight * count / (mean_over_processes(words.count, total.device) or 1)
            total = total + weight * words.total
        return Loss(total, count)


def _dense(width: int) -> nn.Module:
    """The same layer as a module of sentence-transformers."""
    from sentence_transformers.base.modules import Dense

    layer: nn.Module = Dense(width, width)
    return layer


SIMCSE = Method(
    name="simcse",
    title="Simple contrastive learning of sentence embeddings",
    citation="Gao, Yao and Chen, 2021. arXiv:2104.08821",
    objective="−log exp(cos(a, a′)/τ) / Σⱼ exp(cos(a, bⱼ)/τ), a and a′ the same sentence under different dropout",
    learner=ContrastiveLearner,
    options=Options,
    views=views,
    batchwise=True,
    pooling="cls",
    published=Settings(batch_size=64, learning_rate=3e-5, epochs=1, schedule="linear", warmup=0, max_length=32),
    defaults=Settings(batch_size=64, learning_rate=5e-4, epochs=1),
    large_learning_rate=3e-5,
    static=STATIC,
    predicts_words=lambda options: options.mlm_weight > 0,
    suits_static=lambda options: varied(options) and not options.mlm_weight,
    presets={"simcse++": {"clean_negatives": True, "positive_scale": 0.9, "dimension_weight": 0.1}},
)
