"""The flag `--fast` of the commands that encode."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from selfsent.corpus import Corpus
    from selfsent.encoder import Encoder


def add_fast_option(parser: argparse.ArgumentParser) -> None:
    """Add the flag."""
    parser.add_argument(
        "--fast", action="store_true", help="compute in bfloat16 where the processor has it (cosine to float32: 0.999)"
    )


def load(options: argparse.Namespace, corpus: Corpus) -> Encoder:
    """The encoder `options.model`, ready to be run: on a GPU where there is one, and in bfloat16 where asked for.

    A notice says so where it can hardly read the corpus.
    """
    import numpy as np

    from selfsent.cli.console import notice
    from selfsent.encoder import into_bfloat16, load_encoder
    from selfsent.encoding import LOOKED_AT, complaint_of_unknown
    from selfsent.training.precision import inference_device

    quick = fast(options)
    model = load_encoder(options.model).to(inference_device())
    if line := complaint_of_unknown(model, corpus.texts(np.arange(min(len(corpus), LOOKED_AT)))):
        notice(line)
    return into_bfloat16(model) if quick else model


def fast(options: argparse.Namespace) -> bool:
    """Whether to compute in bfloat16: asked for, and no loss on this processor; else a notice says why not."""
    from selfsent.cli.console import notice
    from selfsent.training.precision import computes_bfloat16, inference_device

    if options.fast and not computes_bfloat16(inference_device()):
        notice("--fast: this processor does not compute bfloat16, float32 is faster on it and is used")
        return False
    return bool(options.fast)
