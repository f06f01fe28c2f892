"""From batches of raw rows to the table on disk: clean, split, number documents, drop duplicates, write."""

from __future__ import annotations

import dataclasses
import hashlib
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from itertools import compress
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from selfsent.data.corpus.batch import Batch, Columns
from selfsent.data.corpus.clean import LONGEST_TEXT, clean, letters
from selfsent.data.corpus.cleaners import Cleaners, look
from selfsent.data.corpus.duplicates import KeySet, NearDuplicates, hash_keys
from selfsent.data.corpus.sentences import split_sentences
from selfsent.data.corpus.sources import Source
from selfsent.data.corpus.streams import fail
from selfsent.data.corpus.table import TABLE, Corpus, CorpusReport
from selfsent.data.corpus.writer import ArrayFile, OriginsFile, TableFile, describe, digest_file, write_labels

Integers = NDArray[np.int64]


def build_table(
    source: Source,
    directory: Path,
    split: bool,
    banned: Corpus | None,
    cleaners: Cleaners,
    near: NearDuplicates | None,
) -> str:
    """Write the whole corpus into an empty folder.

    Args:
        source: what is read.
        directory: an existing, empty folder.
        split: whether each text is to be split into sentences.
        banned: sentences that no row may hold.
        cleaners: what is taken out of texts before anything else.
        near: finds rows that are to be left out because an earlier one is nearly the same.

    Returns:
        The fingerprint of the contents.

    Raises:
        CorpusError: a fault in the source, or no text in it.
    """
    with ExitStack() as opened, _progress() as show:
        unwanted = frozenset(map(letters, banned.texts() if banned else ())) - {""}
        builder = _Builder(directory, source.columns, split, opened, unwanted, cleaners, near)
        for batch in source.batches():
            show(builder.add(batch))
        return builder.finish(source.name)


