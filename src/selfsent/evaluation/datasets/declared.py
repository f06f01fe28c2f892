"""Evaluation data sets as declarations, read from a mirror first, then from the hub's cache, then from the hub."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from selfsent.errors import DataError
from selfsent.evaluation.datasets.hub import from_hub
from selfsent.evaluation.datasets.publishers import Columns

PAIR = {"sentence1": "sentence1", "sentence2": "sentence2", "score": "score"}


@dataclass(frozen=True)
class DataSet:
    """Declaration of a data set: location, columns and expected content.

    Args:
        name: unique name, used by tasks.
        repository: `<org>/<name>`, its folder in a mirror and, when `hub` is true, its id on the hub.
        rows: published number of rows; a different one is a warning. None if unpublished.
        split: file name without `.parquet` in a mirror; split on the hub.
        config: sub-folder in a mirror; configuration on the hub.
        columns: our name -> the publisher's name.
        optional: columns that some copies lack.
        hub: whether the hub has it.
        reader: parser of the publisher's files.
        files: paths of these in a mirror.
        known: fingerprint of a known good copy; a different one is a warning.
    """

    name: str
    repository: str
    rows: int | None
    split: str = "test"
    config: str | None = None
    columns: Mapping[str, str] = field(default_factory=lambda: PAIR)
    optional: tuple[str, ...] = ()
    hub: bool = True
    reader: Callable[..., Columns] | None = None
    files: tuple[str, ...] = ()
    known: str = ""

    @property
    def path(self) -> Path:
        """Path of the parquet file in a mirror."""
        return Path(self.repository, self.config or "", f"{self.split}.parquet")

    def is_in(self, mirror: Path) -> bool:
        """Whether a mirror holds it, as parquet or as published."""
        published = bool(self.files) and all((mirror / file).is_file() for file in self.files)
        return published or (mirror / self.path).is_file()


@dataclass(frozen=True)
class Rows:
    """A data set in memory.

    Args:
        name: of the data set.
        columns: by our names; all of one length.
        fingerprint: six hexadecimal digits, of the content.
        warnings: one line each, with the name of the set.
    """

    name: str
    columns: Mapping[str, list[Any]]
    fingerprint: str
    warnings: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))

    def __contains__(self, column: str) -> bool:
        return column in self.columns

    def __getitem__(self, column: str) -> list[Any]:
        return self.columns[column]


class Store:
    """A cached reader of data sets.

    Args:
        data: the mirror's folder; by default SELFSENT_DATA, or only the hub.

    Raises:
        DataError: the mirror is not a folder.
    """

    def __init__(self, data: str | Path | None = None) -> None:
        chosen = data or os.environ.get("SELFSENT_DATA")
        self.mirror = Path(chosen) if chosen else None
        self._read: dict[str, Rows] = {}
        if self.mirror is not None and not self.mirror.is_dir():
            raise DataError(f"{self.mirror} is not a folder: `data` or SELFSENT_DATA must name a mirror of data sets")

    def load(self, dataset: DataSet) -> Rows:
        """The rows of a data set.

        Raises:
            DataError: it is absent, or not in the published layout.
        """
        if dataset.name not in self._read:
            self._read[dataset.name] = checked(dataset, self._columns(dataset))
        return self._read[dataset.name]

    def _columns(self, dataset: DataSet) -> Columns:
        absent = f"no mirror is given (`data` or SELFSENT_DATA, with {dataset.path})"
        if self.mirror is not None:
            if (self.mirror / dataset.path).is_file():
                return read_parquet(self.mirror / dataset.path, dataset)
            if dataset.reader and dataset.is_in(self.mirror):
                return dataset.reader(*(self.mirror / file for file in dataset.files))
            files = f", nor {', '.join(dataset.files)}" if dataset.files else ""
            absent = f"the mirror {self.mirror} does not hold {dataset.path}{files}"
        if not dataset.hub:
            raise DataError(f"{dataset.name} is absent: {absent}, and no hub has it")
        try:
            rows = from_hub(dataset.repository, dataset.config, dataset.split)
        except DataError as error:
            raise DataError(f"{dataset.name} is absent: {absent}, and {error}") from error
        source = f"the hub's {dataset.repository}"
        return _choose(dataset, rows.column_names, lambda name: list(rows[name]), source)


def checked(dataset: DataSet, columns: Columns) -> Rows:
    """The rows of a data set without unscored ones, with warnings for deviations from the published set.

    Args:
        dataset: its declaration.
        columns: as read, by our names.
    """
    if "score" in columns:
        keep = [row for row, score in enumerate(columns["score"]) if score is not None and score == score]
        columns = {name: [values[row] for row in keep] for name, values in columns.items()}
    rows, found, warnings = len(next(iter(columns.values()))), fingerprint(columns), list[str]()
    if dataset.rows is not None and rows != dataset.rows:
        warnings = [f"{dataset.name} has {rows} rows here, {dataset.rows} as published"]
    elif dataset.known and found != dataset.known:
        warnings = [f"{dataset.name} has content {found}, known copies have {dataset.known}: scores may not compare"]
    return Rows(dataset.name, columns, found, tuple(warnings))


def fingerprint(columns: Mapping[str, Sequence[Any]]) -> str:
    """Six hexadecimal digits over texts, labels and scores; without `subset`, which hub copies lack."""
    digest = hashlib.sha256()
    for name in sorted(set(columns) - {"subset"}):
        digest.update(f"\x1d{name}\x1e".encode())
        values = (f"{value:.6g}" if isinstance(value, float) else str(value) for value in columns[name])
        digest.update("\x1f".join(values).encode("utf-8", "surrogatepass"))
    return digest.hexdigest()[:6]


def read_parquet(path: Path, dataset: DataSet) -> Columns:
    """The columns of a file, by our names.

    Raises:
        DataError: it cannot be read, or lacks one.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        names = pq.read_schema(path).names
        table = pq.read_table(path, columns=[name for name in dataset.columns.values() if name in names])
        return _choose(dataset, names, lambda name: list(table[name].to_pylist()), str(path))
    except (OSError, pa.ArrowException, UnicodeDecodeError) as error:
        raise DataError(f"{dataset.name}: {path} cannot be read as parquet; fetch it again") from error


def _choose(dataset: DataSet, names: Sequence[str], column: Callable[[str], list[Any]], source: str) -> Columns:
    missing = [t for ours, t in dataset.columns.items() if t not in names and ours not in dataset.optional]
    if missing:
        raise DataError(f"{dataset.name}: {source} lacks the column {missing[0]}; it has {', '.join(names)}")
    return {ours: column(theirs) for ours, theirs in dataset.columns.items() if theirs in names}
