"""What is to be encoded, cut into parts that any process can do, in any order, and again."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from selfsent.data.corpus.batch import Columns, common_kind
from selfsent.data.corpus.formats import read_file
from selfsent.data.corpus.parquet import look_at_parquet, read_parquet
from selfsent.data.corpus.remote import RemoteFile
from selfsent.data.corpus.sources import Files, find_files, size_of, state_of
from selfsent.encoding.batch import BatchEncoder
from selfsent.encoding.folder import Folder
from selfsent.errors import OutputError, SettingsError
from selfsent.models.bases import resolve

MANIFEST = "_manifest.json"
"""Beside the parts; those who read a folder of parquet files pass over names that begin with `_`."""
ROWS = 1 << 16
"""Rows of a part, at most: some hundred megabytes of vectors, some minutes of a small encoder."""
_AT_ONCE = 16
"""Files that are looked into at the same time: they may lie far away."""
_LOOKED_INTO = 8
_OF_THE_MODEL = (".json", ".safetensors", ".txt", ".model", ".bin")


@dataclass(frozen=True)
class Part:
    """Consecutive rows of one file of the input.

    Args:
        file: its number, from 0.
        number: of the part in the file, from 0.
        start: the first row, from 0.
        rows: how many; None for all of a file whose rows are counted when it is read.
    """

    file: int
    number: int
    start: int
    rows: int | None

    @property
    def name(self) -> str:
        """The file of its vectors."""
        return f"part-{self.file:05d}-{self.number:05d}.parquet"


@dataclass(frozen=True)
class Job:
    """All that a worker must know; it can be pickled.

    Args:
        encoder: makes the vectors.
        files: the input.
        columns: of the input: a text, and those that go with it.
        kinds: of the columns that go with each row: bool, int, float or str, by name.
        split: each text is split into sentences.
        output: where the parts go.
        fingerprint: of the model's files.
    """

    encoder: BatchEncoder
    files: tuple[Path | RemoteFile, ...]
    columns: Columns
    kinds: Mapping[str, str]
    split: bool
    output: Folder
    fingerprint: str

    def manifest(self, parts: Sequence[Part]) -> dict[str, Any]:
        """What the folder holds, as JSON."""
        model = {"name": self.encoder.model, "fingerprint": self.fingerprint}
        files = [state_of(file) or [str(file), size_of(file)] for file in self.files]
        return {
            "model": model,
            "options": self.options(),
            "files": [[str(value) for value in state] for state in files],
            "parts": [dataclasses.astuple(part) for part in parts],
        }

    def options(self) -> dict[str, Any]:
        """The flags that the vectors depend on."""
        return {
            "--text-column": self.encoder.text_column,
            "--id-column and --keep": list(self.columns.carried or ()),
            "--split-sentences": self.split,
            "--clean": list(self.encoder.clean),
            "--fast": self.encoder.fast,
            "--int8": self.encoder.int8,
            **({"--prompt": self.encoder.prompt} if self.encoder.prompt else {}),
        }


def make_job(
    encoder: BatchEncoder, inputs: Sequence[str], output: str, *, carry: Sequence[str] = (), split: bool = False
) -> tuple[Job, list[Part]]:
    """Look at the input and at the output folder: the job, and all its parts.

    A folder that was begun is gone on with, if it was begun with the same model, files and options.

    Args:
        encoder: makes the vectors.
        inputs: files, folders and patterns, here or elsewhere.
        output: a folder.
        carry: columns that go with each row.
        split: split each text into sentences.

    Raises:
        CorpusError: there is no such input, or it has no such columns.
        OutputError: the folder holds something else, or cannot be written.
        BaseEncoderError: there is no such model.
    """
    folder = Folder.of(output)
    fingerprint = fingerprint_of(encoder.model)
    files = tuple(path.absolute() if isinstance(path, Path) else path for path in _files(inputs))
    columns = Columns((encoder.text_column,), carried=tuple(dict.fromkeys(carry)))
    job = Job(encoder, files, columns, {}, split, folder, fingerprint)
    begun = folder.read_json(MANIFEST)
    if begun is not None:
        _check_same(begun, job)
        return dataclasses.replace(job, kinds=begun["kinds"]), [Part(*part) for part in begun["parts"]]
    if others := folder.names():
        raise OutputError(f"{folder} holds other files, such as {min(others)}: name a new folder")
    parts, kinds = _look(files, columns)
    job = dataclasses.replace(job, kinds=kinds)
    folder.write_json(MANIFEST, {**job.manifest(parts), "kinds": kinds})
    return job, parts


def missing(job: Job, parts: Sequence[Part]) -> list[Part]:
    """The parts that are not in the folder yet."""
    there = job.output.names()
    return [part for part in parts if part.name not in there]


def fingerprint_of(model: str) -> str:
    """A short digest of the files of a model, the same on every machine that has the same model."""
    directory, found = resolve(model), hashlib.sha256()
    for path in sorted(directory.rglob("*")):
        if path.suffix in _OF_THE_MODEL and path.is_file():
            found.update(path.relative_to(directory).as_posix().encode())
            with path.open("rb") as file:
                found.update(hashlib.file_digest(file, "sha256").digest())
    return found.hexdigest()[:16]


def _files(inputs: Sequence[str]) -> Files:
    if "-" in inputs:
        raise SettingsError("--engine ray reads files, not standard input")
    return [file for name in inputs for file in find_files(name)]


def _check_same(begun: Mapping[str, Any], job: Job) -> None:
    """Refuse a folder that was begun with something else.

    Raises:
        OutputError: it was.
    """
    now = job.manifest([])
    try:
        changed = [flag for flag, value in now["options"].items() if begun["options"][flag] != value]
        if begun["model"]["fingerprint"] != now["model"]["fingerprint"]:
            what = f"another model ({begun['model']['name']}, {begun['model']['fingerprint']})"
        elif changed:
            what = f"{changed[0]} {_told(begun['options'][changed[0]])}, not {_told(now['options'][changed[0]])}"
        elif begun["files"] != now["files"]:
            same = len({tuple(file) for file in begun["files"]} & {tuple(file) for file in now["files"]})
            what = f"other files, or they have changed since: {same} of {len(now['files'])} are as they were"
        else:
            return
    except (KeyError, TypeError) as error:
        raise OutputError(f"{job.output}/{MANIFEST} is damaged: name another folder, or remove this one") from error
    raise OutputError(f"{job.output} was begun with {what}: give the same, or name another folder")


def _told(value: Any) -> str:
    return (",".join(map(str, value)) or "none") if isinstance(value, list) else str(value)


def _look(files: Sequence[Path | RemoteFile], columns: Columns) -> tuple[list[Part], dict[str, str]]:
    """The parts of files, and the kinds of carried columns, after a look into each parquet file and some others."""
    kinds = dict.fromkeys(columns.carried or (), "str")

    def look(number: int) -> tuple[list[Part], dict[str, str]]:
        file = files[number]
        if file.suffix == ".parquet":
            rows, found = look_at_parquet(file, columns)
            starts = range(0, rows, ROWS)
            return [Part(number, k, start, min(ROWS, rows - start)) for k, start in enumerate(starts)], found
        if number < _LOOKED_INTO:
            next(islice(read_file(file, columns), 1, None), None)
        return [Part(number, 0, 0, None)], dict.fromkeys(columns.wanted, "str")

    with ThreadPoolExecutor(_AT_ONCE) as pool:
        looked = list(pool.map(look, range(len(files))))
    for name in kinds:
        kinds[name] = common_kind({found[name] for _, found in looked})
    return [part for parts, _ in looked for part in parts], kinds


def batches(job: Job, part: Part) -> Iterator[Any]:
    """The rows of a part as they are read, some thousand at a time."""
    from selfsent.data.corpus.streams import open_file

    file = job.files[part.file]
    if part.rows is None:
        yield from read_file(file, job.columns)
        return
    with open_file(file) as opened:
        yield from read_parquet(opened, str(file), job.columns, range(part.start, part.start + part.rows))
