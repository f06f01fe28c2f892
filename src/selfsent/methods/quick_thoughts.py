"""Quick-Thoughts: one encoder reads a sentence, another must know the sentences beside it from all others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor

from selfsent.fast.packing import Packed
from selfsent.methods.contrast import in_batch_cross_entropy, no_negatives, similarities
from selfsent.methods.ct import DROPOUT_IN, DropoutIn, TwinLearner
from selfsent.methods.method import STATIC, Loss, Method
from selfsent.methods.two_views import POSITIVES, Positives, ViewOptions, two_views, whole_batch
from selfsent.settings import Settings, setting


@dataclass(frozen=True)
class Options(ViewOptions):
    """Options of Quick-Thoughts."""

    positives: Positives = setting("neighbours", POSITIVES)
    scale: float = setting(1.0, "multiplies the inner products", above=0.0)
    dropout_in: DropoutIn = setting("both", DROPOUT_IN)


class DualEncoderLearner(TwinLearner):
    """−log exp(f(s)·g(c)) / Σ exp(f(s)·g(c′)), c a neighbour of the sentence s, c′ those of all sentences of the batch.

    Logeswaran and Lee 2018, section 3. f and g have the same weights at first; f, which reads the sentence, is kept.

    | | shape | |
    |---|---|---|
    | `views[0]` | n sentences |  |
    | `views[1]` | n sentences | what stands beside each in its document, or around it (inverse cloze) |
    | loss | a sum | over the n sentences |

    Example:
        >>> learner = DualEncoderLearner(model, Options())
        >>> batch = pack(model, ["a cat sat", "dogs bark"]), pack(model, ["it slept", "loudly"])
        >>> learner(batch).count
        2
    """

    options: Options

    def forward(self, views: Sequence[Packed], labels: Tensor | None = None) -> Loss:
        """The loss of one batch of sentences and what stands beside them."""
        sentences, contexts = views
        whole_batch(len(sentences))
        context_vectors, vectors = (part.float() for part in self.encode(contexts, sentences))
        scores = self.options.scale * similarities(vectors, context_vectors)
        return Loss(in_batch_cross_entropy(scores, no_negatives(sentences, contexts, [contexts])), len(sentences))


QUICK_THOUGHTS = Method(
    name="quick-thoughts",
    title="Quick-Thoughts",
    citation="Logeswaran and Lee, 2018. arXiv:1803.02893",
    objective="−log exp(f(s)·g(c)) / Σ exp(f(s)·g(c′)), c the sentence beside s, c′ those of the batch",
    learner=DualEncoderLearner,
    options=Options,
    views=two_views,
    batchwise=True,
    pooling="mean",
    published=Settings(
        batch_size=400, learning_rate=5e-4, epochs=1, schedule="constant", warmup=0, clip=5.0, max_length=32
    ),
    defaults=Settings(batch_size=64, learning_rate=2e-4, epochs=1, max_length=64),
    large_learning_rate=1e-5,
    static=STATIC,
)
