"""Masked language modelling: predict hidden tokens from the rest of the sentence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor

from selfsent.data.packed import IGNORED, Packed
from selfsent.data.views.noise import MaskTokens
from selfsent.data.views.view import View
from selfsent.distributed import mean_over_processes
from selfsent.fast.filled_rows import filled
from selfsent.methods.losses import linear_cross_entropy
from selfsent.methods.method import Learner, Loss, Method, MethodOptions
from selfsent.models.assemble import freeze_behind_tokens
from selfsent.models.encoder import Encoder
from selfsent.models.heads.language_model import LanguageModelHead
from selfsent.settings import Settings, setting


@dataclass(frozen=True)
class MLM(MethodOptions):
    """Options of masked language modelling."""

    ratio: float = setting(0.15, "share of the tokens to predict", above=0.0, maximum=1.0)
    whole_words: bool = setting(False, "mask all tokens of a word together")

    def views(self) -> tuple[View, ...]:
        """The masked sentence."""
        return (View(noise=MaskTokens(self.ratio, self.whole_words)),)

    @property
    def predicts_words(self) -> bool:
        """It does nothing else."""
        return True


def masked_loss(head: LanguageModelHead, states: Tensor, packed: Packed) -> Loss:
    """Cross-entropy at the positions that have a target, as a sum over them.

    Args:
        head: the language-model head.
        states: (tokens, d) last-layer states of the masked batch.
        packed: the masked batch, with targets.
    """
    chosen = (packed.targets != IGNORED).nonzero()[:, 0]
    total = linear_cross_entropy(
        head(filled(states[chosen])), head.output.weight, head.output.bias, packed.targets[chosen]
    )
    return Loss(total, len(chosen))


def added_loss(learner: Learner, states: Tensor, packed: Packed, sentences: int) -> Tensor:
    """The masked-language-model loss that is added to a sum over sentences, with the weight `mlm_weight`.

    It is a mean over the hidden tokens of all processes, as every process has the same number of sentences.

    Args:
        learner: whose loss it is added to.
        states: (tokens, d) last-layer states of the masked batch.
        packed: the masked batch, with targets.
        sentences: how many the other loss is summed over.
    """
    words = masked_loss(learner.model.require_head("the masked-language-model loss"), states, packed)
    weight: float = learner.options.mlm_weight * sentences / (mean_over_processes(words.count, words.total.device) or 1)
    return words.total * weight


class MaskedLearner(Learner):
    """−Σ log p(w_i | damaged sentence) over the chosen positions i (Devlin et al. 2019, section 3.1).

    | | shape | |
    |---|---|---|
    | `views[0]` | n sentences | damaged, with the words to predict as `targets` |
    | loss | a sum | over the words to predict |

    Example:
        >>> learner = MaskedLearner(model, MLM())
        >>> whole = pack(model, ["the cat sat on the mat"])
        >>> learner([whole]).count  # nothing is masked: there is nothing to predict
        0
    """

    options: MLM
    may_collapse = True

    def __init__(self, model: Encoder, options: MLM) -> None:
        super().__init__(model, options)
        self.model.require_head("mlm")
        freeze_behind_tokens(model)

    def forward(self, views: Sequence[Packed], labels: Tensor | None = None) -> Loss:
        """The loss of one masked batch."""
        (masked,) = views
        return masked_loss(self.model.require_head("mlm"), self.model.states(masked), masked)


MLM.method = Method(
    name="mlm",
    title="Masked language modelling",
    citation="Devlin, Chang, Lee and Toutanova, 2019. arXiv:1810.04805; settings of Wang, Reimers and Gurevych, 2021",
    objective="−Σ log p(wᵢ | sentence with wᵢ hidden)",
    learner=MaskedLearner,
    options=MLM,
    published=Settings(batch_size=8, learning_rate=5e-5, steps=100_000, schedule="constant", warmup=0),
    defaults=Settings(batch_size=32, learning_rate=1e-4, epochs=1),
    large_learning_rate=5e-5,
    static=None,
)
