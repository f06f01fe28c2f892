"""What is usual where the user says nothing: a base for a method, and settings and whitening for a kind of base."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from selfsent.errors import BaseEncoderError, SettingsError
from selfsent.methods import Method
from selfsent.methods.method import NEW_STATIC, STATIC
from selfsent.models.bases import BUNDLED, ENCODER, RAW, resolve
from selfsent.models.encoder import Pooling
from selfsent.models.saved import is_bare_table, is_recurrent, is_sentence_encoder, is_static
from selfsent.settings import Settings

LARGE = 15_000_000
"""Parameters from which an encoder counts as large: its default learning rate is the smaller one."""


def usual_settings(method: Method, base: str | Path) -> Settings:
    """The settings where nothing is said, for a kind of base.

    Raises:
        SettingsError: the method cannot train a table of token vectors, and the base is one.
    """
    directory = resolve(base)
    if not is_static(directory):
        # Without labels, what is a sentence encoder already has something to lose at the larger rates (docs/log).
        knows = not method.supervised and is_sentence_encoder(directory)
        # Large networks want small rates where they were pretrained, which recurrent ones never are.
        small = is_recurrent(directory) or (_parameters(directory) <= LARGE and not knows)
        return method.defaults if small else method.defaults.but(learning_rate=method.large_learning_rate)
    if method.static is None:
        raise SettingsError(
            f"{method.name} needs a transformer, and {base} is a table of token vectors: give another --base, such as"
            f" {RAW}, or leave it out"
        )
    is_new = method.static is STATIC and not is_sentence_encoder(directory)
    return NEW_STATIC if is_new else method.static


def usual_base(
    method: Method, told: Mapping[str, Any], head: str | None, pooling: Pooling | None, dropout: float | None
) -> str:
    """The base where nobody named one: the best that ships with selfsent and that the method can train so.

    A table of token vectors if that will do, else a transformer, and one with a head for words if these are predicted.

    Args:
        method: what is to be learned.
        told: options and settings that were given.
        head: name of a head that was asked for.
        pooling: that was asked for.
        dropout: that was asked for.

    Raises:
        SettingsError: an option is out of range.
    """
    own = {item.name for item in dataclasses.fields(method.options)}
    options = method.options(**{name: value for name, value in told.items() if name in own})
    if method.default_base is not None:
        return method.default_base
    if method.learner.predicts_words:
        return RAW
    plain = head is None and pooling in (None, "mean") and not dropout
    return BUNDLED if plain and method.static is not None and options.suits_static else ENCODER


def usual_whitening(method: Method, base: str | Path) -> float:
    """The strength of the whitening at the end, from a base that makes good vectors already."""
    return method.static_whiten if is_bare_table(resolve(base)) else 0.0


def _parameters(directory: Path) -> int:
    """Roughly how many parameters the weights in a directory hold, by the header of the safetensors files alone."""
    from safetensors import SafetensorError, safe_open

    total = 0
    for file in directory.rglob("*.safetensors"):
        try:
            with safe_open(str(file), framework="numpy") as tensors:
                total += sum(math.prod(tensors.get_slice(name).get_shape()) for name in tensors.keys())  # noqa: SIM118 — not a dict
        except SafetensorError as error:
            raise BaseEncoderError(f"{file} is damaged ({error}): fetch or save the model again") from None
    return total