class _Builder:
    def __init__(
        self,
        directory: Path,
        columns: Columns,
        split: bool,
        opened: ExitStack,
        banned: frozenset[str],
        cleaners: Cleaners,
        near: NearDuplicates | None,
    ) -> None:
        self._directory, self._columns, self._split = directory, columns, split
        self._banned, self._cleaners, self._near = banned, cleaners, near
        self._looked_at, self._signs = 0, Counter[str]()
        self._one_a_line = True
        self._table = TableFile(directory / TABLE, columns.kept, columns.label is not None, opened)
        self._scores = ArrayFile(directory / "score.npy", np.float64, opened) if columns.score else None
        # Blank lines are document borders only if some lie between texts, which is known at the end. Until then
        # both numberings are written, by document and by row.
        self._documents = _Documents(directory / "document.npy", opened)
        self._rows = _Documents(directory / "row.npy", opened) if split else None
        self._all_documented = True
        self._separated = False
        keep = columns.carried is not None
        self._origins = OriginsFile(directory, columns.carried or (), split, opened) if keep else None
        self._seen = KeySet(numbered=keep)
        self._counts: Counter[str] = Counter()

    def add(self, batch: Batch) -> int:
        """Add the new, non-empty rows of a batch; returns the number of rows kept so far."""
        count = self._counts
        self._separated |= batch.separated
        count["files"] += batch.files
        count["skipped_files"] += batch.skipped_files
        # Documents without a document column come from a source that splits its texts itself.
        told = batch.documents is not None and self._columns.document is None
        self._one_a_line &= batch.blocks is not None or told or not len(batch)
        texts, origin = self._cleaned(batch)
        filled = np.fromiter(map(all, zip(*texts, strict=True)), dtype=bool, count=len(origin))
        # A blank line of plain text is a document border, not a lost text.
        borders = 0 if batch.blocks is None else sum(not text or text.isspace() for text in batch.texts[0])
        count["empty"] += int(len(filled) - filled.sum()) - borders
        if self._banned:
            letters_of = ({letters(text) for text in row} for row in zip(*texts, strict=True))
            free = np.fromiter(map(self._banned.isdisjoint, letters_of), bool, len(origin))
            count["excluded"] += int((filled & ~free).sum())
            filled &= free
        rows = np.flatnonzero(filled)
        texts = [[column[row] for row in rows.tolist()] for column in texts]
        keys = hash_keys(texts[0] if len(texts) == 1 else zip(*texts, strict=True), len(rows))
        first = (
            self._seen.add(keys)
            if self._origins is None
            else self._numbered(self._origins, batch, keys, filled, origin)
        )
        count["duplicates"] += int(len(first) - first.sum())
        texts, rows = _chosen(texts, first), rows[first]
        if self._near is not None:
            new = self._near.new(list(map(" | ".join, zip(*texts, strict=True))))
            count["near_duplicates"] += int(len(new) - new.sum())
            texts, rows = _chosen(texts, new), rows[new]
        self._write(batch, texts, origin[rows])
        count["rows_read"] += len(batch)
        count["split"] += self._split * len(batch)
        return self._kept

    @property
    def _kept(self) -> int:
        return len(self._seen) - self._counts["near_duplicates"]

    def _numbered(
        self, origins: OriginsFile, batch: Batch, keys: NDArray[np.uint64], filled: NDArray[np.bool_], origin: Integers
    ) -> NDArray[np.bool_]:
        """Record the table row of each piece of a batch; returns which of the non-empty ones are new, (filled,)."""
        known = len(self._seen)
        numbers = self._seen.number(keys)
        first = numbers > np.maximum.accumulate(np.concatenate([[known - 1], numbers]))[:-1]
        corpus_rows = np.full(len(origin), -1)
        corpus_rows[filled] = numbers
        origins.append(corpus_rows, np.flatnonzero(filled)[first], self._counts["rows_read"] + origin)
        if self._columns.carried:
            if batch.carried is None and len(batch):
                fail(self._columns.carried[0], "what is read has no columns beside the text: leave the option out")
            origins.carry(batch.carried or [[]])
        return first

    def finish(self, source: str) -> str:
        """Close all files, settle documents and labels, write the description; returns the fingerprint."""
        if not len(self._seen):
            left_out = " besides what is to be left out" if self._counts["excluded"] else ""
            fail(source, "no text in it" + self._columns.condition + left_out)
        digests = self._table.close()
        documents = self._finish_documents()
        label_names: tuple[str, ...] | None = None
        if self._scores is not None:
            self._scores.close()
        if self._columns.label is not None:
            label_names = write_labels(self._directory, len(self._columns.kept), f"column {self._columns.label!r}")
        for name in ("document", "label", "score"):
            path = self._directory / f"{name}.npy"
            digests.append(digest_file(path) if path.exists() else b"")
        digests += [name.encode() for name in label_names or ()]
        digests += [] if self._origins is None else [b"origins", *self._origins.close()]
        fingerprint = hashlib.blake2b(repr(digests).encode(), digest_size=16).hexdigest()
        description = {
            "source": source,
            "fingerprint": fingerprint,
            "text_columns": self._columns.kept,
            "label_names": label_names,
            "carried": {} if self._origins is None else self._origins.kinds,
            "report": dataclasses.asdict(self._report(documents)),
        }
        describe(self._directory, description)
        return fingerprint

    def _report(self, documents: int) -> CorpusReport:
        unit = "sentence" if self._split or self._one_a_line else "text"
        unit = "row" if len(self._columns.kept) > 1 else unit
        return CorpusReport(
            kept=self._kept,
            documents=documents,
            unit=unit,
            rid_of=self._cleaners.done(),
            holds={name: count / self._looked_at for name, count in self._signs.items()},
            together=self._columns.together,
            **self._counts,
        )

    def _cleaned(self, batch: Batch) -> tuple[list[list[str]], Integers]:
        """Clean texts for each column, and the row of the batch that each comes from."""
        too_long: set[int] = set()
        texts = [_cut(column, too_long) for column in batch.texts]
        self._counts["too_long"] += len(too_long)
        texts = [self._cleaners(column) for column in texts]
        for column in texts:
            looked_at, signs = look(column)
            self._looked_at += looked_at
            self._signs += signs
        origin = np.arange(len(batch))
        if self._split:
            parts = [split_sentences(text) or [""] for text in texts[0]]
            origin = np.repeat(origin, list(map(len, parts)))
            texts = [[sentence for part in parts for sentence in part]]
        control: set[int] = set()
        for index, column in enumerate(texts):
            texts[index], rows = clean(column)
            control.update(origin[rows].tolist())
        self._counts["control_characters"] += len(control)
        return texts, origin

    def _write(self, batch: Batch, texts: list[list[str]], origin: Integers) -> None:
        """Write the kept texts, with document, label and score of the rows of the batch they come from."""
        if not len(origin):
            return
        if batch.labels is not None:
            texts = [*texts, [batch.labels[row] for row in origin.tolist()]]
        self._table.append(texts)
        if self._scores is not None and batch.scores is not None:
            self._scores.append(np.asarray(batch.scores)[origin])
        if self._rows is not None:
            self._rows.follow(self._counts["rows_read"] + origin)
        if batch.documents is not None:
            self._documents.look_up([batch.documents[row] for row in origin.tolist()])
        elif batch.blocks is not None:
            self._documents.follow((self._counts["files"] << 40) + batch.blocks[origin])
        else:
            self._all_documented = False
            self._documents.follow(np.zeros(len(origin), dtype=np.int64))

    def _finish_documents(self) -> int:
        """Keep the numbering that applies, if any; returns the number of documents."""
        self._documents.file.close()
        if self._rows is not None:
            self._rows.file.close()
        if self._all_documented and (self._separated or self._columns.document or self._documents.looked_up):
            if self._rows is not None:
                self._rows.file.path.unlink()
            return self._documents.count
        if self._rows is not None:
            self._rows.file.path.replace(self._documents.file.path)
            return self._rows.count
        self._documents.file.path.unlink()
        return 0


