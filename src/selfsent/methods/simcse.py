"""SimCSE: a sentence must recognise itself, seen twice through different dropout, among the others of the batch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor, nn
from torch.nn import functional as F

from selfsent.data.packed import Packed, concatenate
from selfsent.data.views.noise import MaskTokens
from selfsent.data.views.view import View
from selfsent.errors import SettingsError
from selfsent.methods.contrast import PairOptions, ranking_loss
from selfsent.methods.method import OF_SENTENCES, Learner, Loss, Method
from selfsent.methods.mlm import added_loss
from selfsent.models.encoder import Encoder
from selfsent.settings import Settings, setting


@dataclass(frozen=True)
class SimCSE(PairOptions):
    """Options of SimCSE."""

    temperature: float = setting(0.05, "divides the cosines", above=0.0)
    mlp: bool = setting(True, "a dense layer with tanh above the pooling, in training only")
    keep_mlp: bool = setting(False, "the dense layer becomes part of the saved model")
    mlm_weight: float = setting(0.0, "weight of an added masked-language-model loss (the paper's: 0.1)", minimum=0.0)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.keep_mlp and not self.mlp:
            raise SettingsError("--keep-mlp and --no-mlp contradict each other: give one of them")

    def views(self) -> tuple[View, ...]:
        """The sentence twice, and once masked for the masked-language-model loss."""
        return (*super().views(), View(noise=MaskTokens())) if self.mlm_weight else super().views()

    @property
    def predicts_words(self) -> bool:
        """Whether there is a masked-language-model loss."""
        return self.mlm_weight > 0


class ContrastiveLearner(Learner):
    """−log exp(cos(uᵢ, vᵢ)/τ) / Σⱼ exp(cos(uᵢ, vⱼ)/τ), u and v two looks at each sentence (Gao et al. 2021, section 3).

    | | shape | |
    |---|---|---|
    | `views[0]` | n sentences |  |
    | `views[1]` | the same n | read again: with other dropout, other noise, or another sentence of the document |
    | loss | a sum | over the n sentences |

    Example:
        >>> learner = ContrastiveLearner(model, SimCSE(temperature=0.05))
        >>> batch = pack(model, ["a cat sat", "dogs bark", "it rains"])
        >>> learner([batch, batch]).count
        3
    """

    options: SimCSE
    compares = "documents"

    def __init__(self, model: Encoder, options: SimCSE) -> None:
        super().__init__(model, options)
        options.require_difference(model)
        width = model.embedding_size
        own = options.mlp and not options.keep_mlp
        self.mlp = nn.Sequential(nn.Linear(width, width), nn.Tanh()) if own else nn.Identity()
        if options.keep_mlp:
            from sentence_transformers.base.modules import Dense

            model.sentence_transformer.append(Dense(width, width))
        if options.mlm_weight:
            model.require_head("the masked-language-model loss")

    def forward(self, views: Sequence[Packed], labels: Tensor | None = None) -> Loss:
        """The loss of one batch; both views go through the encoder in one pass."""
        vectors = F.normalize(self.mlp(self.model(concatenate(views[:2]))).float(), dim=-1)
        first, second = vectors.chunk(2)
        total = ranking_loss(first, [second], views[0], views[1:2], 1 / self.options.temperature)
        if self.options.mlm_weight:
            total = total + added_loss(self, self.model.states(views[2]), views[2], len(first))
        return Loss(total, len(first))


SimCSE.method = Method(
    name="simcse",
    title="Simple contrastive learning of sentence embeddings",
    citation="Gao, Yao and Chen, 2021. arXiv:2104.08821",
    objective="−log exp(cos(a, a′)/τ) / Σⱼ exp(cos(a, bⱼ)/τ), a and a′ the same sentence under different dropout",
    learner=ContrastiveLearner,
    options=SimCSE,
    pooling="cls",
    published=Settings(batch_size=64, learning_rate=3e-5, epochs=1, schedule="linear", warmup=0, max_length=32),
    large_learning_rate=3e-5,
    aimed_at=OF_SENTENCES,
)
