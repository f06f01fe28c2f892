"""Blocks: sentences one behind the other, cut into rows of equal length, as BERT is pretrained on them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from selfsent.data.corpus import Corpus
from selfsent.data.random import make_key
from selfsent.data.token_table import TokenTable
from selfsent.data.views.noise import MaskTokens
from selfsent.data.views.tokens import Template, Tokens
from selfsent.errors import CorpusError
from selfsent.fast.packing import IGNORED

_MOST_HELD_OUT = 1_000_000
"""Tokens held out at most, however large the corpus."""
_STRETCH = 32
"""Sentences in a row that are held out together where the corpus has no documents."""


class Blocks:
    """The sentences of a token table as one stream, a separator behind each, in rows of equal length.

    Nothing is copied: a block is put together when it is asked for. What is left at the end of the stream is dropped.

    Args:
        table: the tokens of the corpus.
        sentences: (sentences,) rows of the table, in order.
        length: tokens in a block.
        separator: id of the token between sentences.
    """

    def __init__(self, table: TokenTable, sentences: np.ndarray, length: int, separator: int) -> None:
        self._table, self._length, self._separator = table, length, separator
        lengths = table.lengths(sentences)
        filled = lengths > 0
        self._ends = np.cumsum(lengths[filled] + 1)
        # From a place in the stream to the place of the same token in the table.
        self._shift = table.offsets[sentences[filled] + 1] + 1 - self._ends
        self._blocks = int(self._ends[-1]) // length if len(self._ends) else 0

    def __len__(self) -> int:
        return self._blocks

    def lengths(self, rows: np.ndarray) -> np.ndarray:
        """(chosen,) tokens of the blocks at `rows`, (chosen,): all the same."""
        return np.full(len(rows), self._length, dtype=np.int64)

    def __getitem__(self, rows: np.ndarray) -> Tokens:
        """The blocks at `rows`, (chosen,), in that order."""
        places = (np.asarray(rows, dtype=np.int64)[:, None] * self._length + np.arange(self._length)).ravel()
        sentence = np.searchsorted(self._ends, places, side="right")
        between = places + 1 == self._ends[sentence]
        index = np.where(between, 0, places + self._shift[sentence])
        ids = np.where(between, self._separator, self._table.ids[index])
        starts = self._table.word_starts[index] | between
        return Tokens(ids.astype(np.int64), self.lengths(rows), starts, np.asarray(rows))


@dataclass(frozen=True)
class MaskBlocks(MaskTokens):
    """BERT's masking, which leaves separators and unknown tokens alone: they are neither damaged nor predicted."""

    def __call__(self, tokens: Tokens, key: int, template: Template) -> Tokens:
        """Mask tokens of every block, and set the targets."""
        masked = super().__call__(tokens, key, template)
        spared = ~template.ordinary[tokens.ids]
        ids = np.where(spared, tokens.ids, masked.ids)
        targets = None if masked.targets is None else np.where(spared, IGNORED, masked.targets)
        return Tokens(ids, tokens.lengths, tokens.word_starts, tokens.rows, targets)


def block_template(template: Template) -> Template:
    """What stands around a block: the first of the special tokens in front, and nothing behind."""
    return Template(template.prefix[:1], (), template.mask, template.ordinary)


def split(corpus: Corpus, table: TokenTable, share: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Sentences to train on and sentences held out, both in order: whole documents, or stretches where there are none.

    Args:
        corpus: the corpus.
        table: its tokens.
        share: share of the tokens to hold out; of a huge corpus it is less.
        seed: decides which.

    Raises:
        CorpusError: there is too little text to hold out any.
    """
    count = len(corpus)
    stretch = max(1, min(_STRETCH, count // 200))
    unit = np.arange(count) // stretch if corpus.documents is None else np.asarray(corpus.documents)
    lengths = table.lengths(np.arange(count)) + 1
    sizes = np.bincount(unit, weights=lengths)
    order = np.random.Generator(np.random.Philox(make_key(seed, 1))).permutation(len(sizes))
    wanted = min(share * sizes.sum(), _MOST_HELD_OUT)
    chosen = order[: int(np.searchsorted(np.cumsum(sizes[order]), wanted)) + 1]
    held = np.isin(unit, chosen)
    if sizes[chosen].sum() > 0.5 * sizes.sum():
        raise CorpusError(f"{corpus.source}: too few documents to hold one out; give more text")
    return np.flatnonzero(~held), np.flatnonzero(held)
