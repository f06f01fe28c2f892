"""TSDAE: rebuild a sentence, word by word, from the one vector of its damaged copy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Literal, cast

from torch import Tensor, nn

from selfsent.data.packed import Packed
from selfsent.data.views.noise import AddWords, DeleteWords, MaskWords, Noise, ReplaceWords, SwapWords
from selfsent.data.views.view import View
from selfsent.errors import SettingsError
from selfsent.fast.filled_rows import filled
from selfsent.methods.losses import linear_cross_entropy
from selfsent.methods.method import Learner, Loss, Method, MethodOptions
from selfsent.models.decoders.transformer import SmallDecoder, TiedDecoder, built_like_bert
from selfsent.models.dropout import without_dropout
from selfsent.models.encoder import Encoder
from selfsent.settings import Settings, setting

NOISES: dict[str, Callable[[float], Noise]] = {
    "delete": DeleteWords,
    "swap": SwapWords,
    "mask": MaskWords,
    "replace": ReplaceWords,
    "add": AddWords,
}
"""The paper found deletion best, then swapping, masking, replacing and adding."""


@dataclass(frozen=True)
class TSDAE(MethodOptions):
    """Options of TSDAE."""

    ratio: float = setting(0.6, "share of the words damaged before encoding", minimum=0.0, maximum=1.0)
    noise: Literal["delete", "swap", "mask", "replace", "add"] = setting("delete", "what happens to these words")
    tie: bool = setting(True, "encoder and decoder share their weights, where the architecture allows it")
    decoder_layers: int = setting(0, "layers of a small decoder in place of the encoder's own; 0: none", minimum=0)
    scratch: bool = setting(False, "begin with random weights instead of the base's")
    drop_heads: bool = setting(False, "drop whole heads of the cross-attention, as the authors' code does")
    decoder_dropout: bool = setting(True, "drop out in the decoder, too, as the encoder does")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.drop_heads and not self.decoder_dropout:
            raise SettingsError("--drop-heads and --no-decoder-dropout contradict each other: give one of them")

    def views(self) -> tuple[View, ...]:
        """The damaged sentence, and the whole one."""
        return View(noise=NOISES[self.noise](self.ratio)), View()

    @property
    def predicts_words(self) -> bool:
        """It does nothing else."""
        return True


def _decoder_for(model: Encoder, options: TSDAE) -> nn.Module:
    """The decoder that goes with an encoder: like the encoder, or a small one."""
    model.require_head("TSDAE's decoder", hidden=False)
    if not options.decoder_layers and built_like_bert(model):
        return TiedDecoder(model, options.tie, options.drop_heads)
    return SmallDecoder(model, options.decoder_layers or 2, options.drop_heads)


class DenoisingLearner(Learner):
    """−Σₜ log p(wₜ | w₁…wₜ₋₁, s): s the vector of the damaged sentence (Wang et al. 2021, equation 1).

    | | shape | |
    |---|---|---|
    | `views[0]` | n sentences | with most of their words deleted |
    | `views[1]` | the same n | whole |
    | loss | a sum | over the tokens of the whole sentences |

    Example:
        >>> learner = DenoisingLearner(model, TSDAE(ratio=0.6))
        >>> damaged, whole = pack(model, ["cat mat"]), pack(model, ["the cat sat on the mat"])
        >>> learner([damaged, whole]).count == whole.tokens - 1
        True
    """

    options: TSDAE

    def __init__(self, model: Encoder, options: TSDAE) -> None:
        super().__init__(model, options)
        if options.scratch:
            self.model.forget()
        self.decoder = _decoder_for(model, options)

    @property
    def paths(self) -> dict[str, str]:
        """Which decoder it is, too."""
        return {**super().paths, "decoder": type(self.decoder).__name__}

    def forward(self, views: Sequence[Packed], labels: Tensor | None = None) -> Loss:
        """The loss of one batch: the damaged sentences are encoded, the whole ones predicted."""
        damaged, whole = views
        head = self.model.require_head("tsdae", hidden=False)
        start = cast(int | None, self.decoder.start)
        read = whole.without_last() if start is None else whole.shift_right(start)
        vectors = self.model(damaged)
        with ExitStack() as still:
            if not self.options.decoder_dropout:
                for part in (self.model, self.decoder):  # a tied decoder runs the encoder's layers
                    still.enter_context(without_dropout(part))
            states = self.decoder(self.model, vectors, read)
        total = linear_cross_entropy(head(filled(states)), head.output.weight, head.output.bias, read.targets)
        return Loss(total, read.tokens)


TSDAE.method = Method(
    name="tsdae",
    title="Transformer-based sequential denoising auto-encoder",
    citation="Wang, Reimers and Gurevych, 2021. arXiv:2104.06979",
    objective="−Σₜ log p(wₜ | w₁…wₜ₋₁, s), s the vector of the sentence with most of its words deleted",
    learner=DenoisingLearner,
    options=TSDAE,
    pooling="cls",
    published=Settings(batch_size=8, learning_rate=3e-5, steps=100_000, schedule="constant", warmup=0),
    defaults=Settings(batch_size=32, learning_rate=1e-3, epochs=1),
    large_learning_rate=3e-5,
    static=None,
    presets={"faithful": {"drop_heads": True}},
)
