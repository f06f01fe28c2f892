"""The batches of training, a pure function of seed and step."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from selfsent.data.packed import Packed
from selfsent.data.random import make_key
from selfsent.data.token_table import TokenTable
from selfsent.data.views.positives import Documents
from selfsent.data.views.tokens import Template, Tokens
from selfsent.data.views.view import View
from selfsent.distributed import rank, world_size
from selfsent.files import output_errors
from selfsent.progress import Counter
from selfsent.settings import Precision, Settings

_READ = 1 << 20
"""Token ids read at a time where all of them are."""
_PASSAGES = 1 << 32
"""Third part of the key of passages, after seed and epoch."""


TeacherVectors = Callable[[int, str, Precision], Sequence[np.ndarray]]
"""From a text column, a device and a precision to (corpus rows, d) vectors, of each teacher."""


@dataclass(frozen=True, eq=False)
class Lead:
    """Prompt before the texts of some views.

    Args:
        ids: (n,) token ids before each text.
        left_out: leading tokens that the pooling leaves out, special tokens included.
        tables: by column, the tokens of texts behind the prompt, where they are others than of the texts alone.
    """

    ids: np.ndarray
    left_out: int = 0
    tables: Mapping[int, TokenTable] = field(default_factory=dict)


@dataclass(eq=False)
class Batches:
    """The batches of a run, by step. Nothing is drawn from a running state, so steps are available in any order.

    Sentences are drawn at random, without replacement within an epoch; the last, incomplete batch of an epoch is
    left out. Batches of similar length would save nothing, because packed batches hold no padding, and would weigh
    short sentences more.
    """

    tables: Sequence[TokenTable]
    """The token table of each text column."""
    rows: np.ndarray
    """(sentences,) corpus rows to train on."""
    views: Sequence[View]
    template: Template
    """The tokenizer's special tokens."""
    settings: Settings
    """Batch size, seed, accumulation and maximum length."""
    on_read: Counter = lambda count: None
    """Called in a single pass with the number of sentences read since the last call, over all processes."""
    labels: np.ndarray | None = None
    """(corpus rows,) classes or scores of all rows of the corpus; None if the method needs none."""
    documents: Documents | None = None
    """The documents of all rows of the corpus, for views that read passages."""
    separate_documents: bool = True
    """Whether batches carry the document of each sentence, so that none is a negative within it."""
    mined: np.ndarray | None = None
    """(corpus rows, k) the row of each mined candidate, for views that read them."""
    teacher_vectors: TeacherVectors | None = None
    """Gives the vectors of frozen teachers, if they are cached."""
    leads: Mapping[str, Lead] = field(default_factory=dict)
    """The prompts of views by their side."""
    chunk_size: int = 4096
    """Sentences read at a time in a single pass."""
    chunk_tokens: int = 8192
    """Tokens packed at a time in a single pass."""

    def __post_init__(self) -> None:
        self.steps_per_epoch = max(1, len(self.rows) // self.settings.batch_size)
        self._vectors: dict[int, Sequence[np.ndarray]] = {}
        self._order = lru_cache(maxsize=1)(self._order_of)

    def _order_of(self, epoch: int) -> np.ndarray:
        generator = np.random.Generator(np.random.Philox(make_key(self.settings.seed, epoch, 0)))
        dtype = np.int32 if len(self.rows) < 2**31 else np.int64
        return np.asarray(generator.permutation(np.arange(len(self.rows), dtype=dtype)))

    def rows_at(self, step: int) -> np.ndarray:
        """(batch,) corpus rows of the batch of a step, over all processes."""
        epoch, index = divmod(step, self.steps_per_epoch)
        size = self.settings.batch_size
        return np.asarray(self.rows[self._order(epoch)[index * size : (index + 1) * size]])

    def views_of(self, rows: np.ndarray, epoch: int, device: str = "cpu") -> list[Packed]:
        """Every view of the sentences at `rows`, damaged as in the given epoch."""
        packed, asked = [], self._asked(rows, epoch)
        for number, view in enumerate(self.views):
            key = make_key(self.settings.seed, epoch, 1 + number)
            wanted = rows if view.mined is None or self.mined is None else self.mined[asked, view.mined]
            if view.passage is not None and self.documents is not None:
                read, counts = view.passage(wanted, self._passages_key(epoch), self.documents)
                tokens = self._tokens(view, read, np.cumsum(counts) - counts).joined(wanted, counts)
            else:
                tokens = self._tokens(view, wanted if view.sampler is None else view.sampler(rows, key, self.rows))
            if view.noise is not None:
                tokens = view.noise(tokens, key, self.template)
            packed.append(self._pack(tokens, view, device))
        return packed

    def _tokens(self, view: View, rows: np.ndarray, first: np.ndarray | None = None) -> Tokens:
        """The tokens of `rows`, (m,), of which those at `first` follow the view's prompt; None for all of them."""
        lead = self.leads.get(view.side)
        behind = lead.tables.get(view.column) if lead else None
        if behind is None:
            return self.tables[view.column][rows]
        return behind[rows] if first is None else self.tables[view.column][rows].with_first(first, behind[rows[first]])

    def _asked(self, rows: np.ndarray, epoch: int) -> np.ndarray:
        """(chosen,) the corpus rows whose candidates go with the first view of `rows`, which may be their title."""
        passage = self.views[0].passage
        if self.mined is None or passage is None or self.documents is None:
            return rows
        read, counts = passage(rows, self._passages_key(epoch), self.documents)
        return np.asarray(read[np.cumsum(counts) - counts])

    def _passages_key(self, epoch: int) -> int:
        """One key for all views, so that their passages are drawn together."""
        return make_key(self.settings.seed, epoch, _PASSAGES)

    def token_ids(self) -> np.ndarray | None:
        """(ids,) the token ids that batches may hold, ascending; None where noise draws others."""
        if any(view.noise is not None for view in self.views):
            return None
        leads = self.leads.values()
        fixed = [*self.template.prefix, *self.template.suffix, *self.template.between]
        held = np.zeros(len(self.template.ordinary), np.bool_)
        for ids in (np.array(fixed, np.int64), *(lead.ids for lead in leads)):
            held[ids] = True
        for table in (*self.tables, *(table for lead in leads for table in lead.tables.values())):
            for begin in range(0, len(table.ids), _READ):
                held[table.ids[begin : begin + _READ]] = True
        return np.flatnonzero(held)

    def lengths(self) -> Iterator[np.ndarray]:
        """(chosen,) lengths in tokens before truncation, special tokens included, in chunks of sentences.

        The longest passage of the first epoch where views read passages of several sentences, else the first text
        column.
        """
        passages = [(view.passage, view.column) for view in self.views if view.passage and view.passage.length_option]
        special = len(self.template.prefix) + len(self.template.suffix)
        special += max((len(lead.ids) for lead in self.leads.values()), default=0)
        for begin in range(0, len(self.rows), self.chunk_size):
            rows = self.rows[begin : begin + self.chunk_size]
            found = [] if passages else [self.tables[0].lengths(rows)]
            for passage, column in passages:
                assert self.documents is not None
                read, counts = passage(rows, self._passages_key(0), self.documents)
                found.append(np.add.reduceat(self.tables[column].lengths(read), np.cumsum(counts) - counts))
            yield np.max(found, axis=0) + special

    def labels_of(self, rows: np.ndarray, device: str = "cpu") -> Tensor | None:
        """(chosen,) labels of the corpus rows `rows`, (chosen,): int64 classes or float32 scores; None without any."""
        return None if self.labels is None else torch.from_numpy(self.labels[rows]).to(device)

    def _packed(self, tokens: Tokens, view: View) -> Packed:
        """Sentences with the view's prompt and special tokens, cut to the maximum length."""
        longest, lead = self.settings.max_length, self.leads.get(view.side)
        packed = self.template.pack(tokens if lead is None else tokens.after(lead.ids), longest)
        if lead is not None:  # the same text behind another prompt, or none, is no negative
            packed.given_texts = self.template.pack(tokens, longest - len(lead.ids)).texts.numpy()
        if any(lead.left_out for lead in self.leads.values()):
            packed.given_left_out = np.full(len(packed), 0 if lead is None else lead.left_out)
        return packed

    def _pack(self, tokens: Tokens, view: View, device: str) -> Packed:
        longest = self.settings.max_length
        if view.second_column is not None:
            return self.template.pack_pairs(tokens, self.tables[view.second_column][tokens.rows], longest).to(device)
        packed = self._packed(tokens, view)
        if self.documents is not None and self.separate_documents:
            packed.given_documents = self.documents.numbers[tokens.rows]
        if view.precomputed and view.column in self._vectors:
            parts = [vectors[tokens.rows] for vectors in self._vectors[view.column]]
            packed.vectors = torch.from_numpy(np.concatenate(parts, axis=1, dtype=np.float32))
        return packed.to(device)

    def single_pass(self, device: str = "cpu", most: int | None = None) -> Iterator[list[Packed]]:
        """Every sentence once, undamaged, one packed batch a text column: this process' share, in random order.

        Args:
            device: of the batches.
            most: sentences of all processes together that are enough; the same ones on any number of processes.
        """
        views = [view for _, view in sorted({view.column: view for view in reversed(self.views)}.items())]
        for rows in self._parts(rank(), world_size(), most):
            yield [self._pack(self._tokens(view, rows), view, device) for view in views]

    def _parts(self, first: int, every: int, most: int | None = None) -> Iterator[np.ndarray]:
        """All rows, some thousand tokens at a time, in random order: chunk `first` and every `every`th from there."""
        columns, order = sorted({view.column for view in self.views}), self._order(0)[:most]
        report = (lambda count: None) if self._vectors else self.on_read  # else counted twice
        size = self.chunk_size
        for begin in range(size * first, len(order), size * every):
            chunk = self.rows[order[begin : begin + size]]
            ends = np.cumsum(np.max([self.tables[column][chunk].lengths for column in columns], axis=0))
            cuts = np.searchsorted(ends, np.arange(self.chunk_tokens, ends[-1], self.chunk_tokens))
            yield from (rows for rows in np.split(chunk, cuts) if len(rows))
            report(min(size * every, len(order) - begin + size * first))
        if len(order) < len(self.rows):
            report(len(self.rows) - len(order))

    def precompute(
        self, features: Callable[[Packed], Tensor], folder: Path, device: str = "cpu", precision: Precision = "float32"
    ) -> None:
        """Encode every sentence once on every process, or take cached vectors, for views that are precomputed.

        Args:
            features: makes (sentences, d) vectors of a batch, if none are cached.
            folder: of these vectors during the run, in a file without a name.
            device: of the batches.
            precision: of cached vectors.
        """
        for column, view in sorted({view.column: view for view in self.views if view.precomputed}.items()):
            if self.teacher_vectors is not None:
                self._vectors[column] = self.teacher_vectors(column, device, precision)
                continue
            for rows in self._parts(0, 1):
                packed = self._packed(self._tokens(view, rows), view)
                vectors = features(packed.to(device)).float().cpu().numpy()
                if column not in self._vectors:
                    shape = int(self.rows.max()) + 1, vectors.shape[1]
                    with output_errors(folder), tempfile.TemporaryFile(dir=folder) as file:
                        # Allocated now: writing a map to a full disk kills the process without an error.
                        if hasattr(os, "posix_fallocate"):
                            os.posix_fallocate(file.fileno(), 0, 4 * shape[0] * shape[1])
                        self._vectors[column] = [np.memmap(file, np.float32, "w+", shape=shape)]
                self._vectors[column][0][rows] = vectors

    def micro_batches(self, step: int, device: str = "cpu") -> Iterator[tuple[list[Packed], Tensor | None]]:
        """This process' part of a step's batch, cut into as many micro-batches as gradients are accumulated over.

        Each comes as its views and its labels.
        """
        parts = np.array_split(self.rows_at(step), world_size() * self.settings.accumulate)
        for part in parts[rank() :: world_size()]:
            epoch = step // self.steps_per_epoch
            yield self.views_of(part, epoch, device), self.labels_of(self._asked(part, epoch), device)
