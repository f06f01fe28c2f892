"""Data sets from the hub or its cache."""

from __future__ import annotations

from functools import cache
from typing import Any

from selfsent.data.corpus.remote import require_hub
from selfsent.errors import CorpusError, DataError, first_line, install


@cache
def hub_reachable() -> bool:
    """Whether the hub responds, checked once, to avoid waiting for retries without a network."""
    from huggingface_hub import constants

    try:
        require_hub("")
    except CorpusError:
        return False
    return not constants.HF_HUB_OFFLINE


def from_hub(name: str, config: str | None, split: str | None = None) -> Any:
    """The rows of a data set from the hub or its cache; without a split, the rows of all splits by name.

    Offline, only the cache is used.

    Args:
        name: its id.
        config: one of its configurations; None for the only one.
        split: one of its splits.

    Raises:
        DataError: unavailable.
    """
    try:
        import datasets
    except ImportError as error:
        raise DataError(f"the hub needs datasets: {install('hub')}") from error
    from huggingface_hub import constants

    before = datasets.config.HF_HUB_OFFLINE, constants.HF_HUB_OFFLINE
    if not hub_reachable():
        datasets.config.HF_HUB_OFFLINE = constants.HF_HUB_OFFLINE = True
    try:
        return datasets.load_dataset(name, config, split=split)
    except Exception as error:  # many kinds, with pages of text
        missing = "cannot be reached and its cache lacks it"
        why = f"does not provide it: {first_line(error)}" if hub_reachable() else missing
        raise DataError(f"the hub {why}") from error
    finally:
        datasets.config.HF_HUB_OFFLINE, constants.HF_HUB_OFFLINE = before
