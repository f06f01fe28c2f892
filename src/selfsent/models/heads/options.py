"""The poolings and heads a user can choose between transformer and sentence vector, and the heads' options."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from selfsent.errors import SettingsError
from selfsent.settings import check_limits, setting

NGRAM_CNN, CNN_POOL = "ngram-cnn", "cnn-pool"
POOLINGS = ("cls", "mean", "max", "lasttoken")


@dataclass(frozen=True)
class NgramOptions:
    """The n-gram CNN of IS-BERT, between the token states and the pooling (Zhang et al. 2020, section 3.1)."""

    windows: Literal["1,3,5", "3,5,7"] = setting("1,3,5", "tokens that each convolution sees")
    filters: int = setting(256, "channels of each convolution", minimum=1)
    activation: Literal["none", "relu"] = setting("none", "what follows the convolutions")
    masked: bool = setting(
        True, "padding counts as zero; if not, a vector depends on its batch, as in the authors' code"
    )

    def __post_init__(self) -> None:
        check_limits(self)


@dataclass(frozen=True)
class CnnPoolOptions:
    """The CNN of CNN-SBERT, in place of the pooling (Choi et al. 2021, figure 1). Its paper leaves these three open."""

    stride: int = setting(2, "tokens that a max-pool moves on; 1 keeps as many rows as tokens", minimum=1, maximum=2)
    masked: bool = setting(
        True, "padding is left out; if not, its states are read too, and a vector depends on its batch"
    )
    length: int = setting(
        0, "tokens every sentence is padded to where padding is read; 0: as long as the batch", minimum=0
    )

    def __post_init__(self) -> None:
        check_limits(self)
        if self.length and self.masked:
            raise SettingsError("--length is what sentences are padded to, and padding is left out: give --no-masked")


HEADS: dict[str, type[Any]] = {NGRAM_CNN: NgramOptions, CNN_POOL: CnnPoolOptions}


def name_of(options: Any) -> str:
    """The name of the head that options belong to."""
    return next(name for name, kind in HEADS.items() if isinstance(options, kind))
