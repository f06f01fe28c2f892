"""An output folder, local or remote, with atomic writes."""

from __future__ import annotations

import json
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from selfsent.data.corpus.remote import filesystem_of, is_address, local_path, path_of, protocol_of, shown, why
from selfsent.errors import CorpusError, OutputError
from selfsent.files import atomic_file, output_errors, sweep_half_written

_ATOMIC = ("s3", "s3a", "gs", "gcs", "az", "abfs", "abfss", "adl", "hf", "oss", "oci", "memory")
"""Protocols of stores with atomic uploads."""


@dataclass(frozen=True)
class Folder:
    """A folder for results.

    Args:
        address: an absolute path, or an fsspec address.
    """

    address: str

    @classmethod
    def of(cls, name: str) -> Folder:
        """The folder of a name, independent of the current directory."""
        if is_address(name) and local_path(name) is None:
            return cls(name.rstrip("/"))
        return cls(str(path_of(name).expanduser().absolute()))

    def __str__(self) -> str:
        return shown(self.address)

    @property
    def path(self) -> Path | None:
        """The local path; None if it is remote."""
        return None if is_address(self.address) else Path(self.address)

    def names(self) -> set[str]:
        """Names of visible files; empty for a missing folder.

        Raises:
            OutputError: it cannot be read, or is a file.
        """
        with self._errors():
            if self.path is None:
                filesystem, path = filesystem_of(self.address)
                found = filesystem.ls(path, detail=False) if filesystem.exists(path) else []
                names = {each.rstrip("/").rpartition("/")[2] for each in found if each.strip("/") != path.strip("/")}
            elif self.path.exists() and not self.path.is_dir():
                raise OutputError(f"{self.path} is a file: name a folder for the parts")
            else:
                names = {path.name for path in self.path.iterdir()} if self.path.exists() else set()
        return {name for name in names if not name.startswith(".")}

    @contextmanager
    def atomic_file(self, name: str) -> Iterator[Path]:
        """A temporary local file, moved to this name on success.

        Raises:
            OutputError: it cannot be written.
        """
        if self.path is not None:
            with atomic_file(self.path / name) as path:
                yield path
            return
        with tempfile.TemporaryDirectory() as directory:
            path = Path(directory, name)
            yield path
            with self._errors():
                filesystem, folder = filesystem_of(self.address)
                filesystem.makedirs(folder, exist_ok=True)
                atomic = protocol_of(self.address) in _ATOMIC
                target = f"{folder}/{name}" if atomic else f"{folder}/.{name}.{uuid.uuid4().hex[:8]}"
                filesystem.put_file(str(path), target)
                if not atomic:
                    filesystem.mv(target, f"{folder}/{name}")

    def read_json(self, name: str) -> dict[str, Any] | None:
        """The object in a JSON file; None if missing.

        Raises:
            OutputError: it cannot be read, or is no JSON object.
        """
        if name not in self.names():
            return None
        with self._errors():
            if self.path is None:
                filesystem, folder = filesystem_of(self.address)
                content = filesystem.cat_file(f"{folder}/{name}")
            else:
                content = (self.path / name).read_bytes()
        try:
            found = json.loads(content)
        except ValueError:
            found = None
        if not isinstance(found, dict):
            raise OutputError(f"{self}/{name} is damaged: name another folder, or remove this one")
        return found

    def sweep(self) -> None:
        """Remove leftovers of killed processes, unless a process is writing."""
        if self.path is not None:
            sweep_half_written(self.path)

    @contextmanager
    def _errors(self) -> Iterator[None]:
        if self.path is not None:
            with output_errors(self.path):
                yield
            return
        try:
            yield
        except CorpusError as error:
            raise OutputError(str(error)) from None
        except Exception as error:  # each driver has its own errors
            raise OutputError(f"{self}: {why(error, protocol_of(self.address))}") from error
