"""Sentence-transformers directories that may hold a module of selfsent's own."""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path
from typing import Any

from selfsent.files import read_json
from selfsent.foreign.sentence_transformers import load_with
from selfsent.foreign.transformers import silent
from selfsent.models.heads.options import CNN_POOL

_NAMES = ("flow.Flow", "cnn_pool.CnnPool")
GRU = "selfsent.models.heads.gru.Gru"
OWN = (*(f"selfsent.{room}.{name}" for room in ("models.heads", "heads") for name in _NAMES), GRU)
"""The modules that sentence-transformers has nothing like, by the names they are saved with, now and formerly."""
MODEL2VEC = "model2vec"
"""What model2vec's configuration calls its models."""
_FORMER = {
    "cls": "pooling_mode_cls_token",
    "mean": "pooling_mode_mean_tokens",
    "max": "pooling_mode_max_tokens",
    "lasttoken": "pooling_mode_lasttoken",
}
"""What earlier versions of sentence-transformers wrote of a pooling."""


def modules_of(directory: Path) -> dict[str, str]:
    """What the modules of a saved model are, and where they lie, as far as that can be read."""
    try:
        modules = json.loads((directory / "modules.json").read_text(encoding="utf-8"))
        return {module["type"]: module["path"] for module in modules}
    except (OSError, ValueError, TypeError, KeyError, RecursionError):
        return {}


def transformer_place(directory: Path) -> Path:
    """Where the transformer of a model lies: where its first module does, or the model itself is."""
    return directory / next(iter(modules_of(directory).values()), "")


def needs_selfsent(directory: Path) -> bool:
    """Whether a model loads only where selfsent is installed."""
    return not modules_of(directory).keys().isdisjoint(OWN)


def is_static(directory: Path) -> bool:
    """Whether a saved model is a table of token vectors: of sentence-transformers, or as model2vec saves it."""
    kinds = list(modules_of(directory))
    if kinds:
        return kinds[0].endswith(".StaticEmbedding")
    return (directory / "config.json").is_file() and read_json(directory / "config.json").get("model_type") == MODEL2VEC


def is_recurrent(directory: Path) -> bool:
    """Whether a saved model is word vectors with a recurrent network behind them."""
    kinds = list(modules_of(directory))
    words, network = kinds[:2] if len(kinds) > 1 else ("", "")
    return words.endswith(".WordEmbeddings") and (network.endswith(".LSTM") or network == GRU)


def saved_pooling(directory: Path) -> str | None:
    """How a saved model pools, as sentence-transformers of any version calls it, or `cnn-pool`; None if it has none."""
    if is_static(directory):
        return "mean"
    for kind, place in modules_of(directory).items():
        if kind in OWN and kind.endswith(".CnnPool"):
            return CNN_POOL
        if kind.endswith(".Pooling"):
            config = read_json(directory / place / "config.json")
            on = [name for name, key in _FORMER.items() if config.get(key)]
            mode = config.get("pooling_mode", on)
            return mode if isinstance(mode, str) else " and ".join(mode) or None
    return None


def pooling_place(sentence_transformer: Any) -> int | None:
    """Where the only pooling of a model stands; None when there is none, or several."""
    from sentence_transformers.sentence_transformer.modules import Pooling as PoolingModule

    poolings = [
        isinstance(module, PoolingModule) or getattr(module, "pooling_mode", None) == CNN_POOL
        for module in sentence_transformer
    ]
    return poolings.index(True) if sum(poolings) == 1 and not poolings[0] else None


def is_bare_table(directory: Path) -> bool:
    """Whether a base is a table of token vectors, and nothing else."""
    return is_static(directory) and len(modules_of(directory)) == 1


def is_sentence_encoder(directory: Path) -> bool:
    """Whether a base makes sentence vectors that somebody trained: it was saved with a pooling, and by more than `mlm`.

    Runs of masked language modelling, encoders pretrained with it, and new tables have a pooling, too.
    """
    if saved_pooling(directory) is None:
        return False
    asked = read_json(directory.resolve().parent / "run.json").get("asked")
    return not isinstance(asked, dict) or asked.get("method") not in ("mlm", "pretrain", "table")


def is_trained_transformer(directory: Path) -> bool:
    """Whether a base is a sentence encoder, and no table of token vectors."""
    return is_sentence_encoder(directory) and not is_static(directory)


def load_sentence_transformer(directory: str | Path, **options: Any) -> Any:
    """The SentenceTransformer in a local directory; of code beside sentence-transformers', only selfsent's own runs.

    Args:
        directory: where it was saved.
        **options: for its constructor.
    """
    from sentence_transformers import SentenceTransformer

    own = {}
    for name in modules_of(Path(directory)).keys() & set(OWN):
        module, _, kind = name.rpartition(".")
        own[name] = getattr(import_module(module), kind)
    options = {"local_files_only": True, **options}
    with silent():
        model = load_with(str(directory), own, **options) if own else SentenceTransformer(str(directory), **options)
    model.loaded_from = str(directory)  # which a table of token vectors does not tell by itself
    return model
