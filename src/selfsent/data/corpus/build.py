"""From batches of raw rows to the table on disk: clean, split, number documents, drop duplicates, write."""

from __future__ import annotations

import dataclasses
import hashlib
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from itertools import compress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from selfsent.data.corpus.batch import Batch, Columns
from selfsent.data.corpus.clean import LONGEST_TEXT, clean, letters_of
from selfsent.data.corpus.cleaners import NUMBERS, Cleaners, look
from selfsent.data.corpus.duplicates import KeySet, hash_keys
from selfsent.data.corpus.failure import fail
from selfsent.data.corpus.sources import Source
from selfsent.data.corpus.table import TABLE, Corpus, CorpusReport
from selfsent.data.corpus.writer import ArrayFile, InputRowsFile, TableFile, describe, digest_file, write_labels
from selfsent.progress import doing

Integers = NDArray[np.int64]
Split = Callable[[str], list[str]]


def build_table(
    source: Source,
    directory: Path,
    split: Split | None,
    excluded: Corpus | None,
    cleaners: Cleaners,
    reading: dict[str, Any],
) -> str:
    """Write the whole corpus into an empty directory.

    Args:
        source: to read.
        directory: an existing, empty directory.
        split: from a text to its sentences or passages; None to leave texts whole.
        excluded: texts that no row may hold.
        cleaners: applied to texts before anything else.
        reading: the options by which it is read, for the record.

    Returns:
        A digest of the contents, and of the rows of the input that hold them.

    Raises:
        CorpusError: a fault in the source, or no text in it.
    """
    builder = _Builder(directory, source.columns, split, excluded, cleaners)
    with builder.opened, doing() as say:
        for batch in source.batches():
            builder.add(batch)
            say(f"Reading: {len(builder.seen):,} rows")
        return builder.finish(source.name, reading)


