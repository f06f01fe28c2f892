"""Untrained bases, made when they are named: transformers and random static embeddings."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from selfsent.errors import BaseEncoderError, first_line
from selfsent.files import atomic_directory, cache_folder, write_json
from selfsent.integrity import checksum, embed_checksum, find_damaged, warn_damaged

POSITIONS = 512
"""Positions of a new transformer, and so the longest input of its tokenizer."""
SPECIAL = ("cls", "sep", "pad", "mask")
"""The special tokens that a transformer reads."""
TABLE = "random-table"
TRANSFORMERS = ("bert", "albert")
SIZES = {TABLE: "256", "bert": "4x256", "albert": "4x256"}
"""The kinds, and their default sizes."""
_LARGEST = 16_384
_HEAD = 64
_NAME = re.compile(rf"({'|'.join(SIZES)})(?::(\d+(?:x\d+)?))?(?::(.+))?", re.DOTALL)
_VERSION = 1
"""Version of the initial weights; raise it when they change."""


@dataclass(frozen=True)
class NewBase:
    """A base made by its name: `KIND`, `KIND:SIZE`, `KIND:SOURCE` or `KIND:SIZE:SOURCE`.

    Args:
        kind: `random-table`, `bert` or `albert`.
        size: width of a state or of a static embedding.
        source: for a transformer, the encoder that gives the vocabulary. Empty for the vocabulary of `bundled-raw`.
        layers: of a transformer (its SIZE is LAYERSxWIDTH, such as 12x768); else 1.
    """

    kind: str
    size: int
    source: str = ""
    layers: int = 1

    @classmethod
    def named(cls, name: str) -> NewBase | None:
        """Parse a name; None for the name of anything else.

        Raises:
            BaseEncoderError: the size is out of range, or random static embeddings are to have a source.
        """
        found = _NAME.fullmatch(name)
        if not found:
            return None
        kind, source = found[1], found[3] or ""
        *layers, size = map(int, (found[2] or SIZES[kind]).split("x"))
        fits = (kind in TRANSFORMERS) == bool(layers) and all(1 <= number <= _LARGEST for number in (*layers, size))
        if not fits or (layers and size % _HEAD):
            shape = f"of {' and '.join(TRANSFORMERS)} LAYERSxWIDTH, the width a multiple of {_HEAD}"
            raise BaseEncoderError(f"{name}: the size is a number of 1 to {_LARGEST}, and {shape}")
        if kind == TABLE and source:
            raise BaseEncoderError(f"{name}: {TABLE} has random vectors, and takes a size alone, as in {TABLE}:100")
        return cls(kind, size, source, *layers)


def make_base(base: NewBase, resolve: Callable[[str], Path]) -> Path:
    """The directory of an untrained base, in the cache; it is made the first time.

    Args:
        base: its parsed name.
        resolve: gives the directory of a base.

    Raises:
        BaseEncoderError: there is no vocabulary.
        OutputError: the cache cannot be written.
    """
    source = resolve(base.source or "bundled-raw")
    if base.kind in TRANSFORMERS:
        tokenizer = load_tokenizer(source)
        width, heads = base.size, base.size // _HEAD
        shape = {"num_hidden_layers": base.layers, "hidden_size": width, "num_attention_heads": heads}
        shape["intermediate_size"] = 4 * width

        def write(folder: Path) -> None:
            new_language_model(base.kind, tokenizer, **shape).save_pretrained(folder)
            tokenizer.save_pretrained(folder)

        return in_cache((_VERSION, base.kind, shape, tokenizer_digest(tokenizer)), write)
    from selfsent.models.static import new_table

    key = _VERSION, base.kind, base.size, checksum(source / "tokenizer.json")
    return in_cache(key, lambda folder: new_table(load_tokenizer(source).backend_tokenizer, base.size).save(folder))


def in_cache(key: tuple[Any, ...], write: Callable[[Path], None]) -> Path:
    """The directory of an untrained base in the cache.

    Args:
        key: everything that it depends on.
        write: writes it into a folder, the first time.
    """
    path = cache_folder() / "recurrent" / hashlib.blake2b(repr(key).encode(), digest_size=8).hexdigest()
    cached = (path / "run.json").is_file()
    if cached and find_damaged(path):
        warn_damaged(path)
        cached = False
    if not cached:
        with atomic_directory(path) as folder:
            write(folder / "model")
            embed_checksum(folder / "model")
            # As of an untrained table: it is no sentence encoder yet.
            write_json(folder / "run.json", {"config": {"method": "table"}, "status": "finished"})
    return path / "model"


def load_tokenizer(directory: Path, special: Sequence[str] = SPECIAL) -> Any:
    """The tokenizer of an encoder, for a new one.

    Args:
        directory: of the encoder.
        special: the special tokens it must have.

    Raises:
        BaseEncoderError: the tokenizer is missing, or lacks one of them.
    """
    from transformers import AutoTokenizer

    try:
        tokenizer = AutoTokenizer.from_pretrained(directory, local_files_only=True, trust_remote_code=False)
    except (OSError, ValueError, KeyError, ImportError) as error:
        raise BaseEncoderError(f"{directory} has no tokenizer that can be loaded: {first_line(error)}") from None
    if not getattr(tokenizer, "is_fast", False):
        raise BaseEncoderError(f"{directory} has no fast tokenizer: choose another encoder")
    for kind in special:
        if getattr(tokenizer, f"{kind}_token_id") is None:
            raise BaseEncoderError(f"the tokenizer of {directory} has no {kind} token: choose another encoder")
    tokenizer.model_max_length = POSITIONS
    return tokenizer


def tokenizer_digest(tokenizer: Any) -> str:
    """A short digest of a tokenizer."""
    return hashlib.sha256(tokenizer.backend_tokenizer.to_str().encode()).hexdigest()[:16]


def new_language_model(kind: str, tokenizer: Any, seed: int = 0, **shape: int) -> Any:
    """A transformer with a masked-language-model head and random weights.

    Args:
        kind: `bert` or `albert`.
        tokenizer: its tokenizer.
        seed: of the random numbers.
        **shape: `num_hidden_layers`, `hidden_size`, `num_attention_heads` and `intermediate_size`.
    """
    import torch
    from transformers import AutoConfig, AutoModelForMaskedLM

    own = {"vocab_size": len(tokenizer), "max_position_embeddings": POSITIONS, "pad_token_id": tokenizer.pad_token_id}
    config = AutoConfig.for_model(kind, **own, **shape)
    with torch.random.fork_rng([]):
        torch.manual_seed(seed)
        return AutoModelForMaskedLM.from_config(config)
