"""`read_corpus`: the entry point. Corpora are cached; a second call opens the cached table."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

from selfsent.data.corpus.batch import Batch, Columns
from selfsent.data.corpus.build import build_table
from selfsent.data.corpus.cleaners import Cleaners
from selfsent.data.corpus.failure import fail
from selfsent.data.corpus.passages import check_passages, split_passages
from selfsent.data.corpus.sentences import split_sentences as split_text
from selfsent.data.corpus.sources import OPTIONS, Source, SourceName, Sources, cache_options, find_sources, join_sources
from selfsent.data.corpus.table import Corpus, open_corpus
from selfsent.errors import CorpusError, SettingsError
from selfsent.files import cache_folder, new_folder
from selfsent.renamed import renamed_arguments

_VERSION = 5
"""Version of the table format and of cleaning, splitting and harvesting; raise it when one of them changes."""
_SAMPLE, _BEGINNING = 1000, 5000
"""Texts sampled to decide whether to split all of them, and the characters read of each."""
_SMALL = 2**20
"""Bytes of a corpus that is read in well under a second; larger ones are only probed."""


@renamed_arguments(carry="metadata_columns")
def read_corpus(
    source: SourceName | Sources,
    *,
    text_column: str | Sequence[str] = "text",
    text_columns: tuple[str, ...] | list[str] | None = None,
    document_column: str | None = None,
    label_column: str | None = None,
    score_column: str | None = None,
    split_sentences: bool | None = False,
    passages: int | None = None,
    clean: str | Sequence[str] | None = None,
    where: Mapping[str, str | Sequence[str]] | None = None,
    stack: bool = False,
    exclude: SourceName | Sources | None = None,
    metadata_columns: str | Sequence[str] | None = None,
    cache: str | Path | None = None,
    min_rows: int = 2,
) -> Corpus:
    r"""Read text in any common format into a clean, memory-mapped table of distinct sentences.

    The text is read as a stream, in memory that grows by about 24 bytes a sentence. It is brought into Unicode NFC,
    freed of control characters and surplus white space; empty rows and exact duplicates are dropped; all of it is
    counted in the report. The table stays in the cache and is opened from there as long as the files do not change.

    Args:
        source: a file, folder or pattern (`.txt` with one sentence a line and blank lines between documents, `.csv`,
            `.tsv`, `.jsonl`, `.parquet`, each also `.gz`, `.zst` or `.bz2`), here or at an address that fsspec opens
            (`s3://`, `gs://`, `hf://`, `https://`, ...), a list of those, `-` for lines on standard input,
            `python:stdlib` for the docstrings of the standard library, a hub data set (`org/name`, `org/name:config`,
            `org/name:config:split`, `org/name::split`; looked for under `$SELFSENT_DATA` first), or strings. A list of
            strings is taken for paths if each of them exists or ends like a known file, for sentences otherwise; None
            and NaN are empty. Or a table in memory, with columns as a file has them: a DataFrame, a pyarrow table, a
            `datasets.Dataset`, a dictionary of columns, a list of rows. Or a list of mappings,
            `{"source": ..., "text_columns": ...}`, each a source with columns of its own.
        text_column: the column with the text, or several to join, such as subject and body.
        text_columns: one to three columns, in place of `text_column`, for pairs and triples.
        document_column: the column with the document of each row; not needed in plain text.
        label_column: whole numbers or names (to `labels`), or other numbers (to `scores`).
        score_column: numbers (to `scores`).
        split_sentences: split each text into sentences; a row is then a document if nothing else says what is. None
            splits them where nothing else makes documents and most texts hold several sentences.
        passages: split each text into passages of so many words at most (see `split_passages`), in place of sentences.
        clean: cleaners applied before splitting: some of `html`, `mail`, `urls` and `separators`, as a
            list or between commas.
        where: column -> the value, or values, that a row must have there to be read.
        stack: make the texts of several columns rows of their own, one after the other: the sentences of pairs.
        exclude: texts to leave out, such as test sets, given as `source` is; a row with one of them in any column is
            dropped and counted. Only letters and digits are compared, upper and lower case alike.
        metadata_columns: columns to keep for each row of the input, such as ids.
        cache: folder for tables; by default `$SELFSENT_CACHE`, else `~/.cache/selfsent`.
        min_rows: fewest distinct sentences allowed. Training needs two, encoding one.

    Raises:
        CorpusError: there is no such source, it is damaged (with file and line or row), or it holds too little.
        SettingsError: options that do not go together.
    """
    values = text_column, text_columns, document_column, label_column, score_column, where, stack
    common = {**dict(zip(OPTIONS, values, strict=True)), "metadata_columns": metadata_columns}
    read, cleaners = join_sources(find_sources(source, common)), Cleaners(clean)
    folder = cache_folder(cache) / "corpora"
    columns = read.columns
    check_passages(passages)
    if split_sentences and passages:
        raise SettingsError("passages end where sentences do: give either split_sentences or passages")
    if (split_sentences or passages) and len(columns.kept) > 1:
        name = "passages" if passages else "split_sentences"
        raise SettingsError(f"{name} works on one text column: parts of several would not match")
    excluded = None if exclude is None else _excluded(exclude, columns, clean, cache)
    without = None if excluded is None else excluded.fingerprint
    splitting = split_sentences if passages is None else f"passages of {passages}"
    options = [_VERSION, *cache_options(columns), splitting, without, *cleaners.options()]
    corpus = None if read.identity is None else open_corpus(folder / _key(read.identity, options))
    if corpus is None:
        if split_sentences is None and passages is None:
            read, split_sentences = _sample(read, cleaners)
        reading = {
            **dict(zip(OPTIONS, values, strict=True)),
            "split_sentences": split_sentences,
            **({} if passages is None else {"passages": passages}),
            "clean": cleaners.names,
        }
        how = {"excluded": excluded, "cleaners": cleaners, "reading": reading}
        split = split_text if passages is None else partial(split_passages, words=passages)
        corpus = _build(read, folder, options, split=split if split_sentences or passages else None, **how)
    if len(corpus) < min_rows:
        fail(read.name, f"only one distinct {corpus.report.unit}: at least two are needed" + columns.condition)
    return corpus


@renamed_arguments(carry="metadata_columns")
def check_corpus(source: SourceName | Sources, **options: Any) -> None:
    """Report faults of a small corpus, or at the start of a large one, before any slow work begins.

    Args:
        source: as for `read_corpus`; ignored unless it is made of files.
        **options: as for `read_corpus`.

    Raises:
        CorpusError: as `read_corpus` would.
    """
    read = join_sources(find_sources(source, options))
    Cleaners(options.get("clean"))  # raises if its package is not installed
    if read.size is not None and read.size > _SMALL:
        next(iter(read.batches()), None)
    elif read.size is not None:
        read_corpus(source, **options)


def _sample(source: Source, cleaners: Cleaners) -> tuple[Source, bool]:
    """The source, and whether to split its texts, judged by a sample; the sampled rows are read again from memory."""
    if len(source.columns.kept) > 1 or source.columns.document:
        return source, False
    batches = source.batches()
    first: list[Batch] = []
    while sum(map(len, first)) < _SAMPLE and (batch := next(batches, None)) is not None:
        first.append(batch)
    # A pipe can be read only once, and a network is slow.
    source = replace(source, read=lambda columns: chain(first, batches))
    if any(batch.separated or batch.documents for batch in first):
        return source, False
    texts = [text for batch in first for text in batch.texts[0] if text.strip()][:_SAMPLE]
    cleaned = Cleaners(cleaners.names)([text[:_BEGINNING] for text in texts])
    return source, 2 * sum(len(split_text(text)) > 1 for text in cleaned) > len(texts)


def _excluded(
    source: SourceName | Sources, columns: Columns, clean: str | Sequence[str] | None, cache: str | Path | None
) -> Corpus:
    """The corpus of texts to exclude; it has the same text columns unless it names others."""
    sources = [source] if isinstance(source, str | Path | Mapping) else source
    same = {"text_column": columns.texts} if columns.merged else {"text_columns": columns.texts, "stack": True}
    stacked = [{**same, **(each if isinstance(each, Mapping) else {"source": each})} for each in sources]
    return read_corpus(stacked, clean=clean, cache=cache, min_rows=1)


def _build(source: Source, folder: Path, options: list[object], **how: Any) -> Corpus:
    """Build the table in a temporary folder, then rename it; the loser of a race uses the table of the winner."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        building = new_folder(folder)
        try:
            digest = build_table(source, building, **how)
            final = folder / _key(source.identity if source.identity is not None else digest, options)
            if (corpus := open_corpus(final)) is None:
                shutil.rmtree(final, ignore_errors=True)
                with suppress(OSError):  # if another process was first, with the same table
                    building.rename(final)
                corpus = Corpus(final)
        finally:
            shutil.rmtree(building, ignore_errors=True)
        return corpus
    except OSError as error:
        problem = f"{folder}: cannot write the corpus cache: {error.strerror or error}"
        raise CorpusError(f"{problem}; set SELFSENT_CACHE to another folder") from error


def _key(identity: object, options: list[object]) -> str:
    return hashlib.blake2b(json.dumps([identity, options]).encode(), digest_size=12).hexdigest()
