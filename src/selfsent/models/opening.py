"""An encoder for encoding: a table without torch, any other as it is trained."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from selfsent.errors import BaseEncoderError, SelfsentError, SettingsError, first_line
from selfsent.models.bases import resolve
from selfsent.models.search_file import tell_search
from selfsent.models.table import Table, check_tokenizer
from selfsent.naming import name_of

if TYPE_CHECKING:
    from selfsent.models.encoding import Model


def open_encoder(model: Any) -> Model:
    """The given encoder, or the one of that name, on a GPU if it has layers and there is one.

    Args:
        model: an encoder; or a name or directory, as for `resolve`.

    Raises:
        BaseEncoderError: no encoder of that name.
        SettingsError: neither an encoder nor a name.
    """
    named = name_of(model)
    if not isinstance(named, str):
        if not is_encoder(named):
            raise SettingsError(f"{type(named).__name__} is no encoder of selfsent: give its directory")
        found: Model = named
        return found
    if (table := open_table(named)) is not None:
        return table
    from selfsent.models.loading import load_encoder
    from selfsent.models.precision import inference_device

    return load_encoder(named).to(inference_device()).eval()


def open_table(base: str | os.PathLike[str]) -> Table | None:
    """The table of that name, without torch; None for an encoder that needs torch.

    Raises:
        BaseEncoderError: no encoder of that name, or a damaged one.
    """
    directory = resolve(base)
    try:
        table = Table.read(directory)
        if table is not None:
            check_tokenizer(base, table.tokenizer, table.vocabulary_size)
    except SelfsentError:
        raise
    except Exception as error:  # libraries raise anything over a damaged file
        raise BaseEncoderError(f"{base} cannot be loaded as an encoder: {first_line(error)}") from error
    if table is not None:
        tell_search(table, directory, base)
    return table


def is_encoder(model: Any) -> bool:
    """Whether this is an encoder of selfsent."""
    if isinstance(model, Table):
        return True
    from selfsent.models.encoder import Encoder

    return isinstance(model, Encoder)
