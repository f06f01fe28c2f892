"""Private names of transformers."""

from __future__ import annotations

import re
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


def has_masked_language_model(config: Any) -> bool:
    """Whether transformers has a masked language model of a configuration's architecture."""
    from transformers import AutoModelForMaskedLM

    known = lookup("transformers", AutoModelForMaskedLM, "_model_mapping", "bases are taken to predict hidden words")
    return known is None or type(config) in known


def not_packed(kind: str) -> None:
    """Report that an architecture no longer runs packed."""
    if kind in PACKED:
        warn_missing("transformers", f"packed {kind}", "it runs padded, which is slower, and has no tied decoder")


def forget_adapter(model: Any) -> None:
    """Undo what a model keeps of an adapter that is no longer in it: it is saved whole again.

    Loading an adapter also leaves the names of its weights, which saving would give to all weights.
    """
    del model.peft_config
    model._hf_peft_config_loaded = False
    vars(model).pop("_weight_conversions", None)


def drawn_at_random(model: Any) -> list[tuple[Any, list[str], bool]]:
    """The models of transformers in a module, the weights that no file gave each of them, and whether those are all.

    A pooler counts where something reads it: a classifier, or a module that says so.
    """
    from transformers import PreTrainedModel

    modules = dict(model.named_modules())
    reads = " ".join(str(getattr(module, "modality_config", "")) for module in modules.values())
    inside, found = tuple[str, ...](), list[tuple[Any, list[str], bool]]()
    for path, part in modules.items():
        if not isinstance(part, PreTrainedModel) or path.startswith(inside):
            continue
        inside = (*inside, f"{path}." if path else "")
        optional = [*(part._keys_to_ignore_on_load_missing or ())]
        if "pooler" not in reads and not type(part).__name__.endswith("ForSequenceClassification"):
            optional.append(r"(^|\.)pooler\.")
        weights = dict(part.named_parameters())
        missing = [name for name, weight in weights.items() if not getattr(weight, "_is_hf_initialized", False)]
        needed = [name for name in missing if not any(re.search(pattern, name) for pattern in optional)]
        found.append((part, needed, len(missing) == len(weights)))
    return found


def tell_unmarked() -> None:
    """Report that this transformers does not mark the weights that it has read."""
    warn_missing("transformers", "mark of weights that were read", "missing weights are not found out")


def adapter_weights(model: Any) -> list[str]:
    """Names of the weights of the adapters in a model."""
    return [name for name, _ in model.named_parameters() if "lora_" in name]
