"""The poolings and heads that a user can choose, and the options of the heads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, get_args

from selfsent.settings import check_limits, setting

NGRAM_CNN, CNN_POOL = "ngram-cnn", "cnn-pool"
Pooling = Literal["cls", "mean", "max", "lasttoken"]
POOLINGS: tuple[Pooling, ...] = get_args(Pooling)


@dataclass(frozen=True)
class NgramOptions:
    """The n-gram CNN of IS-BERT, between the token states and the pooling (Zhang et al. 2020, section 3.2)."""

    windows: Literal["1,3,5", "3,5,7"] = setting("1,3,5", "tokens that each convolution sees")
    filters: int = setting(256, "channels of each convolution", minimum=1)
    activation: Literal["none", "relu"] = setting("none", "what follows the convolutions")
    masked: bool = setting(True, "padding is zero; if not, a vector depends on its batch, as in the authors' code")

    def __post_init__(self) -> None:
        check_limits(self)


@dataclass(frozen=True)
class CnnPoolOptions:
    """The CNN of CNN-SBERT, in place of the pooling (Choi et al. 2021, figure 2). Its paper leaves the stride open."""

    stride: int = setting(2, "tokens that a max-pool moves on; 1 keeps as many rows as tokens", minimum=1, maximum=2)

    def __post_init__(self) -> None:
        check_limits(self)


HEADS: dict[str, type[Any]] = {NGRAM_CNN: NgramOptions, CNN_POOL: CnnPoolOptions}


def name_of(options: Any) -> str:
    """The name of the head that options belong to."""
    return next(name for name, kind in HEADS.items() if isinstance(options, kind))
