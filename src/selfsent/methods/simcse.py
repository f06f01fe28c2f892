"""SimCSE: a sentence must recognise itself, seen twice through different dropout, among the others of the batch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor, nn
from torch.nn import functional as F

from selfsent.data.packed import Packed, concatenate
from selfsent.methods.contrast import ranking_loss
from selfsent.methods.method import Learner, Loss, Method
from selfsent.methods.positives import PairOptions
from selfsent.models.encoder import Encoder
from selfsent.settings import Settings, setting


@dataclass(frozen=True)
class SimCSE(PairOptions):
    """Simple contrastive learning of sentence embeddings.

    −log exp(cos(a, a′)/τ) / Σⱼ exp(cos(a, bⱼ)/τ), a and a′ the same sentence under different dropout.

    Gao, Yao and Chen, 2021. arXiv:2104.08821.
    """

    temperature: float = setting(0.05, "divides the cosines", above=0.0)
    mlp: bool = setting(True, "a dense layer with tanh above the pooling, in training only")


class SimCSELearner(Learner):
    """−log exp(cos(uᵢ, vᵢ)/τ) / Σⱼ exp(cos(uᵢ, vⱼ)/τ), u and v two looks at each sentence (Gao et al. 2021, section 3).

    | | shape | |
    |---|---|---|
    | `views[0]` | n sentences |  |
    | `views[1]` | the same n | read again: with other dropout, other noise, or another sentence of the document |
    | loss | a sum | over the n sentences |

    Examples:
        >>> learner = SimCSELearner(model, SimCSE(temperature=0.05))
        >>> batch = pack(model, ["a cat sat", "dogs bark", "it rains"])
        >>> learner([batch, batch]).count
        3
    """

    options: SimCSE
    compares = "documents"
    nests = True

    def __init__(self, model: Encoder, options: SimCSE) -> None:
        super().__init__(model, options)
        width = model.embedding_size
        self.mlp = nn.Sequential(nn.Linear(width, width), nn.Tanh()) if options.mlp else nn.Identity()

    def forward(self, views: Sequence[Packed], labels: Tensor | None = None) -> Loss:
        """The loss of one batch; both views go through the encoder in one pass."""
        u, v = F.normalize(self.mlp(self.model(concatenate(views))).float(), dim=-1).chunk(2)
        return Loss(ranking_loss(u, [v], views[0], views[1:], 1 / self.options.temperature), len(u))


SimCSE.method = Method(
    "simcse",
    SimCSE,
    SimCSELearner,
    pooling="cls",
    published=Settings(batch_size=64, learning_rate=3e-5, epochs=1, schedule="linear", warmup=0, max_length=32),
    large_learning_rate=3e-5,
)
