"""What pretraining can be told beside the settings that all training shares."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from selfsent.errors import SettingsError
from selfsent.settings import Settings, check_limits, setting

POSITIONS = 512
"""Positions of the encoder, and so the longest input of its tokenizer."""

Start = Literal["counts", "look", "random"]
Compile = Literal["auto", "on", "off"]
VocabularyKind = Literal["wordpiece", "unigram"]

DEFAULTS = Settings(
    batch_size=32,
    learning_rate=1.5e-3,
    warmup=0.05,
    weight_decay=0.01,
    epsilon=1e-6,
    beta2=0.98,
    max_length=128,
)


@dataclass(frozen=True)
class Shape:
    """How large the encoder is.

    Raises:
        SettingsError: the sizes are out of range or do not fit together.
    """

    layers: int = setting(4, "layers", minimum=1)
    hidden_size: int = setting(256, "width of a token state", minimum=4)
    heads: int = setting(4, "attention heads in a layer", minimum=1)
    feed_forward: int = setting(1024, "width of the feed-forward layers", minimum=1)

    def __post_init__(self) -> None:
        check_limits(self)
        if self.hidden_size % (2 * self.heads):
            raise SettingsError(
                f"--hidden-size {self.hidden_size} with --heads {self.heads}: each head must get an even, whole share"
            )

    @property
    def head_size(self) -> int:
        """Width of a head."""
        return self.hidden_size // self.heads


@dataclass(frozen=True)
class VocabularyOptions:
    """What vocabulary is learned.

    Raises:
        SettingsError: a value is out of range.
    """

    vocabulary_size: int = setting(16_384, "entries of the vocabulary, at most", minimum=32)
    vocabulary_kind: VocabularyKind = setting(
        "wordpiece",
        "wordpiece: pieces of words, as in BERT; unigram: pieces that hold the space before them, as in XLM-R",
    )
    cased: bool = setting(False, "keep upper case, accents and Arabic vowel signs")

    def __post_init__(self) -> None:
        check_limits(self)


@dataclass(frozen=True)
class Options(VocabularyOptions):
    """Options of pretraining.

    Raises:
        SettingsError: a value is out of range.
    """

    ratio: float = setting(0.2, "share of the tokens to predict", above=0.0, maximum=0.9)
    start: Start = setting(
        "counts",
        "starting weights; counts: word vectors by counting neighbours, look: a first layer that looks at neighbours",
    )
    embedding_rate: float | None = setting(
        None,
        "rate of the embedding tables, as a share of the learning rate (default: 0.05 with --start counts, else 1)",
        above=0.0,
        maximum=1.0,
    )
    held_out: float = setting(0.01, "share of the text that is never trained on", above=0.0, maximum=0.3)
    compile: Compile = setting("auto", "compile the encoder with torch.compile; auto: on CUDA")
    half: bool = setting(True, "save the model in half precision")

    def compiles(self, device: str) -> bool:
        """Whether the encoder is compiled on this device."""
        return self.compile == "on" or (self.compile == "auto" and device.startswith("cuda"))

    @property
    def share_for_embeddings(self) -> float:
        """The rate of the embedding tables, as a share of the learning rate."""
        if self.embedding_rate is not None:
            return self.embedding_rate
        return 0.05 if self.start == "counts" else 1.0


@dataclass(frozen=True)
class TableOptions(VocabularyOptions):
    """Options of a new table.

    Raises:
        SettingsError: a value is out of range.
    """

    size: int = setting(256, "numbers in a vector", minimum=2)
    seed: int = setting(0, "seed of the random numbers that the vectors begin as", minimum=0, maximum=2**31 - 1)
