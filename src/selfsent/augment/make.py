"""Augmentations of a whole corpus, in a file or as columns of the corpus, with resumption."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cache, partial
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from selfsent.augment.augmenter import Augmenter, Change, Sentences
from selfsent.data.corpus import Corpus
from selfsent.data.corpus.clean import clean
from selfsent.data.corpus.table import DESCRIPTION, TABLE, open_corpus
from selfsent.data.corpus.writer import TableFile, describe
from selfsent.data.random import make_key
from selfsent.data.vector_files import check_format
from selfsent.errors import AugmenterError, SelfsentError, SettingsError
from selfsent.files import atomic_directory, check_new_file
from selfsent.locks import lock_range
from selfsent.progress import SILENT, Progress
from selfsent.renamed import callbacks_as_progress, warn_renamed
from selfsent.resumable import Chunks, key_of

ORIGINAL = "original"
"""The entry of `maker1` and `maker2` for the sentence itself."""
_VERSION = 4
"""Version of augmenters, chunks and cleaning; bump when one of them changes."""
_ENOUGH = 20
"""Size of a first chunk from which at least one sentence must change."""
_FEW = 0.1
"""Show a notice below this share of changed sentences."""
Pairing = Sequence[Augmenter]
"""One augmenter: the sentence and its view. Two: a view from each."""


@dataclass(frozen=True)
class Augmented:
    """The result of `augment`.

    Args:
        path: the parquet file.
        rows: pairs of texts in it.
        made: texts made by this call, not by an earlier one.
        unchanged: share of each augmenter's texts that equal the sentence, by its spec.
    """

    path: Path
    rows: int
    made: int
    unchanged: dict[str, float]

    def sample(self, count: int = 5) -> list[dict[str, str]]:
        """Rows spread over the file, with all columns."""
        with pq.ParquetFile(self.path) as file:
            groups = np.linspace(0, file.num_row_groups - 1, count).astype(int).tolist()
            tables = [file.read_row_group(group).slice(number, 1) for number, group in enumerate(groups)]
        return [row for table in tables for row in table.to_pylist()]


@callbacks_as_progress
def augment(
    corpus: Corpus,
    pairings: Sequence[Pairing],
    output: str | Path,
    *,
    seed: int = 0,
    overwrite: bool = False,
    progress: Progress = SILENT,
) -> Augmented:
    """Write two views of every sentence of a corpus into a parquet file.

    Columns: `text`, `view1`, `view2`, `maker1`, `maker2`, and `document`, `label`, `score` if the corpus has them.
    Finished chunks stay in `OUTPUT.parts` until all are done. After an interruption the same call resumes from them,
    with the same result.

    Args:
        corpus: the sentences.
        pairings: one row per sentence each, from one augmenter (the sentence and a view) or two (two views).
        output: the file, which ends in `.parquet`.
        seed: of everything random.
        overwrite: discard the file, and the chunks of another call.
        progress: receives the number of pairs done, including those kept from an earlier run, and notices.

    Raises:
        SettingsError: the augmenters do not go together, or a resource is missing.
        AugmenterError: an augmenter failed, or changes nothing.
        OutputError: the file exists, or cannot be written.
    """
    path = Path(output)
    check_pairings(pairings)
    check_output(path, overwrite)
    chunks, made = Chunks(path, _plan(corpus, pairings, seed), overwrite), 0
    advance = progress.counting("making views", len(corpus) * len(pairings))
    try:
        for number, pairing in enumerate(pairings):
            size, key = min(augmenter.chunk for augmenter in pairing), make_key(seed, number)
            every, starts = np.arange(len(corpus)), range(0, len(corpus), size)
            parts = {f"{number}-{start:012d}": every[start : start + size] for start in starts}
            changes = cache(lambda pairing=pairing: [each.start() for each in pairing])  # a finished plan loads nothing
            made += len(pairing) * chunks.fill(parts, partial(_chunk, corpus, pairing, changes, key), advance)
    except SelfsentError:
        if not len(chunks):
            chunks.remove()
        raise
    total = chunks.join()
    unchanged = _unchanged(path)
    for augmenter in dict.fromkeys(augmenter for pairing in pairings for augmenter in pairing):
        if (changed := 1 - unchanged[augmenter.spec]) < _FEW:
            progress.notice(f"{augmenter.spec} changed only {changed:.1%} of the texts: {augmenter.unchanged}")
    return Augmented(path, total, made, unchanged)


def check_pairings(pairings: Sequence[Pairing]) -> None:
    """Reject augmenters that cannot give two different views.

    Raises:
        SettingsError: more than two augmenters, or a deterministic one twice.
    """
    for pairing in pairings:
        if not 1 <= len(pairing) <= 2:
            found = f"not {len(pairing)}: give further `pairings` for more rows"
            raise SettingsError(f"two views come from one or two augmenters, {found}")
        if len(pairing) == 2 and pairing[0] == pairing[1] and not pairing[0].random:
            other = "name another augmenter, or another `pivot`"
            raise SettingsError(f"{pairing[0].spec} makes the same view twice: {other}")


def check_output(path: Path, overwrite: bool) -> None:
    """Reject an output that cannot be written.

    Raises:
        SettingsError: another suffix.
        OutputError: the file exists, or is no ordinary one.
    """
    check_format(path)
    check_new_file(path, overwrite)


def _plan(corpus: Corpus, pairings: Sequence[Pairing], seed: int) -> dict[str, Any]:
    """Everything the views depend on, as JSON; the seed only for random augmenters."""
    identities = [[augmenter.identity() for augmenter in pairing] for pairing in pairings]
    plan = {"version": _VERSION, "corpus": corpus.fingerprint, "makers": json.loads(json.dumps(identities))}
    return plan | ({"seed": seed} if any(augmenter.random for pairing in pairings for augmenter in pairing) else {})


def _chunk(
    corpus: Corpus, pairing: Pairing, changes: Callable[[], Sequence[Change]], key: int, rows: np.ndarray
) -> dict[str, list[Any]]:
    """The columns of some rows.

    Raises:
        AugmenterError: an augmenter changes none of the first rows.
    """
    texts = corpus.texts(rows)
    views, names = [texts] * (2 - len(pairing)), [ORIGINAL] * (2 - len(pairing))
    for augmenter, change in zip(pairing, changes(), strict=True):
        made, _ = clean(change(Sentences(texts, rows), make_key(key, len(views))))
        views.append([view or text for view, text in zip(made, texts, strict=True)])
        names.append(augmenter.spec)
        if rows[0] == 0 and len(texts) >= _ENOUGH and views[-1] == texts:
            none = f"changed none of the first {len(texts)} texts"
            raise AugmenterError(f"{augmenter.spec} {none}: {augmenter.unchanged}")
    columns: dict[str, list[Any]] = {"text": texts, "view1": views[0], "view2": views[1]}
    columns |= {f"maker{number}": [name] * len(texts) for number, name in enumerate(names, start=1)}
    if corpus.documents is not None:
        columns["document"] = corpus.documents[rows].tolist()
    if corpus.labels is not None:
        labels, known = corpus.labels[rows].tolist(), corpus.label_names
        columns["label"] = [known[label] for label in labels] if known else labels
    if corpus.scores is not None:
        columns["score"] = corpus.scores[rows].tolist()
    return columns


def _unchanged(path: Path) -> dict[str, float]:
    """The share of each augmenter's views that equal the sentence."""
    views, same = Counter[str](), Counter[str]()
    with pq.ParquetFile(path) as file:
        for batch in file.iter_batches(columns=["text", "view1", "view2", "maker1", "maker2"]):
            text, *columns = (column.to_pylist() for column in batch.columns)
            for view, maker in zip(columns[:2], columns[2:], strict=True):
                views.update(maker)
                same.update(name for name, one, other in zip(maker, view, text, strict=True) if one == other)
    return {name: same[name] / count for name, count in views.items() if name != ORIGINAL}


