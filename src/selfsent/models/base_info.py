"""Properties of a base encoder, read from its directory once for a run."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open

from selfsent.errors import BaseEncoderError
from selfsent.models.bases import resolve, weights_digest, weights_of
from selfsent.models.dropout import rate_of
from selfsent.models.loading import load_encoder, read_config
from selfsent.models.saved import modules_of, pooling_among, starts_with_table, was_pretrained_only


@dataclass(frozen=True)
class BaseInfo:
    """A base encoder: its directory and its properties as files have them.

    Args:
        name: name given by the user; see `selfsent.models.bases.resolve`.
        directory: local directory, which was checked to be safe to load.
        modules: class and subfolder of each module; empty for a plain transformer.
        is_static: whether it is a table of static embeddings.
        pooling: name of the pooling; None without one.
        is_sentence_encoder: whether it was trained to make sentence vectors.

    Examples:
        >>> info = BaseInfo.read("bundled")
        >>> info.is_static, info.pooling, info.is_sentence_encoder
        (True, 'mean', True)
    """

    name: str
    directory: Path
    modules: tuple[tuple[str, str], ...]
    is_static: bool
    pooling: str | None
    is_sentence_encoder: bool

    @classmethod
    def read(cls, base: str | Path) -> BaseInfo:
        """Resolve a name, and read the properties.

        Raises:
            BaseEncoderError: there is no such base, or it is not safe to load.
        """
        directory = resolve(base)
        modules = modules_of(directory)
        static = starts_with_table(directory, modules)
        pooling = "mean" if static else pooling_among(directory, modules)
        trained = pooling is not None and not was_pretrained_only(directory)
        return cls(str(base), directory, tuple(modules), static, pooling, trained)

    @property
    def is_bare_table(self) -> bool:
        """Whether it is a table of static embeddings without modules after it."""
        return self.is_static and len(self.modules) == 1

    @property
    def is_trained_transformer(self) -> bool:
        """Whether it is a sentence encoder other than a table of static embeddings."""
        return self.is_sentence_encoder and not self.is_static

    @cached_property
    def config(self) -> Any:
        """Configuration of the transformer; None for a table.

        Raises:
            BaseEncoderError: it cannot be read.
        """
        return None if self.is_static else read_config(self.name, self.directory)

    @property
    def kind(self) -> str:
        """Architecture, by transformers' `model_type`; `static` for a table of static embeddings."""
        return "static" if self.is_static else str(self.config.model_type)

    @property
    def dropout_rate(self) -> float:
        """The largest dropout rate of the transformer; 0 for a table."""
        return rate_of(self.config)

    @cached_property
    def digest(self) -> str:
        """Short digest of the weights."""
        return weights_digest(self.directory)

    @cached_property
    def parameters(self) -> int:
        """Number of parameters, according to the headers of the safetensors files.

        Raises:
            BaseEncoderError: a file is damaged.
        """
        total = 0
        for file in weights_of(self.directory):
            try:
                with safe_open(str(file), framework="numpy") as tensors:
                    total += sum(math.prod(tensors.get_slice(name).get_shape()) for name in tensors.keys())  # noqa: SIM118 — not a dict
            except SafetensorError as error:
                raise BaseEncoderError(f"{file} is damaged ({error}): fetch or save the model again") from None
        return total

    @cached_property
    def mean_row_length(self) -> float:
        """Mean norm of the rows of a table of static embeddings."""
        return float(load_encoder(self.directory).words.weight.detach().norm(dim=1).mean())
