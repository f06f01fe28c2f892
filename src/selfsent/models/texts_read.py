"""The record of the texts that a model has read: short hashes of sentences, saved beside its weights, and never text.

Whoever examines a model asks it whether texts are among those that it was trained on. A sentence is the unit, as it
is the same whether documents were split or whole, and in columns of their own or joined: only letters and digits are
compared. Where columns were joined, a title without a full stop is one sentence with what follows, so that the ends of
a text's first sentence count as well.

A hash has 32 bits: of n sentences that were read, a share of n ÷ 2³² of all others looks read, too. That is 0.02 % of
a million.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from selfsent.data.corpus.clean import letters_of
from selfsent.data.corpus.sentences import split_texts
from selfsent.errors import BaseEncoderError
from selfsent.files import atomic_file

if TYPE_CHECKING:
    from selfsent.data.corpus import Corpus

FILE = "texts_read.npy"
MOSTLY = 0.5
"""Share of the sentences of a document from which on it counts as read."""
_BATCH = 8192
_MAX_TITLE = 20
"""Maximum length of a title without a full stop, in words."""
_MIN_WORDS = 4
"""Minimum length of the end of a sentence, in words."""

Hashes = NDArray[np.uint32]


@dataclass(frozen=True)
class TextsRead:
    """The sentences that a model has read, as hashes.

    Args:
        hashes: (n,) ascending, each once.

    Examples:
        >>> read = TextsRead.of_texts(["It rains. The street is wet."])
        >>> read.shares(["The street is wet!", "The sun shines."]).tolist()
        [1.0, 0.0]
    """

    hashes: Hashes = field(default_factory=lambda: np.zeros(0, np.uint32))

    @classmethod
    def of_texts(cls, texts: Iterable[str], joined: bool = False) -> TextsRead:
        """The record of these texts.

        Args:
            texts: sentences or documents.
            joined: whether each begins with a title, as columns joined to one do.
        """
        rest, found = iter(texts), [np.zeros(0, np.uint32)]
        while batch := list(islice(rest, _BATCH)):
            found.append(_hash_sentences(batch, joined)[0])
        return cls(np.unique(np.concatenate(found)))

    @classmethod
    def of_corpus(cls, corpus: Corpus, rows: NDArray[np.int64]) -> TextsRead:
        """The record of all text columns of these rows, (n,)."""
        joined = len(corpus.read_columns) > len(corpus.text_columns) and not corpus.report.split
        found = cls()
        for column in corpus.text_columns:
            parts = (corpus.texts(rows[at : at + _BATCH], column) for at in range(0, len(rows), _BATCH))
            found |= cls.of_texts(chain.from_iterable(parts), joined)
        return found

    @classmethod
    def read(cls, directory: Path) -> TextsRead:
        """The record in a model's directory; an empty one if it has none.

        Raises:
            BaseEncoderError: it is damaged.
        """
        path = directory / FILE
        if not path.is_file():
            return cls()
        try:
            hashes = np.load(path, allow_pickle=False)
            if hashes.dtype != np.uint32 or hashes.ndim != 1:
                raise ValueError("no list of hashes")
        except Exception as error:  # numpy reads a header as Python, so damage raises whatever Python's parser does
            problem = f"{path}, the record of what the model has read, is damaged"
            raise BaseEncoderError(f"{problem}: copy the model again, or train it again") from error
        return cls(np.unique(hashes))

    def save(self, directory: Path) -> None:
        """Write the record into a model's directory; nothing if it is empty."""
        if len(self.hashes):
            with atomic_file(directory / FILE) as temporary, temporary.open("wb") as file:
                np.save(file, self.hashes, allow_pickle=False)

    @property
    def line(self) -> str:
        """The record as one line of text, for other files than a model's; see `of_line`."""
        return base64.b64encode(self.hashes.astype("<u4").tobytes()).decode()

    @classmethod
    def of_line(cls, line: str) -> TextsRead:
        """The record in a `line`; an empty one if it is none."""
        try:
            return cls(np.unique(np.frombuffer(base64.b64decode(line, validate=True), "<u4").astype(np.uint32)))
        except ValueError:
            return cls()

    def __bool__(self) -> bool:
        return bool(len(self.hashes))

    def __or__(self, other: TextsRead) -> TextsRead:
        """The record of a model that has read what both have."""
        return TextsRead(np.union1d(self.hashes, other.hashes)) if self and other else self or other

    def of(self, documents: Sequence[str]) -> NDArray[np.bool_]:
        """Whether each document, (n,), was read, for the most part; see `shares`."""
        return self.shares(documents) >= MOSTLY

    def shares(self, documents: Sequence[str]) -> NDArray[np.float64]:
        """The share of each document's sentences, 0 to 1, that was read: (n,).

        Sentences of several documents, such as greetings, say nothing of one: they count where it has no others.

        Args:
            documents: (n,) texts, with or without a title before the first sentence.
        """
        if not self:
            return np.zeros(len(documents))
        hashes, owners, is_whole = _hash_sentences(documents, joined=True)
        known = np.bincount(np.cumsum(is_whole) - 1, np.isin(hashes, self.hashes)) > 0
        owners, count = owners[is_whole], len(documents)
        distinct, sentences = np.unique(hashes[is_whole], return_inverse=True)
        holders = np.bincount(np.unique(owners * len(distinct) + sentences) % max(1, len(distinct)))
        own = holders[sentences] == 1
        own |= np.bincount(owners[own], minlength=count)[owners] == 0
        return np.bincount(owners[own], known[own], count) / np.maximum(1, np.bincount(owners[own], minlength=count))


def _hash_sentences(documents: Sequence[str], joined: bool) -> tuple[Hashes, NDArray[np.int64], NDArray[np.bool_]]:
    """Hash each sentence of documents, and the ends of the first of each if a title may be before it.

    Returns:
        (n,) hashes; the number of the document of each, ascending; and whether it is of a whole sentence, which the
        hashes of its ends follow.
    """
    compared, owners, ends = list[str](), list[int](), list[bool]()
    for number, sentences in enumerate(split_texts(documents)):
        words = sentences[0].split() if joined and sentences else []
        cut = [" ".join(words[start:]) for start in range(1, min(_MAX_TITLE, len(words) - _MIN_WORDS) + 1)]
        parts = [*sentences[:1], *cut, *sentences[1:]]
        compared += parts
        owners += [number] * len(parts)
        ends += [0 < place <= len(cut) for place in range(len(parts))]
    folded = letters_of(compared)
    digests = [hashlib.blake2b(each.encode("utf-8", "replace"), digest_size=4).digest() for each in folded]
    hashes = np.frombuffer(b"".join(digests), "<u4").astype(np.uint32)
    holds = np.array([bool(each) for each in folded], bool)
    return hashes[holds], np.array(owners, np.int64)[holds], ~np.array(ends, bool)[holds]
