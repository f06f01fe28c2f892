"""Search settings in the directory of an encoder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from selfsent.errors import BaseEncoderError
from selfsent.files import read_json
from selfsent.lexical.hybrid import LARGEST, SEARCH_FILE


def tell_search(model: Any, directory: Path, base: object) -> None:
    """Give an encoder the weight of words, the sizes and the space that its directory says.

    Raises:
        BaseEncoderError: the weight is no number in range.
    """
    if not (directory / SEARCH_FILE).is_file():
        return
    about = read_json(directory / SEARCH_FILE)
    weight = about.get("lexical_weight")
    if not isinstance(weight, int | float) or not 0 <= weight <= LARGEST:
        raise BaseEncoderError(f"{base}: {SEARCH_FILE} must say lexical_weight, a number of 0 to {LARGEST:,}")
    model.lexical_weight = float(weight)
    model.sizes, model.space = tuple(map(int, about.get("sizes", ()))), str(about.get("space", ""))
