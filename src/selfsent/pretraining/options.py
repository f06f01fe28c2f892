"""Options of new encoders and tables, next to the settings that all training shares."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from selfsent.errors import SettingsError
from selfsent.settings import Settings, check_limits, setting

VocabularyKind = Literal["wordpiece", "unigram"]

DEFAULTS = Settings(
    batch_size=32, learning_rate=1.5e-3, warmup=0.05, weight_decay=0.01, epsilon=1e-6, beta2=0.98, max_length=128
)


@dataclass(frozen=True)
class VocabularyOptions:
    """Options of a new vocabulary.

    Raises:
        SettingsError: a value is out of range.
    """

    vocabulary_size: int = setting(16_384, "entries of the vocabulary, at most", minimum=32)
    vocabulary_kind: VocabularyKind = setting(
        "wordpiece", "wordpiece: pieces of words, as in BERT; unigram: pieces with the space before them, as in XLM-R"
    )
    cased: bool = setting(False, "keep upper case, accents and Arabic vowel signs")

    def __post_init__(self) -> None:
        check_limits(self)


@dataclass(frozen=True)
class Options(VocabularyOptions):
    """Options of pretraining.

    Raises:
        SettingsError: a value is out of range, or the sizes do not fit together.
    """

    layers: int = setting(4, "layers", minimum=1)
    hidden_size: int = setting(256, "width of a token state", minimum=4)
    heads: int = setting(4, "attention heads in a layer", minimum=1)
    feed_forward: int = setting(1024, "width of the feed-forward layers", minimum=1)
    ratio: float = setting(0.2, "share of the tokens to predict", above=0.0, maximum=0.9)
    span: int = setting(
        8, "maximum number of neighbouring sentences of a document that are read as one text", minimum=1
    )
    embedding_rate: float = setting(0.05, "rate of the embeddings, as a share of the learning rate", minimum=0.0)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.hidden_size % (2 * self.heads):
            raise SettingsError(f"heads={self.heads} must share hidden_size={self.hidden_size} in even, whole parts")
        if self.heads < 2:
            raise SettingsError("the start from counts keeps the width of one head for positions: give heads=2 or more")


@dataclass(frozen=True)
class TableOptions(VocabularyOptions):
    """Options of a new table.

    Raises:
        SettingsError: a value is out of range.
    """

    size: int = setting(256, "numbers in a vector", minimum=2)
    seed: int = setting(0, "seed of the initial vectors", minimum=0, maximum=2**31 - 1)
