"""Parts of one document find each other: its title and the rest (`title`), its first half and its second (`halves`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from selfsent.errors import DataError
from selfsent.evaluation.tasks.partners import LEAST, PartnerTask

Documents = Sequence[Sequence[str]]

LEAST_SENTENCES = {"title": 2, "halves": 4}
"""A document of two sentences would make `halves` the same as `context`."""


def title_task(documents: Documents) -> PartnerTask:
    """The first sentence of each document, which is its title where it has one, must find the rest of it.

    Raises:
        DataError: too few documents have a rest.
    """
    return _task("title", documents, lambda size: 1)


def halves_task(documents: Documents) -> PartnerTask:
    """The first half of each document's sentences must find the second half.

    Raises:
        DataError: too few documents are long enough.
    """
    return _task("halves", documents, lambda size: size // 2)


def _task(name: str, documents: Documents, cut: Callable[[int], int]) -> PartnerTask:
    long = [document for document in documents if len(document) >= LEAST_SENTENCES[name]]
    if len(long) < LEAST:
        raise DataError(f"{name} needs {LEAST} documents of {LEAST_SENTENCES[name]} sentences or more")
    place = np.arange(len(long))
    first = [document[: cut(len(document))] for document in long]
    rest = [document[cut(len(document)) :] for document in long]
    return PartnerTask(name, first, rest, place, place)