@callbacks_as_progress
def with_augmentations(
    corpus: Corpus,
    pairing: Pairing,
    seed: int = 0,
    progress: Progress = SILENT,
) -> Corpus:
    """The same sentences, with two views of each as the columns that methods read.

    Made on the first call and cached in the corpus' directory; an interrupted call resumes.

    Args:
        corpus: the sentences.
        pairing: one augmenter (the sentence and a view) or two (two views).
        seed: of everything random.
        progress: receives the number of sentences done, and notices.

    Raises:
        SelfsentError: as `augment`.
    """
    check_pairings([pairing])
    key = key_of(_plan(corpus, [pairing], seed), partial(blake2b, digest_size=8))
    directory = corpus.directory / f"views-{key}"
    made = directory.with_suffix(".parquet")
    # Another process may be making missing views.
    while (found := open_corpus(directory)) is None:
        with lock_range(directory.with_suffix(".lock"), 0, 1, patient=True):
            if open_corpus(directory) is not None:
                continue
            shutil.rmtree(directory, ignore_errors=True)
            if not made.exists():  # complete if an earlier call was killed just after writing it
                augment(corpus, [pairing], made, seed=seed, progress=progress)
            _build(corpus, made, directory, [augmenter.spec for augmenter in pairing], key)
            made.unlink(missing_ok=True)
    return found


def _build(corpus: Corpus, made: Path, directory: Path, specs: list[str], key: str) -> None:
    """Turn the file of views into a corpus; with one augmenter, the sentence is the first view."""
    columns = ("text", "view2") if len(specs) == 1 else ("text", "view1", "view2")
    with atomic_directory(directory) as temporary:
        with ExitStack() as opened:
            table = TableFile(temporary / TABLE, columns, False, opened)
            for batch in opened.enter_context(pq.ParquetFile(made)).iter_batches(columns=list(columns)):
                table.append([batch.column(name).to_pylist() for name in columns])
            table.close()
        for file in corpus.directory.glob("*.npy"):
            shutil.copyfile(file, temporary / file.name)
        description = json.loads((corpus.directory / DESCRIPTION).read_text(encoding="utf-8"))
        description.pop("checksum", None)
        description |= {"text_columns": columns, "input_columns": columns[-2:], "fingerprint": key}
        description["source"] += f", views by {', '.join(specs)}"
        describe(temporary, description)


_FORMER = {"Views": "Augmented", "with_views": "with_augmentations"}


def __getattr__(name: str) -> Any:
    if name not in _FORMER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    warn_renamed(f"{__name__}.{name}", _FORMER[name])
    return globals()[_FORMER[name]]
