"""IS-BERT: the vector of a sentence must share information with its own n-grams, none with those of others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from selfsent.data.views import View
from selfsent.distributed import gather, rank
from selfsent.errors import BaseEncoderError
from selfsent.fast.packing import Packed
from selfsent.methods.method import Learner, Loss, Method
from selfsent.methods.mutual_information import ESTIMATORS
from selfsent.methods.two_views import whole_batch
from selfsent.models.assemble import put_head
from selfsent.models.encoder import Encoder
from selfsent.models.heads.options import NGRAM_CNN, NgramOptions
from selfsent.settings import Settings, setting


@dataclass(frozen=True)
class Options(NgramOptions):
    """Options of IS-BERT: of its head, the n-gram CNN, and of its loss."""

    discriminator: Literal["dot", "bilinear", "mlp"] = setting("dot", "how a token and a sentence are scored")
    temperature: float = setting(
        0.1, "divides the cosine that is the score; 0: a product instead, as in the paper", minimum=0.0
    )
    estimator: Literal["jsd", "infonce", "dv"] = setting("jsd", "estimator of mutual information")
    average: Literal["token", "sentence", "sum"] = setting(
        "token",
        "of the losses: the mean over tokens, over sentences' means, or over sentences' sums",
    )


class Residual(nn.Module):
    """Three layers with ReLU beside a linear shortcut: a discriminator's head on either side (Sun et al. 2020)."""

    def __init__(self, size: int) -> None:
        super().__init__()
        layers = [layer for _ in range(3) for layer in (nn.Linear(size, size), nn.ReLU())]
        self.deep, self.shortcut = nn.Sequential(*layers), nn.Linear(size, size)

    def forward(self, vectors: Tensor) -> Tensor:
        """(n, d) to (n, d)."""
        out: Tensor = self.deep(vectors) + self.shortcut(vectors)
        return out


def discriminator(kind: str, size: int) -> tuple[nn.Module, nn.Module]:
    """What is done to local and to global vectors of width `size` before their product is taken."""
    if kind == "mlp":
        return Residual(size), Residual(size)
    if kind == "dot":
        return nn.Identity(), nn.Identity()
    product = nn.Linear(size, size, bias=False)
    nn.init.eye_(product.weight)  # it begins as the plain product
    return product, nn.Identity()


class InfomaxLearner(Learner):
    """−I(local; global) over the tokens of the batch, negatives from its other sentences (Zhang et al. 2020, eq. 4).

    | | shape | |
    |---|---|---|
    | `views[0]` | n sentences | whose tokens are local, and whose means are global features |
    | loss | a sum | over the tokens |

    Example:
        >>> learner = InfomaxLearner(model, Options())
        >>> batch = pack(model, ["a cat sat", "dogs bark"])
        >>> learner([batch]).count
        9
    """

    options: Options

    def __init__(self, model: Encoder, options: Options) -> None:
        super().__init__(model, options)
        put_head(model, options)
        width = getattr(model.pooling_module, "embedding_dimension", model.embedding_size)
        if width != model.embedding_size:
            raise BaseEncoderError(
                f"infomax compares sentences with their tokens, and this base narrows its vectors from {width} to"
                f" {model.embedding_size} numbers after the pooling: choose another base"
            )
        self.local_head, self.global_head = discriminator(options.discriminator, model.embedding_size)

    def forward(self, views: Sequence[Packed], labels: Tensor | None = None) -> Loss:
        """The loss of one batch: every token is scored against every sentence of all processes."""
        (packed,) = views
        whole_batch(len(packed))
        tokens = self.model.token_vectors(packed)
        sentences = self.model.pool(tokens, packed)
        scores = self.scores(self.local_head(tokens), self.global_head(sentences))
        weights = torch.ones_like(scores[:, 0])
        if self.options.average == "sentence":
            weights = 1 / packed.lengths[packed.sentence].float()
        total = ESTIMATORS[self.options.estimator](scores, packed.sentence + rank() * len(packed), weights)
        return Loss(total, packed.tokens if self.options.average == "token" else len(packed))

    def scores(self, tokens: Tensor, sentences: Tensor) -> Tensor:
        """(tokens, all sentences) float32 scores of (tokens, d) local and (sentences, d) global vectors."""
        if self.options.temperature:
            tokens = F.normalize(tokens.float(), dim=-1) / self.options.temperature
            sentences = F.normalize(sentences.float(), dim=-1)
        return (tokens @ gather(sentences.to(tokens.dtype)).T).float()


INFOMAX = Method(
    name="infomax",
    title="IS-BERT: mutual information between a sentence and its n-grams",
    citation="Zhang, He, Liu, Lim and Bing, 2020. arXiv:2009.12061",
    objective="softplus(−s) with the own sentence + mean softplus(s) with others, s = token · sentence",
    learner=InfomaxLearner,
    options=Options,
    views=lambda options: (View(),),
    batchwise=True,
    by_document=False,
    pooling="mean",
    head=NGRAM_CNN,
    published=Settings(batch_size=32, learning_rate=1e-6, epochs=1, schedule="linear", warmup=0.1),
    defaults=Settings(batch_size=32, learning_rate=5e-4, epochs=1),
    large_learning_rate=2e-5,
    presets={
        "published": {"activation": "relu", "discriminator": "mlp", "average": "sum", "temperature": 0.0},
        "faithful": {"temperature": 0.0, "masked": False, "learning_rate": 2e-6, "epsilon": 1e-7, "weight_decay": 0.01},
    },
)
