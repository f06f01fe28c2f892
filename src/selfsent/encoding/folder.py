"""A folder of results, here or elsewhere, whose files appear whole or not at all."""

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
from selfsent.files import atomic_file, is_half_written, output_errors

_AT_ONCE = ("s3", "s3a", "gs", "gcs", "az", "abfs", "abfss", "adl", "hf", "oss", "oci", "memory")
"""Protocols of stores where a file is there when all of it is, and not before."""


@dataclass(frozen=True)
class Folder:
    """A folder for results.

    Args:
        address: a path, or an address that fsspec opens.
    """

    address: str

    @classmethod
    def of(cls, name: str) -> Folder:
        """The folder that a user names, which any process finds."""
        if is_address(name) and local_path(name) is None:
            return cls(name.rstrip("/"))
        return cls(str(path_of(name).expanduser().absolute()))

    def __str__(self) -> str:
        return shown(self.address)

    def names(self) -> set[str]:
        """The files in it, without hidden ones; none where there is no such folder.

        Raises:
            OutputError: it cannot be read, or is a file.
        """
        with self._saying():
            if not is_address(self.address):
                place = Path(self.address)
                if place.exists() and not place.is_dir():
                    raise OutputError(f"{place} is a file: name a folder for the parts")
                found = [path.name for path in place.iterdir()] if place.exists() else []
            else:
                filesystem, path = filesystem_of(self.address)
                here = filesystem.ls(path, detail=False) if filesystem.exists(path) else []
                found = [each.rstrip("/").rpartition("/")[2] for each in here if each.strip("/") != path.strip("/")]
        return {name for name in found if not name.startswith(".")}

    @contextmanager
    def whole(self, name: str) -> Iterator[Path]:
        """A local file to write to, which becomes the file of this name when the block ends without an error.

        Raises:
            OutputError: it cannot be written.
        """
        if not is_address(self.address):
            with atomic_file(Path(self.address, name)) as path:
                yield path
            return
        with tempfile.TemporaryDirectory() as place:
            path = Path(place, name)
            yield path
            with self._saying():
                self._send(path)

    def _send(self, file: Path) -> None:
        filesystem, folder = filesystem_of(self.address)
        filesystem.makedirs(folder, exist_ok=True)
        if protocol_of(self.address) in _AT_ONCE:
            filesystem.put_file(str(file), f"{folder}/{file.name}")
            return
        beside = f"{folder}/.{file.name}.{uuid.uuid4().hex[:8]}"
        filesystem.put_file(str(file), beside)
        filesystem.mv(beside, f"{folder}/{file.name}")

    def read_json(self, name: str) -> dict[str, Any] | None:
        """The object in a JSON file; None where there is no such file.

        Raises:
            OutputError: it cannot be read, or is no JSON object.
        """
        if name not in self.names():
            return None
        with self._saying():
            if is_address(self.address):
                filesystem, folder = filesystem_of(self.address)
                text = filesystem.cat_file(f"{folder}/{name}").decode()
            else:
                text = Path(self.address, name).read_text(encoding="utf-8")
        try:
            found = json.loads(text)
        except ValueError:
            found = None
        if not isinstance(found, dict):
            raise OutputError(f"{self}/{name} is damaged: name another folder, or remove this one")
        return found

    def write_json(self, name: str, value: Any) -> None:
        """Write a JSON file, whole or not at all."""
        with self.whole(name) as path:
            path.write_text(json.dumps(value, ensure_ascii=False) + "\n", encoding="utf-8")

    def sweep(self) -> None:
        """Remove what killed processes left behind, when no process is writing."""
        place = Path(self.address)
        for path in place.iterdir() if not is_address(self.address) and place.is_dir() else ():
            if is_half_written(path):
                path.unlink(missing_ok=True)

    @contextmanager
    def _saying(self) -> Iterator[None]:
        try:
            if is_address(self.address):
                yield
            else:
                with output_errors(Path(self.address)):
                    yield
        except OutputError:
            raise
        except CorpusError as error:
            raise OutputError(str(error)) from None if is_address(str(error)) else error
        except Exception as error:  # drivers have errors of their own
            raise OutputError(f"{self}: {why(error, protocol_of(self.address))}") from error
