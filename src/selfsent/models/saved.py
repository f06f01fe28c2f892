"""Properties of a saved model, read from its directory, and loading it with selfsent's own modules."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from selfsent import extensions
from selfsent.files import read_json
from selfsent.foreign.sentence_transformers import load_with
from selfsent.foreign.transformers import silent
from selfsent.models.heads.options import CNN_POOL
from selfsent.models.weights import require_weights
from selfsent.run_record import read_record

CUSTOM = {
    f"selfsent.{room}.{name}": name for room in ("models.heads", "heads") for name in ("flow.Flow", "cnn_pool.CnnPool")
}
"""The modules that sentence-transformers lacks: the names in saved models, of this and earlier versions."""
_FORMER_POOLINGS = {"cls": "cls_token", "mean": "mean_tokens", "max": "max_tokens", "lasttoken": "lasttoken"}
"""Ends of the keys `pooling_mode_` that earlier versions of sentence-transformers wrote for a pooling."""


def modules_of(directory: Path) -> list[tuple[str, str]]:
    """Class and subfolder of each module of a saved model; empty where `modules.json` is missing or unreadable."""
    try:
        modules = json.loads((directory / "modules.json").read_text(encoding="utf-8"))
        return [(str(module["type"]), str(module["path"])) for module in modules]
    except (OSError, ValueError, TypeError, KeyError, RecursionError):
        return []


def needs_selfsent(directory: Path) -> bool:
    """Whether a model loads only where selfsent is installed."""
    return any(kind in CUSTOM for kind, _ in modules_of(directory))


def transformer_folder(directory: Path) -> Path:
    """Where the transformer of a saved model is."""
    modules = modules_of(directory)
    return directory / modules[0][1] if modules else directory


def adapter_config(directory: Path) -> dict[str, Any] | None:
    """The configuration of a saved model's PEFT adapter, whose base is elsewhere; None where the model is whole."""
    return read_json(transformer_folder(directory) / "adapter_config.json") or None


def is_static(directory: Path) -> bool:
    """Whether a saved model is a table of static embeddings, as sentence-transformers or model2vec saves it."""
    return starts_with_table(directory, modules_of(directory))


def starts_with_table(directory: Path, modules: Sequence[tuple[str, str]]) -> bool:
    """Whether the first of a saved model's modules is a table of static embeddings."""
    if modules:
        return modules[0][0].endswith(".StaticEmbedding")
    return read_json(directory / "config.json").get("model_type") == "model2vec"


def saved_pooling(directory: Path) -> str | None:
    """The pooling of a saved model, in the words of sentence-transformers, or `cnn-pool`; None if it has none."""
    modules = modules_of(directory)
    return "mean" if starts_with_table(directory, modules) else pooling_among(directory, modules)


def pooling_among(directory: Path, modules: Sequence[tuple[str, str]]) -> str | None:
    """The pooling among the modules of a saved model; None without one."""
    for kind, path in modules:
        if CUSTOM.get(kind) == "cnn_pool.CnnPool":
            return CNN_POOL
        if kind.endswith(".Pooling"):
            config = read_json(directory / path / "config.json")
            former = [name for name, end in _FORMER_POOLINGS.items() if config.get(f"pooling_mode_{end}")]
            mode = config.get("pooling_mode", former)
            return mode if isinstance(mode, str) else " and ".join(mode) or None
    return None


def is_bare_table(directory: Path) -> bool:
    """Whether a base is a table of static embeddings with no module after it."""
    return is_static(directory) and len(modules_of(directory)) == 1


def is_sentence_encoder(directory: Path) -> bool:
    """Whether a base was trained to make sentence vectors: it has a pooling, and more than `mlm` trained it.

    Runs of masked language modelling, encoders pretrained with it, and new tables have a pooling, too.
    """
    return saved_pooling(directory) is not None and not was_pretrained_only(directory)


def was_pretrained_only(directory: Path) -> bool:
    """Whether the run that made a model is one of masked language modelling, or made an untrained table."""
    return read_record(directory.resolve().parent).config.get("method") in ("mlm", "pretrain", "table")


def is_trained_transformer(directory: Path) -> bool:
    """Whether a base is a sentence encoder, and no table of static embeddings."""
    return is_sentence_encoder(directory) and not is_static(directory)


def is_cross_encoder(directory: Path) -> bool:
    """Whether a directory holds a CrossEncoder of sentence-transformers, of any version."""
    if (directory / "modules.json").exists():
        return read_json(directory / "config_sentence_transformers.json").get("model_type") == "CrossEncoder"
    architectures = read_json(directory / "config.json").get("architectures") or [""]
    return str(architectures[0]).endswith("ForSequenceClassification")


def register_architecture(config: Mapping[str, Any]) -> None:
    """Let transformers know the architecture of a saved model, where an extension has it.

    Args:
        config: of the model, `config.json`.
    """
    if (kind := str(config.get("model_type"))) in extensions.announced("architectures"):
        extensions.load("architectures", kind)


def load_sentence_transformer(directory: str | Path, **options: Any) -> Any:
    """The SentenceTransformer in a local directory; no code runs but sentence-transformers' and selfsent's own.

    Args:
        directory: the saved model.
        **options: for its constructor.

    Raises:
        BaseEncoderError: weights are missing, which would be drawn at random.
    """
    from sentence_transformers import SentenceTransformer

    register_architecture(read_json(transformer_folder(Path(directory)) / "config.json"))
    custom = {}
    for kind, _ in modules_of(Path(directory)):
        if kind in CUSTOM:
            module, name = CUSTOM[kind].split(".")
            custom[kind] = getattr(import_module(f"selfsent.models.heads.{module}"), name)
    options = {"local_files_only": True, **options}
    with silent():
        if custom:
            model = load_with(str(directory), custom, **options)
        else:
            model = SentenceTransformer(str(directory), **options)
    require_weights(model, directory)
    model.loaded_from = str(directory)  # static embeddings do not keep it themselves
    return model