class _Documents:
    """Numbers documents 0, 1, 2, ... by first appearance and writes the number of each row."""

    def __init__(self, path: Path, opened: ExitStack) -> None:
        self.file = ArrayFile(path, np.int64, opened)
        self.looked_up = False
        self._known = KeySet(numbered=True)
        self._last = -1
        self._changes = 0

    @property
    def count(self) -> int:
        return len(self._known) if self.looked_up else self._changes

    def look_up(self, values: list[str]) -> None:
        """Append rows (n,) whose documents are named by values, which may recur anywhere."""
        self.looked_up = True
        self.file.append(self._known.number(hash_keys(values, len(values))))

    def follow(self, keys: Integers) -> None:
        """Append rows (n,) whose keys never decrease: a new document begins wherever the key changes."""
        changed = np.diff(keys, prepend=self._last) != 0
        self._last = int(keys[-1])
        self.file.append(self._changes - 1 + np.cumsum(changed))
        self._changes += int(changed.sum())


def _chosen(texts: list[list[str]], keep: NDArray[np.bool_]) -> list[list[str]]:
    """The rows (n,) of each column that are kept."""
    return texts if keep.all() else [list(compress(column, keep.tolist())) for column in texts]


def _cut(column: list[str], too_long: set[int]) -> list[str]:
    """Texts of bounded length; the rows of those that were longer join `too_long`."""
    if max(map(len, column), default=0) <= LONGEST_TEXT:
        return column
    too_long.update(row for row, text in enumerate(column) if len(text) > LONGEST_TEXT)
    return [text[:LONGEST_TEXT] for text in column]


@contextmanager
def _progress() -> Iterator[Callable[[int], None]]:
    """A counter on standard error if it is a terminal; otherwise nothing."""
    if not sys.stderr.isatty():
        yield lambda kept: None
        return
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    shown = (SpinnerColumn(), TextColumn("Reading: {task.completed:,} rows"), TimeElapsedColumn())
    with Progress(*shown, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("", total=None)
        yield lambda kept: progress.update(task, completed=kept)
