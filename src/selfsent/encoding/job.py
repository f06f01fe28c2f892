"""Bulk encoding: the input is cut into shards, encoded by any process, in any order, repeatably."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from selfsent.data.corpus.batch import Batch, Columns, as_kind, common_kind
from selfsent.data.corpus.clean import LONGEST_TEXT, clean
from selfsent.data.corpus.cleaners import Cleaners
from selfsent.data.corpus.formats import read_file
from selfsent.data.corpus.parquet import look_at_parquet, read_parquet
from selfsent.data.corpus.remote import RemoteFile
from selfsent.data.corpus.sentences import split_sentences
from selfsent.data.corpus.sources import find_files, size_of, state_of
from selfsent.data.corpus.streams import open_file
from selfsent.encoding.batch import BatchEncoder, as_column
from selfsent.encoding.folder import Folder
from selfsent.errors import BaseEncoderError, OutputError, SelfsentError, SettingsError
from selfsent.models.fingerprint import files_fingerprint

MANIFEST = "_manifest.json"
"""Stored with the shards; parquet readers ignore names beginning with `_`."""
ROWS = 1 << 16
"""Maximum rows per shard: some hundred megabytes of vectors, some minutes of a small encoder."""
_OPENED, _LOOKED_INTO = 16, 8
"""Files opened concurrently, as they may be remote; non-parquet files inspected for column types."""
_ARROW = {"bool": "bool", "int": "int64", "float": "float64", "str": "string"}


@dataclass(frozen=True)
class Shard:
    """Consecutive rows of one input file.

    Args:
        file: number of the file, from 0.
        number: of the shard in the file, from 0.
        start: the first row, from 0.
        rows: their number; None for a whole file with rows not counted in advance.
    """

    file: int
    number: int
    start: int
    rows: int | None

    @property
    def name(self) -> str:
        """Name of the file of its vectors."""
        return f"part-{self.file:05d}-{self.number:05d}.parquet"


@dataclass(frozen=True)
class Done:
    """Result of a shard: name, number of vectors, number of empty texts, and the error if any."""

    name: str
    rows: int = 0
    zeros: int = 0
    problem: str = ""


@dataclass(frozen=True)
class Job:
    """Picklable description of the work.

    Args:
        encoder: makes the vectors.
        files: the input.
        columns: text column and carried columns of the input.
        kinds: types of the carried columns by name: bool, int, float or str.
        split: split each text into sentences.
        output: folder of the shards.
        fingerprint: of the model's files.
    """

    encoder: BatchEncoder
    files: tuple[Path | RemoteFile, ...]
    columns: Columns
    kinds: Mapping[str, str]
    split: bool
    output: Folder
    fingerprint: str

    def manifest(self) -> dict[str, Any]:
        """Everything the shards depend on, as JSON; options by flag."""
        states = [state_of(file) or [str(file), size_of(file)] for file in self.files]
        options: dict[str, Any] = {
            "--text-column": self.encoder.text_column,
            "--id-column and --keep": list(self.columns.carried or ()),
            "--split-sentences": self.split,
            "--clean": list(self.encoder.clean),
            "--fast": self.encoder.fast,
            "--int8": self.encoder.int8,
            **({"--prompt": self.encoder.prompt} if self.encoder.prompt else {}),
        }
        return {
            "model": {"name": self.encoder.model, "fingerprint": self.fingerprint},
            "options": options,
            "files": [[str(value) for value in state] for state in states],
        }


def make_job(
    encoder: BatchEncoder, inputs: Sequence[str], output: str, *, carry: Sequence[str] = (), split: bool = False
) -> tuple[Job, list[Shard]]:
    """The job and all its shards; resumes a folder begun with the same model, files and options.

    Args:
        encoder: makes the vectors.
        inputs: files, folders and patterns, local or remote.
        output: a folder.
        carry: columns to copy to the output.
        split: split each text into sentences.

    Raises:
        CorpusError: missing input or columns.
        OutputError: the folder holds something else, or cannot be written.
        BaseEncoderError: no such model.
    """
    if "-" in inputs:
        raise SettingsError("Ray reads files, not standard input")
    folder, fingerprint = Folder.of(output), files_fingerprint(encoder.model)
    files = [file for name in inputs for file in find_files(name)]
    columns = Columns((encoder.text_column,), carried=tuple(dict.fromkeys(carry)))
    absolute = tuple(path.absolute() if isinstance(path, Path) else path for path in files)
    job = Job(encoder, absolute, columns, {}, split, folder, fingerprint)
    begun = folder.read_json(MANIFEST)
    if begun is not None:
        _check_same(begun, job)
        return dataclasses.replace(job, kinds=begun["kinds"]), [Shard(*shard) for shard in begun["parts"]]
    if others := folder.names():
        raise OutputError(f"{folder} holds other files, such as {min(others)}: name a new folder")
    shards, kinds = _find_shards(job.files, columns)
    job = dataclasses.replace(job, kinds=kinds)
    manifest = {**job.manifest(), "parts": [dataclasses.astuple(shard) for shard in shards], "kinds": kinds}
    with folder.atomic_file(MANIFEST) as path:
        path.write_text(json.dumps(manifest, ensure_ascii=False) + "\n", encoding="utf-8")
    return job, shards


def missing(job: Job, shards: Sequence[Shard]) -> list[Shard]:
    """The shards not yet in the folder."""
    there = job.output.names()
    return [shard for shard in shards if shard.name not in there]


def _check_same(begun: Mapping[str, Any], job: Job) -> None:
    """Check the manifest of a begun folder.

    Raises:
        OutputError: another model, other options or other files.
    """
    now = job.manifest()
    try:
        changed = [flag for flag, value in now["options"].items() if begun["options"][flag] != value]
        if begun["model"]["fingerprint"] != now["model"]["fingerprint"]:
            what = f"another model ({begun['model']['name']}, {begun['model']['fingerprint']})"
        elif changed:
            values = begun["options"][changed[0]], now["options"][changed[0]]
            was, new = (",".join(value) or "none" if isinstance(value, list) else value for value in values)
            what = f"{changed[0]} {was}, not {new}"
        elif begun["files"] != now["files"]:
            same = len({tuple(file) for file in begun["files"]} & {tuple(file) for file in now["files"]})
            what = f"other files, or they have changed since: {same} of {len(now['files'])} are as they were"
        else:
            return
    except (KeyError, TypeError) as error:
        raise OutputError(f"{job.output}/{MANIFEST} is damaged: name another folder, or remove this one") from error
    raise OutputError(f"{job.output} was begun with {what}: give the same, or name another folder")


def _find_shards(files: Sequence[Path | RemoteFile], columns: Columns) -> tuple[list[Shard], dict[str, str]]:
    """The shards of files, and the types of carried columns."""

    def look(number: int) -> tuple[list[Shard], dict[str, str]]:
        file = files[number]
        if file.suffix == ".parquet":
            rows, found = look_at_parquet(file, columns)
            starts = range(0, rows, ROWS)
            return [Shard(number, k, start, min(ROWS, rows - start)) for k, start in enumerate(starts)], found
        if number < _LOOKED_INTO:
            next(islice(read_file(file, columns), 1, None), None)
        return [Shard(number, 0, 0, None)], dict.fromkeys(columns.wanted, "str")

    with ThreadPoolExecutor(_OPENED) as pool:
        looked = list(pool.map(look, range(len(files))))
    kinds = {name: common_kind({found[name] for _, found in looked}) for name in columns.carried or ()}
    return [shard for shards, _ in looked for shard in shards], kinds


_fingerprint = cache(files_fingerprint)


def encode_shard(job: Job, shard: Shard) -> Done:
    """Write the vectors of a shard, atomically and deterministically.

    Columns: `file`; `row`, its number in the file, from 0; `sentence`, its number in the row, if texts are split;
    carried columns; `text` as encoded; and `embedding`, float32.

    Returns:
        The result. Errors of input or model are returned, not raised: they recur on each machine.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        if _fingerprint(job.encoder.model) != job.fingerprint:
            raise BaseEncoderError(f"{job.encoder.model} is another model on one of the machines: give all the same")
        schema = pa.schema(
            [
                ("file", pa.string()),
                ("row", pa.int64()),
                *([("sentence", pa.int64())] if job.split else []),
                *((name, _ARROW[kind]) for name, kind in job.kinds.items()),
                ("text", pa.string()),
                ("embedding", pa.list_(pa.float32(), job.encoder.size)),
            ]
        )
        rows, zeros, start = 0, 0, shard.start
        with (
            job.output.atomic_file(shard.name) as path,
            pq.ParquetWriter(path, schema, compression="zstd", write_page_checksum=True) as writer,
        ):
            for batch in filter(len, _batches(job, shard)):
                table, empty = _table(job, shard, batch, start, schema)
                writer.write_table(table)
                rows, zeros, start = rows + table.num_rows, zeros + empty, start + len(batch)
        return Done(shard.name, rows, zeros)
    except SelfsentError as error:
        return Done(shard.name, problem=str(error))


