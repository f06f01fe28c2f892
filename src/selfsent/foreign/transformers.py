"""Private names of transformers."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, cast

from selfsent.foreign.compat import lookup, warn_missing

PACKED = (
    *("albert", "bert", "distilbert", "electra", "gpt2", "llama", "modernbert", "mistral", "qwen2", "qwen3"),
    *("roberta", "xlm-roberta"),
)
"""Architectures known to run packed; one that does not is reported."""


@contextmanager
def silent() -> Iterator[None]:
    """Context without transformers' progress bars and warnings of missing weights."""
    from transformers.utils import logging

    before, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(before)
        if bars:
            logging.enable_progress_bar()


def is_conv1d(layer: Any) -> bool:
    """Whether a layer is GPT-2's linear layer, with weights of shape (in, out).

    Its module is not imported here: without it no layer can be one, and the import takes half a second.
    """
    home = sys.modules.get("transformers.pytorch_utils")
    return home is not None and type(layer) is home.Conv1D


def attention_of(config: Any) -> str | None:
    """The name of a model's attention implementation."""
    return cast(str | None, lookup("transformers", config, "_attn_implementation", "attention cannot be put back"))


def set_attention(config: Any, name: str) -> None:
    """Choose the attention of a part of a model that is built from a configuration."""
    config._attn_implementation = name


def set_backend(tokenizer: Any, backend: Any) -> None:
    """Let a fast tokenizer read with this one of `tokenizers`."""
    tokenizer._tokenizer = backend


def has_masked_language_model(config: Any) -> bool:
    """Whether transformers has a masked language model of a configuration's architecture."""
    from transformers import AutoModelForMaskedLM

    known = lookup("transformers", AutoModelForMaskedLM, "_model_mapping", "bases are taken to predict hidden words")
    return known is None or type(config) in known


def not_packed(kind: str) -> None:
    """Report that an architecture no longer runs packed."""
    if kind in PACKED:
        warn_missing("transformers", f"packed {kind}", "it runs padded, which is slower, and has no tied decoder")
