"""The flag `--fast` of the commands that encode."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from selfsent.encoder import Encoder


def add_fast_option(parser: argparse.ArgumentParser) -> None:
    """Add the flag."""
    parser.add_argument(
        "--fast", action="store_true", help="compute in bfloat16 where the processor has it (cosine to float32: 0.999)"
    )


def load(options: argparse.Namespace) -> Encoder:
    """The encoder `options.model`, ready to be run: on a GPU where there is one, and in bfloat16 where asked for."""
    from selfsent.encoder import into_bfloat16, load_encoder
    from selfsent.training.precision import inference_device

    quick = fast(options)
    model = load_encoder(options.model).to(inference_device())
    return into_bfloat16(model) if quick else model


def fast(options: argparse.Namespace) -> bool:
    """Whether to compute in bfloat16: asked for, and no loss on this processor; else a notice says why not."""
    from selfsent.cli.console import notice
    from selfsent.training.precision import computes_bfloat16, inference_device

    if options.fast and not computes_bfloat16(inference_device()):
        notice("--fast: this processor does not compute bfloat16, float32 is faster on it and is used")
        return False
    return bool(options.fast)
