"""SimCSE: a sentence must recognise itself, seen twice through different dropout, among the others of the batch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from selfsent.distributed import gather, mean_over_processes, rank
from selfsent.encoder import Encoder
from selfsent.errors import SettingsError
from selfsent.methods.method import Learner, Loss, Method
from selfsent.methods.mlm import masked_loss
from selfsent.packing import Packed, concatenate
from selfsent.settings import Settings, check_limits, setting
from selfsent.views import DeleteWords, MaskTokens, Noise, PickWords, RepeatWords, View


@dataclass(frozen=True)
class Options:
    """Options of SimCSE."""

    temperature: float = setting(0.05, "divides the cosines", above=0.0)
    mlp: bool = setting(True, "a dense layer with tanh above the pooling, in training only")
    delete_words: float = setting(0.0, "share of the words deleted from each view", minimum=0.0, maximum=0.95)
    pick_words: int = setting(0, "largest number of words that stay in a view; 0 keeps all", minimum=0)
    repeat_words: float = setting(
        0.0, "largest share of the words said twice in one view (ESimCSE: 0.32)", minimum=0.0, maximum=1.0
    )
    mlm_weight: float = setting(0.0, "weight of a masked-language-model loss (the paper's option: 0.1)", minimum=0.0)

    def __post_init__(self) -> None:
        check_limits(self)
        if sum(map(bool, (self.delete_words, self.pick_words, self.repeat_words))) > 1:
            raise SettingsError("--delete-words, --pick-words and --repeat-words change the same views: give one")


def views(options: Options) -> tuple[View, ...]:
    """The sentence twice, and once masked when the masked-language-model loss is on."""
    both: Noise | None = DeleteWords(options.delete_words) if options.delete_words else None
    both = PickWords(options.pick_words) if options.pick_words else both
    second: Noise | None = RepeatWords(options.repeat_words) if options.repeat_words else both
    pair = (View(noise=both), View(noise=second))
    return (*pair, View(noise=MaskTokens())) if options.mlm_weight else pair


def contrastive_loss(first: Tensor, second: Tensor, temperature: float) -> Loss:
    """−Σᵢ log exp(cos(aᵢ, bᵢ)/τ) / Σⱼ exp(cos(aᵢ, bⱼ)/τ), j over all processes.

    Gao et al. 2021, equation 1.

    Args:
        first: (n, d) vectors aᵢ of this process' sentences.
        second: (n, d) vectors bᵢ of the same sentences seen otherwise.
        temperature: τ.
    """
    candidates = gather(F.normalize(second.float(), dim=-1))
    scores = F.normalize(first.float(), dim=-1) @ candidates.T / temperature
    targets = torch.arange(len(first), device=first.device) + rank() * len(first)
    return Loss(F.cross_entropy(scores, targets, reduction="sum"), len(first))


class ContrastiveLearner(Learner):
    """Unsupervised SimCSE (Gao, Yao and Chen 2021, section 3)."""

    options: Options

    def __init__(self, model: Encoder, options: Options) -> None:
        super().__init__(model, options)
        if not (model.dropout_rate or options.delete_words or options.pick_words or options.repeat_words):
            raise SettingsError(
                "the two views of a sentence would be identical: this base has dropout 0 and no noise is set;"
                " give --dropout 0.1, --delete-words 0.3 or --repeat-words 0.32"
            )
        width = model.embedding_size
        self.mlp = nn.Sequential(nn.Linear(width, width), nn.Tanh()) if options.mlp else nn.Identity()
        if options.mlm_weight:
            model.require_head("the masked-language-model loss")

    def forward(self, views: Sequence[Packed], labels: Tensor | None = None) -> Loss:
        """The loss of one batch; both views go through the encoder in one pass."""
        vectors = self.mlp(self.model(concatenate(views[:2])))
        first, second = vectors.chunk(2)
        loss = contrastive_loss(first, second, self.options.temperature)
        if not self.options.mlm_weight:
            return loss
        masked = views[2]
        words = masked_loss(self.model.require_head("simcse"), self.model.states(masked), masked)
        # A mean over the hidden tokens of all processes, as every process has the same number of sentences.
        weight = self.options.mlm_weight * loss.count / mean_over_processes(words.count, loss.total.device)
        return Loss(loss.total + weight * words.total, loss.count)


SIMCSE = Method(
    name="simcse",
    title="Simple contrastive learning of sentence embeddings",
    citation="Gao, Yao and Chen, 2021. arXiv:2104.08821",
    objective="−log exp(cos(a, a′)/τ) / Σⱼ exp(cos(a, bⱼ)/τ), a and a′ the same sentence under different dropout",
    learner=ContrastiveLearner,
    options=Options,
    views=views,
    compares=True,
    pooling="cls",
    published=Settings(batch_size=64, learning_rate=3e-5, epochs=1, schedule="linear", warmup=0, max_length=32),
    defaults=Settings(batch_size=64, learning_rate=1e-4, epochs=1),
    large_learning_rate=3e-5,
)
