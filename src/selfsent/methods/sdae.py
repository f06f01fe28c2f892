"""SDAE: rebuild a sentence, word by word, from the last state of a network that read it damaged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from torch import Tensor, nn

from selfsent.data.views import DeleteWords, InTurn, MaskWords, SwapPairs, View
from selfsent.fast.packing import Packed
from selfsent.methods.losses import linear_cross_entropy
from selfsent.methods.method import STATIC, Learner, Loss, Method
from selfsent.models.decoders.recurrent import Reads, RecurrentDecoder
from selfsent.models.encoder import Encoder
from selfsent.settings import Settings, check_limits, setting

READS = "where the decoder reads the sentence vector: at all steps, as its first state (start), or both"
DECODER_SIZE = "numbers in a state of the decoder; 0: as many as in a sentence vector"


@dataclass(frozen=True)
class Options:
    """Options of SDAE."""

    lose: float = setting(0.1, "share of the words that are lost, the paper's p_o", minimum=0.0, maximum=1.0)
    swap: float = setting(0.1, "share of the pairs of words that are swapped, its p_x", minimum=0.0, maximum=1.0)
    lost: Literal["deleted", "masked"] = setting("deleted", "what becomes of words that are lost")
    decoder_size: int = setting(0, DECODER_SIZE, minimum=0)
    reads: Reads = setting("both", READS)

    def __post_init__(self) -> None:
        check_limits(self)


class SequentialDenoisingLearner(Learner):
    """−Σₜ log softmax(V hₜ)_wₜ, hₜ = GRU(wₜ₋₁, s, hₜ₋₁): s the vector of the damaged sentence (Hill et al. 2016, 2.1).

    V has an output vector for each entry of the vocabulary. The decoder reads the word vectors of the encoder.

    | | shape | |
    |---|---|---|
    | `views[0]` | n sentences | some words lost, some pairs of words swapped |
    | `views[1]` | the same n | whole |
    | loss | a sum | over the tokens of the whole sentences |

    Raises:
        SettingsError: words are to be masked, and the tokenizer has no mask token.

    Example:
        >>> learner = SequentialDenoisingLearner(model, Options())
        >>> damaged, whole = pack(model, ["cat sat the on"]), pack(model, ["the cat sat on"])
        >>> learner([damaged, whole]).count == whole.tokens - 1
        True
    """

    options: Options

    def __init__(self, model: Encoder, options: Options) -> None:
        super().__init__(model, options)
        self.decoder = RecurrentDecoder(model, options.decoder_size, options.reads)
        self.output = nn.Linear(self.decoder.size, model.vocabulary_size)

    def forward(self, views: Sequence[Packed], labels: Tensor | None = None) -> Loss:
        """The loss of one batch: the damaged sentences are encoded, the whole ones predicted."""
        damaged, whole = views
        read = self.decoder.reading(whole)
        states = self.decoder(self.model, self.model(damaged), read)
        return Loss(linear_cross_entropy(states, self.output.weight, self.output.bias, read.targets), read.tokens)


def views(options: Options) -> tuple[View, ...]:
    """A damaged sentence, and the whole one."""
    lost = DeleteWords(options.lose) if options.lost == "deleted" else MaskWords(options.lose)
    return View(noise=InTurn((lost, SwapPairs(options.swap)))), View()


SDAE = Method(
    name="sdae",
    title="Sequential denoising auto-encoder",
    citation="Hill, Cho and Korhonen, 2016. arXiv:1602.03483",
    objective="−Σₜ log softmax(V hₜ)_wₜ, hₜ = GRU(wₜ₋₁, s, hₜ₋₁), s the vector of the damaged sentence",
    learner=SequentialDenoisingLearner,
    options=Options,
    views=views,
    batchwise=False,
    pooling="lasttoken",
    # The published code passes Adam a rate of 0.01, which it does not read: 0.0002 stands in it.
    published=Settings(
        batch_size=16, learning_rate=2e-4, epochs=1, schedule="constant", warmup=0, clip=2.0, max_length=100
    ),
    defaults=Settings(batch_size=64, learning_rate=2e-4, epochs=1, max_length=64),
    large_learning_rate=3e-5,
    static=STATIC,
    usual_base="gru",
    presets={"faithful": {"lost": "masked"}},
)
