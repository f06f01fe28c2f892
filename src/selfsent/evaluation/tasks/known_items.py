"""Known-item search in a corpus of one's own: nobody judged it, but the corpus says which text belongs to which query.

In documents the first sentence, the title where there is one, must find the rest. In pairs one text must find its
partner. Search is over all texts, and the vector of a text is that of the whole, as `search` encodes it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from selfsent.display import counted
from selfsent.errors import DataError
from selfsent.evaluation.stats.duplicates import connected, near_duplicates
from selfsent.evaluation.tasks.partners import Rows
from selfsent.evaluation.tasks.retrieval import RetrievalTask

SEARCH_NAME = "search"
MOST = 10_000
"""Texts of a corpus of pairs that are searched; those that are answers are always among them."""
_TITLE = 4
"""Words of a first sentence that its rest may repeat, as texts repeat their titles; of a longer one it is a copy."""


class Pairs(Protocol):
    """What is asked of a corpus of pairs."""

    view_columns: tuple[str, ...]

    def __len__(self) -> int:
        """Number of pairs."""

    def texts(self, rows: Any = None, column: str | None = None) -> list[str]:
        """The texts of a column in these rows."""


class KnownItemTask(RetrievalTask):
    """Queries whose answers are known by where they stand; queries that share an answer are drawn together.

    Args:
        relation: what a query has to find, in words.
        texts: (n,) texts that are searched.
        answers: for each query the places of its answers.

    Raises:
        DataError: no query has an answer, or there are fewer than two texts.
    """

    def __init__(self, relation: str, texts: Sequence[str], answers: Mapping[str, set[int]]) -> None:
        count = len(answers)
        asked = np.repeat(np.arange(count), [len(places) for places in answers.values()])
        found = [count + place for places in answers.values() for place in places]
        groups = connected(asked, found, count + len(texts))[:count]
        grades = [dict.fromkeys(places, 1.0) for places in answers.values()]
        super().__init__(SEARCH_NAME, [*answers], texts, grades, groups=groups)
        self.asked = f"{relation}: {counted(count, 'query', 'queries')} among {counted(len(texts), 'text')}"
        """What is asked, in words."""


def first_finds_rest(documents: Sequence[Sequence[str]]) -> KnownItemTask:
    """The first sentence of each document must find the rest of it, as one text, among the rests of all.

    Of rests that are nearly the same one is searched. A first sentence without words is not asked, nor one that its
    own rest repeats word for word, unless it is as short as a title.

    Args:
        documents: the sentences of each.

    Raises:
        DataError: fewer than two documents have a rest.
    """
    long = [document for document in documents if len(document) > 1]
    rests = [" ".join(rest) for _, *rest in long]
    if not long:
        raise DataError(f"{SEARCH_NAME}: no document has two sentences")
    one, other = near_duplicates(rests).nonzero()
    _, kept, place = np.unique(connected(one, other, len(rests)), return_index=True, return_inverse=True)
    answers: dict[str, set[int]] = {}
    for (first, *_), rest, answer in zip(long, rests, place.tolist(), strict=True):
        words = _words(first)
        copied = len(words) > _TITLE and f" {' '.join(words)} " in f" {' '.join(_words(rest))} "
        if words and not copied:
            answers.setdefault(first, set()).add(answer)
    relation = "the first sentence of a document finds the rest of it"
    return KnownItemTask(relation, [rests[row] for row in kept], answers)


def text_finds_partner(pairs: Pairs, rows: Rows) -> KnownItemTask:
    """The first text of each of these rows must find its partners, among the second texts of all rows.

    Args:
        pairs: rows of two texts or more.
        rows: those to ask for. The texts of the other rows are searched, too, up to MOST.

    Raises:
        DataError: there are fewer than two different partners.
    """
    one, other = pairs.view_columns[:2]
    beside = np.random.default_rng(0).permutation(np.setdiff1d(np.arange(len(pairs)), rows))[:MOST]
    partners = pairs.texts(rows, other)
    place = {text: number for number, text in enumerate(dict.fromkeys([*partners, *pairs.texts(beside, other)]))}
    answers: dict[str, set[int]] = {}
    for query, partner in zip(pairs.texts(rows, one), partners, strict=True):
        if query not in place:  # it would find itself
            answers.setdefault(query, set()).add(place[partner])
    texts = [*place][: max(MOST, len(set(partners)))]
    return KnownItemTask(f"a text of “{one}” finds its “{other}”", texts, answers)


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.casefold())