def _batches(job: Job, shard: Shard) -> Iterator[Batch]:
    file = job.files[shard.file]
    if shard.rows is None:
        yield from read_file(file, job.columns)
        return
    with open_file(file) as opened:
        yield from read_parquet(opened, str(file), job.columns, range(shard.start, shard.start + shard.rows))


def _table(job: Job, shard: Shard, batch: Batch, start: int, schema: Any) -> tuple[Any, int]:
    """The rows of a batch with vectors, and the number of empty texts."""
    import pyarrow as pa

    texts, rows = Cleaners(job.encoder.clean)([text[:LONGEST_TEXT] for text in batch.texts[0]]), np.arange(len(batch))
    cells: dict[str, Any] = {}
    if job.split:
        sentences = [split_sentences(text) or [""] for text in texts]
        rows = np.repeat(rows, list(map(len, sentences)))
        texts = [sentence for each in sentences for sentence in each]
        cells["sentence"] = [number for each in sentences for number in range(len(each))]
    texts, _ = clean(texts)
    cells |= {"file": [str(job.files[shard.file])] * len(rows), "row": start + rows, "text": texts}
    cells["embedding"] = as_column(job.encoder.vectors_of_clean(texts))
    for (name, kind), column in zip(job.kinds.items(), batch.carried or [], strict=False):
        cells[name] = pa.array([as_kind(column[row], kind) for row in rows.tolist()], _ARROW[kind])
    return pa.table({name: cells[name] for name in schema.names}, schema=schema), texts.count("")