class _Builder:
    def __init__(
        self, directory: Path, columns: Columns, split: Split | None, excluded: Corpus | None, cleaners: Cleaners
    ) -> None:
        self._directory, self._columns, self._split, self._cleaners = directory, columns, split, cleaners
        self._excluded = frozenset(letters_of(excluded.texts() if excluded else ())) - {""}
        self.opened = opened = ExitStack()
        self._table = TableFile(directory / TABLE, columns.kept, columns.label is not None, opened)
        self._scores = ArrayFile(directory / "score.npy", np.float64, opened) if columns.score else None
        # Blank lines are document borders only if some separate texts, which is known at the end. Until then
        # both numberings are written, by document and by row.
        self._documents = _Documents(directory / "document.npy", opened)
        self._rows = _Documents(directory / "row.npy", opened) if split else None
        self._all_documented, self._separated, self._line_by_line = True, False, True
        self._inputs = (
            InputRowsFile(directory, columns.metadata or (), split is not None, opened) if columns.numbered else None
        )
        self.seen = KeySet()
        self._counts: Counter[str] = Counter()
        self._sampled, self._signs = 0, Counter[str]()

    def add(self, batch: Batch) -> None:
        """Add the new, non-empty rows of a batch."""
        count = self._counts
        self._separated |= batch.separated
        count["files"] += batch.files
        # Documents without a document column come from a source that splits its texts itself.
        is_split = batch.documents is not None and self._columns.document is None
        self._line_by_line &= batch.blocks is not None or is_split or not len(batch)
        texts, origin = self._cleaned(batch)
        wanted = np.fromiter(map(all, zip(*texts, strict=True)), dtype=bool, count=len(origin))
        # A blank line of plain text is a document border, not a lost text.
        borders = 0 if batch.blocks is None else sum(not text or text.isspace() for text in batch.texts[0])
        count["empty"] += int((~wanted).sum()) - borders
        if self._excluded:
            compared = zip(*map(letters_of, texts), strict=True)
            allowed = np.fromiter(map(self._excluded.isdisjoint, compared), bool, len(origin))
            count["excluded"] += int((wanted & ~allowed).sum())
            wanted &= allowed
        texts, rows = _filtered(texts, wanted), np.flatnonzero(wanted)
        keys = hash_keys(texts[0] if len(texts) == 1 else zip(*texts, strict=True), len(rows))
        numbers, first = self.seen.number(keys)
        if self._inputs is not None:
            self._inputs.append(wanted, numbers, first, count["rows_read"] + origin)
            if self._columns.metadata:
                if batch.metadata is None and len(batch):
                    fail(self._columns.metadata[0], "the source has no columns but the text: leave the option out")
                self._inputs.append_metadata(batch.metadata or [[]])
        count["duplicates"] += int((~first).sum())
        texts, rows = _filtered(texts, first), rows[first]
        if len(rows):
            self._write(batch, texts, origin[rows])
        count["rows_read"] += len(batch)
        count["split"] += len(batch) if self._split else 0

    def finish(self, source: str, reading: dict[str, Any]) -> str:
        """Close all files, settle documents and labels, write the description; returns a digest of all."""
        if not len(self.seen):
            left_out = " besides what is to be left out" if self._counts["excluded"] else ""
            fail(source, "no text in it" + self._columns.condition + left_out)
        digests = self._table.close()
        documents = self._finish_documents()
        if self._scores is not None:
            self._scores.close()
        label, position = self._columns.label, len(self._columns.kept)
        label_names = None if label is None else write_labels(self._directory, position, f"column {label!r}")
        for name in ("document", "label", "score"):
            path = self._directory / f"{name}.npy"
            digests.append(digest_file(path) if path.exists() else b"")
        digests += [name.encode() for name in label_names or ()]
        origins = [] if self._inputs is None else self._inputs.close()
        digests += [] if self._columns.metadata is None else [b"origins", *origins]
        fingerprint = hashlib.blake2b(repr(digests).encode(), digest_size=16).hexdigest()
        unit = "passage" if "passages" in reading else "sentence" if self._split or self._line_by_line else "text"
        unit = "row" if len(self._columns.kept) > 1 else unit
        shares = {name: count / self._sampled for name, count in self._signs.items()}
        report = CorpusReport(
            kept=len(self.seen),
            documents=documents,
            unit=unit,
            rid_of=self._cleaners.counts(),
            numbers=shares.pop(NUMBERS, 0.0),
            holds=shares,
            together=self._columns.together,
            natural=self._columns.natural,
            others=[name for name in self._columns.header if name not in (self._columns.named or self._columns.texts)],
            **self._counts,
        )
        description = {
            "source": source,
            "fingerprint": fingerprint,
            "text_columns": self._columns.kept,
            "read_columns": self._columns.named or self._columns.texts,
            "cleaners": self._cleaners.names,
            "reading": reading,
            "label_names": label_names,
            "metadata_columns": {} if self._inputs is None else self._inputs.kinds,
            "report": dataclasses.asdict(report),
        }
        describe(self._directory, description)
        # Tables with the same distinct texts share a fingerprint, but not a directory: their rows are others.
        return hashlib.blake2b(repr([fingerprint, *origins]).encode(), digest_size=16).hexdigest()

    def _cleaned(self, batch: Batch) -> tuple[list[list[str]], Integers]:
        """Cleaned texts of each column, and the row of the batch that each comes from."""
        too_long, control, texts = set[int](), set[int](), []
        for column in batch.texts:
            if max(map(len, column), default=0) > LONGEST_TEXT:
                too_long.update(row for row, text in enumerate(column) if len(text) > LONGEST_TEXT)
                column = [text[:LONGEST_TEXT] for text in column]
            texts.append(self._cleaners(column))
            sampled, signs = look(texts[-1])
            self._sampled += sampled
            self._signs += signs
        origin = np.arange(len(batch))
        if self._split:
            parts = [self._split(text) or [""] for text in texts[0]]
            origin = np.repeat(origin, list(map(len, parts)))
            texts = [[sentence for part in parts for sentence in part]]
        for index, column in enumerate(texts):
            texts[index], rows = clean(column)
            control.update(origin[rows].tolist())
        self._counts["too_long"] += len(too_long)
        self._counts["control_characters"] += len(control)
        return texts, origin

    def _write(self, batch: Batch, texts: list[list[str]], origin: Integers) -> None:
        """Write the kept texts, with document, label and score of the rows of the batch they come from."""
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
        documented = self._separated or self._columns.document or self._documents.looked_up
        kept = self._documents if self._all_documented and documented else self._rows
        if kept is self._rows and kept is not None and kept.count == len(self.seen):
            kept = None  # one sentence each: splitting has made no documents
        for numbering in (self._documents, self._rows):
            if numbering is not None:
                numbering.file.close()
                if numbering is not kept:
                    numbering.file.path.unlink()
        if kept is None:
            return 0
        kept.file.path.replace(self._documents.file.path)
        return kept.count


class _Documents:
    """Numbers documents 0, 1, 2, ... by first appearance and writes the number of each row."""

    def __init__(self, path: Path, opened: ExitStack) -> None:
        self.file = ArrayFile(path, np.int64, opened)
        self.looked_up, self.count = False, 0
        self._known, self._last = KeySet(), -1

    def look_up(self, values: list[str]) -> None:
        """Append rows (n,) by the names of their documents, which may recur anywhere."""
        self.looked_up = True
        self.file.append(self._known.number(hash_keys(values, len(values)))[0])
        self.count = len(self._known)

    def follow(self, keys: Integers) -> None:
        """Append rows (n,) by keys in rising order: a new document begins where the key changes."""
        changed = np.diff(keys, prepend=self._last) != 0
        self._last = int(keys[-1])
        self.file.append(self.count - 1 + np.cumsum(changed))
        self.count += int(changed.sum())


def _filtered(texts: list[list[str]], keep: NDArray[np.bool_]) -> list[list[str]]:
    """The rows (n,) of each column to keep."""
    return texts if keep.all() else [list(compress(column, keep.tolist())) for column in texts]
