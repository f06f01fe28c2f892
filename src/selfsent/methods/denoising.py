"""Predicting words: masked language modelling, and TSDAE, which rebuilds a sentence from one vector."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, Literal, cast

from torch import Tensor, nn

from selfsent.data.packed import Packed
from selfsent.data.targets import IGNORED
from selfsent.data.views.noise import AddWords, DeleteWords, MaskTokens, MaskWords, Noise, ReplaceWords, SwapWords
from selfsent.data.views.positives import Span
from selfsent.data.views.view import View
from selfsent.errors import SettingsError
from selfsent.methods.losses import head_cross_entropy
from selfsent.methods.method import Learner, Loss, Method, MethodOptions
from selfsent.models.assemble import freeze_after_tokens
from selfsent.models.decoders.checkpoint import CheckpointDecoder
from selfsent.models.decoders.transformer import SmallDecoder, TiedDecoder, built_like_bert
from selfsent.models.dropout import without_dropout
from selfsent.models.encoder import Encoder
from selfsent.settings import Settings, setting


@dataclass(frozen=True)
class MLM(MethodOptions):
    """Masked language modelling.

    −Σ log p(wᵢ | sentence with wᵢ hidden).

    Devlin, Chang, Lee and Toutanova, 2019. arXiv:1810.04805; settings of Wang, Reimers and Gurevych, 2021.
    """

    ratio: float = setting(0.15, "share of the tokens to predict", above=0.0, maximum=1.0)
    embedding_rate: float = setting(1.0, "rate of the embeddings, as a share of the learning rate", minimum=0.0)
    span: int = setting(
        1, "maximum number of neighbouring sentences of a document that are read as one text", minimum=1
    )

    def views(self) -> tuple[View, ...]:
        """The masked sentence, among its neighbours."""
        passage = Span("anchor", longest=self.span, overlap=True) if self.span > 1 else None
        return (View(noise=MaskTokens(self.ratio), passage=passage, side="bare"),)


class MaskedLearner(Learner):
    """−Σ log p(w_i | damaged sentence) over the chosen positions i (Devlin et al. 2019, section 3.1).

    | | shape | |
    |---|---|---|
    | `views[0]` | n sentences | damaged, with the words to predict as `targets` |
    | loss | a sum | over the words to predict |

    Examples:
        >>> learner = MaskedLearner(model, MLM())
        >>> whole = pack(model, ["the cat sat on the mat"])
        >>> learner([whole]).count  # nothing is masked: there is nothing to predict
        0
    """

    options: MLM
    predicts_words = True
    may_collapse = True

    def __init__(self, model: Encoder, options: MLM) -> None:
        super().__init__(model, options)
        self.model.require_head("mlm")
        freeze_after_tokens(model)

    def forward(self, views: Sequence[Packed], labels: Tensor | None = None) -> Loss:
        """The loss of one masked batch."""
        (masked,) = views
        chosen = (masked.targets != IGNORED).nonzero()[:, 0]
        states, head = self.model.states(masked)[chosen], self.model.require_head("mlm")
        return Loss(head_cross_entropy(head, states, masked.targets[chosen]), len(chosen))

    def parameter_groups(self, settings: Settings) -> list[dict[str, Any]]:
        """The default groups, and the embeddings of words, positions and types at their own rate."""
        rate = self.options.embedding_rate * settings.learning_rate
        tables = nn.ModuleList(each for each in self.model.transformer.modules() if isinstance(each, nn.Embedding))
        return self.at_rate(rate, tables, super().parameter_groups(settings))


MLM.method = Method(
    "mlm",
    MLM,
    MaskedLearner,
    published=Settings(batch_size=8, learning_rate=5e-5, steps=100_000, schedule="constant", warmup=0),
    defaults=Settings(batch_size=32, learning_rate=1e-4, epochs=1),
    large_learning_rate=5e-5,
    static=None,
)


NOISES: dict[str, Callable[[float], Noise]] = {
    **{"delete": DeleteWords, "swap": SwapWords, "mask": MaskWords, "replace": ReplaceWords, "add": AddWords}
}
"""The paper found deletion best, then swapping, masking, replacing and adding."""


@dataclass(frozen=True)
class TSDAE(MethodOptions):
    """Transformer-based sequential denoising auto-encoder.

    −Σₜ log p(wₜ | w₁…wₜ₋₁, s), s the vector of the sentence with most of its words deleted.

    Wang, Reimers and Gurevych, 2021. arXiv:2104.06979.
    """

    ratio: float = setting(0.6, "share of the words damaged before encoding", minimum=0.0, maximum=1.0)
    noise: Literal["delete", "swap", "mask", "replace", "add"] = setting("delete", "what happens to these words")
    tie: bool = setting(True, "encoder and decoder share their weights, where the architecture allows it")
    decoder_layers: int = setting(0, "layers of a small decoder in place of the encoder's own; 0: none", minimum=0)
    scratch: bool = setting(False, "begin with random weights instead of the base's")
    drop_heads: bool = setting(False, "drop whole heads of the cross-attention, as the authors' code does")
    decoder_dropout: bool = setting(True, "dropout in the decoder, as in the encoder", flags=())

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.drop_heads and not self.decoder_dropout:
            raise SettingsError("drop_heads=True and decoder_dropout=False contradict each other: give one of them")

    def views(self) -> tuple[View, ...]:
        """The damaged sentence, and the whole one."""
        return View(noise=NOISES[self.noise](self.ratio)), View(side="bare")


class DenoisingLearner(Learner):
    """−Σₜ log p(wₜ | w₁…wₜ₋₁, s): s the vector of the damaged sentence (Wang et al. 2021, section 3).

    | | shape | |
    |---|---|---|
    | `views[0]` | n sentences | with most of their words deleted |
    | `views[1]` | the same n | whole |
    | loss | a sum | over the tokens of the whole sentences |

    Examples:
        >>> learner = DenoisingLearner(model, TSDAE(ratio=0.6))
        >>> damaged, whole = pack(model, ["cat mat"]), pack(model, ["the cat sat on the mat"])
        >>> learner([damaged, whole]).count == whole.tokens - 1
        True
    """

    options: TSDAE
    predicts_words = True

    def __init__(self, model: Encoder, options: TSDAE) -> None:
        super().__init__(model, options)
        if options.scratch:
            self.model.forget()
        self.decoder: nn.Module
        if model.whole:
            if options.decoder_layers:
                raise SettingsError("decoder_layers is for encoders alone, and this base has a decoder: leave it out")
            self.decoder = CheckpointDecoder(model, model.whole, options.drop_heads, options.scratch)
        else:
            model.require_head("TSDAE's decoder", hidden=False)
            if not options.decoder_layers and built_like_bert(model):
                self.decoder = TiedDecoder(model, options.tie, options.drop_heads)
            else:
                self.decoder = SmallDecoder(model, options.decoder_layers or 2, options.drop_heads)

    def forward(self, views: Sequence[Packed], labels: Tensor | None = None) -> Loss:
        """The loss of one batch: the damaged sentences are encoded, the whole ones predicted."""
        damaged, whole = views
        start = cast(int | None, self.decoder.start)
        read = whole.without_last() if start is None else whole.shift_right(start)
        s = self.model(damaged)
        with ExitStack() as stack:
            for part in () if self.options.decoder_dropout else (self.model, self.decoder):
                stack.enter_context(without_dropout(part))  # a tied decoder runs the encoder's layers
            states = self.decoder(self.model, s, read)
        own = self.decoder.head if isinstance(self.decoder, CheckpointDecoder) else None
        head = own or self.model.require_head("tsdae", hidden=False)
        return Loss(head_cross_entropy(head, states, read.targets), read.tokens)


TSDAE.method = Method(
    "tsdae",
    TSDAE,
    DenoisingLearner,
    pooling="cls",
    published=Settings(batch_size=8, learning_rate=3e-5, steps=100_000, schedule="constant", warmup=0),
    defaults=Settings(batch_size=32, learning_rate=1e-3, epochs=1),
    large_learning_rate=3e-5,
    static=None,
    presets={"faithful": {"drop_heads": True}},
)
