"""The encoder that vectors are made with, by its name."""

from __future__ import annotations

import os

from selfsent.errors import SettingsError
from selfsent.models.encoder import Encoder
from selfsent.models.loading import load_encoder
from selfsent.models.precision import inference_device
from selfsent.naming import name_of


def opened(model: Encoder | str | os.PathLike[str]) -> Encoder:
    """An encoder as it is; or the one in a directory, of a run or of that name, where there is a GPU on it.

    Raises:
        BaseEncoderError: there is none of that name.
        SettingsError: it is something else.
    """
    named = name_of(model)
    if isinstance(named, str):
        return load_encoder(named).to(inference_device()).eval()
    if not isinstance(named, Encoder):
        raise SettingsError(f"{type(named).__name__} is no encoder of selfsent: give the directory that it lies in")
    return named
