"""IS-BERT: the vector of a sentence must share information with its own n-grams, none with those of others."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from selfsent.data.packed import Packed
from selfsent.distributed import gather, rank
from selfsent.errors import BaseEncoderError
from selfsent.methods.method import Learner, Loss, Method, MethodOptions
from selfsent.models.assemble import put_head
from selfsent.models.encoder import Encoder
from selfsent.models.heads.options import NgramOptions
from selfsent.settings import Settings, setting


@dataclass(frozen=True)
class InfoMax(NgramOptions, MethodOptions):
    """IS-BERT: mutual information between a sentence and its n-grams.

    softplus(−s) with the own sentence + mean softplus(s) with others, s = token · sentence.

    Zhang, He, Liu, Lim and Bing, 2020. arXiv:2009.12061.
    """

    discriminator: Literal["dot", "mlp"] = setting("dot", "how a token and a sentence are scored")
    temperature: float = setting(0.1, "divides the cosine; 0: a product instead, as in the paper", minimum=0.0)
    average: Literal["token", "sum"] = setting("token", "of the losses: the mean over tokens, or over sentences' sums")


class Residual(nn.Module):
    """Three layers with ReLU plus a linear shortcut: one head of a discriminator (Sun et al. 2020)."""

    def __init__(self, size: int) -> None:
        super().__init__()
        layers = [layer for _ in range(3) for layer in (nn.Linear(size, size), nn.ReLU())]
        self.deep, self.shortcut = nn.Sequential(*layers), nn.Linear(size, size)

    def forward(self, vectors: Tensor) -> Tensor:
        """(n, d) to (n, d)."""
        return torch.add(self.deep(vectors), self.shortcut(vectors))


def jensen_shannon(scores: Tensor, own: Tensor) -> Tensor:
    """Σᵢ { Σⱼ [sp(sᵢⱼ) − log 2] / (B − 1) − [log 2 − sp(−sᵢ)] }, j over the other sentences, sp(x) = log(1 + eˣ).

    The estimator of mutual information of Zhang et al. 2020, equations 2 and 3, shifted so that scores of zero give a
    loss of zero (Hjelm et al. 2019); at best −2 log 2 a token.

    Args:
        scores: (tokens, B) float32 scores of tokens and sentences.
        own: (tokens,) the sentence that each token is from.
    """
    positive = math.log(2) - F.softplus(-scores.gather(1, own[:, None])[:, 0])
    others = (F.softplus(scores) - math.log(2)).scatter(1, own[:, None], 0.0)
    return (others.sum(1) / (scores.shape[1] - 1) - positive).sum()


class InfomaxLearner(Learner):
    """−I(local; global) over the tokens of the batch, negatives from its other sentences (Zhang et al. 2020, eq. 2, 3).

    | | shape | |
    |---|---|---|
    | `views[0]` | n sentences | tokens are local features, pooled vectors global ones |
    | loss | a sum | over the tokens |

    Examples:
        >>> learner = InfomaxLearner(model, InfoMax())
        >>> batch = pack(model, ["a cat sat", "dogs bark"])
        >>> learner([batch]).count
        9
    """

    options: InfoMax
    compares = "texts"

    def __init__(self, model: Encoder, options: InfoMax) -> None:
        super().__init__(model, options)
        put_head(model, options)
        size = model.embedding_size
        if (width := getattr(model.pooling_module, "embedding_dimension", size)) != size:
            narrowed = f"this base narrows its vectors from {width} to {size} numbers after the pooling"
            problem = f"infomax compares sentences with their tokens, and {narrowed}"
            raise BaseEncoderError(f"{problem}: choose another base")
        mlp = options.discriminator == "mlp"
        self.local_head, self.global_head = (Residual(size) if mlp else nn.Identity() for _ in range(2))

    def forward(self, views: Sequence[Packed], labels: Tensor | None = None) -> Loss:
        """The loss of one batch: every token is scored against every sentence of all processes."""
        (packed,) = views
        states = self.model.token_vectors(packed)
        tokens, sentences = self.local_head(states), self.global_head(self.model.pool(states, packed))
        if self.options.temperature:
            tokens = F.normalize(tokens.float(), dim=-1) / self.options.temperature
            sentences = F.normalize(sentences.float(), dim=-1)
        scores = (tokens @ gather(sentences.to(tokens.dtype)).T).float()
        total = jensen_shannon(scores, packed.sentence + rank() * len(packed))
        return Loss(total, packed.tokens if self.options.average == "token" else len(packed))


InfoMax.method = Method(
    "infomax",
    InfoMax,
    InfomaxLearner,
    published=Settings(batch_size=32, learning_rate=1e-6, epochs=1),
    defaults=Settings(batch_size=32, learning_rate=5e-4, epochs=1),
    static=None,
    presets={
        "published": {"activation": "relu", "discriminator": "mlp", "average": "sum", "temperature": 0.0},
        "faithful": {"temperature": 0.0, "masked": False, "learning_rate": 2e-6, "epsilon": 1e-7, "weight_decay": 0.01},
    },
)
