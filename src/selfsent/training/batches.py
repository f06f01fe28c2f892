"""Which sentences share a batch, and how they look in it: a pure function of seed and step."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache

import numpy as np

from selfsent.distributed import rank, world_size
from selfsent.packing import Packed
from selfsent.settings import Settings
from selfsent.training.tokens import TokenTable
from selfsent.views import Template, View
from selfsent.views.noise import make_key

_CHUNK, _TOKENS = 4096, 8192
"""Sentences read, and tokens packed, at a time where every sentence is read once."""


class Batches:
    """The batches of a run, by step. Nothing is drawn from a running state, so any step can be asked for, in any order.

    Sentences are drawn at random, without replacement within an epoch; the last, incomplete batch of an epoch is
    left out. Batches of similar length would save nothing, because packed batches hold no padding, and would weigh
    short sentences more.

    Args:
        tables: the token table of each text column.
        rows: (sentences,) corpus rows to train on.
        views: what the method reads.
        template: the tokenizer's special tokens.
        settings: batch size, seed, accumulation and maximum length.
    """

    def __init__(
        self,
        tables: Sequence[TokenTable],
        rows: np.ndarray,
        views: Sequence[View],
        template: Template,
        settings: Settings,
    ) -> None:
        self.tables, self.rows, self.views, self.template, self.settings = tables, rows, views, template, settings
        self.steps_per_epoch = max(1, len(rows) // settings.batch_size)
        self._order = lru_cache(maxsize=1)(self._order_of)

    def _order_of(self, epoch: int) -> np.ndarray:
        generator = np.random.Generator(np.random.Philox(make_key(self.settings.seed, epoch, 0)))
        dtype = np.int32 if len(self.rows) < 2**31 else np.int64
        return generator.permutation(np.arange(len(self.rows), dtype=dtype))

    def rows_at(self, step: int) -> np.ndarray:
        """(batch,) corpus rows of the batch of a step, over all processes."""
        epoch, place = divmod(step, self.steps_per_epoch)
        size = self.settings.batch_size
        chosen: np.ndarray = self.rows[self._order(epoch)[place * size : (place + 1) * size]]
        return chosen

    def views_of(self, rows: np.ndarray, epoch: int, device: str = "cpu") -> list[Packed]:
        """Every view of the sentences at `rows`, damaged as in the given epoch."""
        packed = []
        for number, view in enumerate(self.views):
            key = make_key(self.settings.seed, epoch, 1 + number)
            chosen = rows if view.partners is None else view.partners(rows, key, self.rows)
            tokens = self.tables[view.column][chosen]
            if view.noise is not None:
                tokens = view.noise(tokens, key, self.template)
            packed.append(self.template.pack(tokens, self.settings.max_length).to(device))
        return packed

    def once(self, device: str = "cpu", told: Callable[[int], None] = lambda count: None) -> Iterator[list[Packed]]:
        """Every sentence once, undamaged, one packed batch a text column: this process' share, in random order.

        Args:
            device: where the batches are wanted.
            told: is told how many sentences, over all processes, were read since it was last told.
        """
        columns = sorted({view.column for view in self.views})
        order = self._order(0)
        for begin in range(_CHUNK * rank(), len(order), _CHUNK * world_size()):
            chunk = self.rows[order[begin : begin + _CHUNK]]
            ends = np.cumsum(np.max([self.tables[column][chunk].lengths for column in columns], axis=0))
            for rows in np.split(chunk, np.searchsorted(ends, np.arange(_TOKENS, ends[-1], _TOKENS))):
                if len(rows):
                    tokens = [self.tables[column][rows] for column in columns]
                    yield [self.template.pack(each, self.settings.max_length).to(device) for each in tokens]
            told(min(_CHUNK * world_size(), len(order) - begin + _CHUNK * rank()))

    def micro_batches(self, step: int, device: str = "cpu") -> Iterator[list[Packed]]:
        """This process' part of a step's batch, cut into as many micro-batches as gradients are accumulated over."""
        parts = np.array_split(self.rows_at(step), world_size() * self.settings.accumulate)
        for part in parts[rank() :: world_size()]:
            yield self.views_of(part, step // self.steps_per_epoch, device)
