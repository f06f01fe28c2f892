"""Views as columns of a corpus, made once and kept beside its table."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from selfsent.augment.make import Pairing, augment, check_pairings, plan_key
from selfsent.data.corpus import Corpus
from selfsent.data.corpus.table import DESCRIPTION, TABLE, open_corpus
from selfsent.data.corpus.writer import TableFile, describe
from selfsent.files import atomic_directory
from selfsent.locks import lock_range


def with_views(
    corpus: Corpus,
    pairing: Pairing,
    seed: int = 0,
    advance: Callable[[int], None] = lambda count: None,
    notice: Callable[[str], None] = lambda line: None,
) -> Corpus:
    """The same sentences, with two views of each as the columns that methods read.

    They are made on the first call and kept in the corpus' directory; an interrupted call goes on where it stopped.

    Args:
        corpus: the sentences.
        pairing: one maker (the sentence itself and a view) or two (two views).
        seed: of everything random.
        advance: called with the number of sentences done since the last call.
        notice: called with lines the user should see.

    Raises:
        SelfsentError: as `augment`.
    """
    check_pairings([pairing])
    key = plan_key(corpus, [pairing], seed)
    directory = corpus.directory / f"views-{key}"
    made = directory.with_suffix(".parquet")
    # Another process may be making missing views.
    while (found := open_corpus(directory)) is None:
        with lock_range(directory.with_suffix(".lock"), 0, 1, patient=True):
            if open_corpus(directory) is not None:
                continue
            shutil.rmtree(directory, ignore_errors=True)
            if not made.exists():  # whole, where another call was stopped behind it
                augment(corpus, [pairing], made, seed=seed, advance=advance, notice=notice)
            _build(corpus, made, directory, [maker.spec for maker in pairing], key)
            made.unlink(missing_ok=True)
    return found


def _build(corpus: Corpus, made: Path, directory: Path, makers: list[str], key: str) -> None:
    """Turn the file of views into a corpus; with one augmenter, the sentence itself is the first view."""
    import pyarrow.parquet as pq

    columns = ("text", "view2") if len(makers) == 1 else ("text", "view1", "view2")
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
        description |= {"text_columns": columns, "view_columns": columns[-2:], "fingerprint": key}
        description["source"] += f", views by {', '.join(makers)}"
        describe(temporary, description)
