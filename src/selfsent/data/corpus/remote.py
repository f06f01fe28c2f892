"""Files elsewhere, by address: `s3://`, `gs://`, `hf://`, `https://` and whatever else fsspec can open."""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import IO, Any, cast
from urllib.parse import unquote, urlsplit

from selfsent.data.corpus.failure import fail
from selfsent.errors import CorpusError, first_line, install, near

_ADDRESS = re.compile(r"(?:[a-z][a-z0-9+.-]*::)?([a-z][a-z0-9+.-]*)://\S.*", re.IGNORECASE | re.DOTALL)
_BLOCK = 1 << 22
"""Bytes fetched at a time from a file that is read in parts."""
_WEB = ("http", "https")
_PATIENCE, _HUB_PATIENCE = 60, 1.5
"""Seconds without data after which a web server counts as down, and without an answer after which the hub does."""
_MARKS = (
    *("ETag", "etag", "Content-MD5", "md5Hash", "content_md5", "crc32c", "generation", "blob_id", "CRC"),
    *("LastModified", "Last-Modified", "last_modified", "mtime", "updated", "modified", "created", "date_time"),
)
"""Metadata fields of drivers that change with the contents of a file."""
_DENIED = "access denied: credentials are missing, or do not reach this"
_ANSWERS = {401: _DENIED, 403: _DENIED, 404: "not found", 410: "not found"}
"""Messages by the status of a web server."""


def is_address(name: str) -> bool:
    """Whether this is an address rather than the name of a local file."""
    return _ADDRESS.fullmatch(name) is not None


def protocol_of(address: str) -> str:
    """Such as `s3`, in lower case."""
    found = _ADDRESS.fullmatch(address)
    return found[1].lower() if found else "file"


def local_path(address: str) -> Path | None:
    """The local file that a `file://` address means; None for others."""
    if not address.lower().startswith("file://"):
        return None
    from urllib.request import url2pathname  # imports an HTTP client

    return Path(url2pathname(urlsplit(address).path))


def path_of(name: str) -> Path:
    """The local path that a name means, written as one or as `file://`."""
    return local_path(name) or Path(name)


def shown(address: str) -> str:
    """An address for messages and cards, without password and signature."""
    if protocol_of(address) not in _WEB:
        return address
    parts = urlsplit(address)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}" + "?…" * bool(parts.query)


class RemoteFile:
    """A remote file with the part of the `Path` interface that readers use.

    Args:
        filesystem: of fsspec.
        path: of the file there.
        info: its metadata, by the filesystem.
    """

    def __init__(self, filesystem: Any, path: str, info: Mapping[str, Any]) -> None:
        self.filesystem, self.path, self.info = filesystem, path, info
        self.address = str(filesystem.unstrip_protocol(path))
        self.is_web = protocol_of(self.address) in _WEB
        name = PurePosixPath(unquote(urlsplit(path).path) if self.is_web else path)
        self.suffixes, self.suffix = name.suffixes, name.suffix
        size = info.get("size")
        self.size = int(size) if isinstance(size, int | float) else None
        # fsspec's `ukey` is the address alone on the web, and depends on earlier listings on the hub.
        marks = [str(info[name]) for name in _MARKS if info.get(name) is not None]
        self.state = [self.address, self.size, *marks] if marks else None
        """Value that changes with the file, as JSON; None if the driver has none."""

    def __str__(self) -> str:
        return shown(self.address)

    def is_file(self) -> bool:
        """True: it is never a pipe."""
        return True

    def open(self, mode: str = "rb") -> IO[bytes]:
        """A stream of its bytes that raises `CorpusError`."""
        return cast(IO[bytes], _RemoteStream(self))


class _RemoteStream:
    """A remote file that reports faults in one line, truncated downloads included."""

    def __init__(self, remote: RemoteFile) -> None:
        self._remote, self._position, self._seeks = remote, 0, True
        with driver_errors(remote.address):
            if not remote.is_web or (remote.suffix == ".parquet" and remote.size):
                self._file = remote.filesystem.open(remote.path, "rb", block_size=_BLOCK, cache_type="readahead")
                if not remote.is_web or self._sends_parts(remote.size or 0):
                    return
                self._file.close()
            self._file = remote.filesystem.open(remote.path, "rb", block_size=0, size=remote.size)
            self._seeks = False

    def _sends_parts(self, size: int) -> bool:
        """Whether the server sends parts of the file."""
        try:
            self._file.seek(size - 1)
            self._file.read(1)
            self._file.seek(0)
        except (OSError, ValueError):
            return False
        return True

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)

    def __enter__(self) -> _RemoteStream:
        return self

    def __exit__(self, *error: object) -> None:
        self._file.close()

    def seekable(self) -> bool:
        """Whether it can be read from anywhere."""
        return self._seeks

    def tell(self) -> int:
        """The position of the next byte."""
        return self._position

    def seek(self, offset: int, whence: int = 0) -> int:
        """Go to a position."""
        with driver_errors(self._remote.address):
            self._position = int(self._file.seek(offset, whence))
        return self._position

    def read(self, size: int = -1) -> bytes:
        """Read up to `size` bytes."""
        with driver_errors(self._remote.address):
            data = bytes(self._file.read(size))
        at, total = self._position, self._remote.size
        if size and not data and total is not None and at < total:
            fail(str(self._remote), f"cut short: {at:,} of {total:,} bytes came; run the same command again")
        self._position += len(data)
        return data


@contextmanager
def driver_errors(address: str) -> Iterator[None]:
    """Turn any exception of a driver into a one-line `CorpusError`."""
    try:
        yield
    except CorpusError:
        raise
    except Exception as error:
        fail(shown(address), why(error))


def why(error: BaseException) -> str:
    """A one-line message for an exception of fsspec's drivers, whose own cause counts."""
    if isinstance(error, ImportError):
        needed = f"aiohttp: {install('remote')}" if error.name == "aiohttp" else f"a driver: {first_line(error)}"
        return f"reading it needs {needed}"  # fsspec says which driver
    last = error
    while cause := last.__cause__ or (None if last.__suppress_context__ else last.__context__):
        last = cause
    if isinstance(status := getattr(last, "status", None), int):
        return _ANSWERS.get(status, f"the server answered {status}: try again later")
    if isinstance(last, FileNotFoundError):
        return "not found"
    reason = _DENIED if isinstance(error, PermissionError) else "cannot be read"
    return f"{reason}: {first_line(last)}; if the connection was cut, run the same command again"


def filesystem_of(address: str) -> tuple[Any, str]:
    """The filesystem of an address, and the path there.

    Raises:
        CorpusError: unknown protocol, or its driver is not installed.
    """
    import fsspec
    from fsspec.core import url_to_fs

    protocol = protocol_of(address)
    if protocol not in (known := fsspec.available_protocols()):
        hint = near(protocol, known) or "such as s3, gs, az, hf or https are known"
        fail(shown(address), f"unknown protocol {protocol}://, {hint}")
    with driver_errors(address):
        options: dict[str, Any] = {}
        if protocol == "hf":
            require_hub(address, "")
        if protocol in _WEB:  # a long file may take any time; proxies of the environment apply
            from aiohttp import ClientTimeout

            timeout = ClientTimeout(total=None, sock_connect=_PATIENCE, sock_read=_PATIENCE)
            options = {"client_kwargs": {"timeout": timeout, "trust_env": True}}
        filesystem, path = url_to_fs(address, **options)
        filesystem.invalidate_cache()  # earlier listings may be outdated
    return filesystem, path


def find_remote(address: str, is_known: Callable[[RemoteFile], bool]) -> list[RemoteFile]:
    """The files that an address means: itself, all that match it as a pattern, or all below it, sorted.

    Args:
        address: of a file, or where it is not on the web of a folder, or a pattern with `*`.
        is_known: whether a file is of a kind that is read; others in a folder are ignored.

    Raises:
        CorpusError: nothing is there, or it cannot be reached or read.
    """
    filesystem, path = filesystem_of(address)
    web = protocol_of(address) in _WEB
    pattern = not web and any(sign in path for sign in "*?[")
    with driver_errors(address):
        info = {"type": "directory"} if pattern else filesystem.info(path)
        if web or info["type"] != "directory":
            return [RemoteFile(filesystem, path, info)]
        found = filesystem.glob(path, detail=True) if pattern else filesystem.find(path, detail=True)
        files = [RemoteFile(filesystem, name, info) for name, info in sorted(found.items())]
        files = [f for f in files if f.info["type"] != "directory" and f.path.count("/.") == path.count("/.")]
        files = files if pattern else [file for file in files if is_known(file)]
        if not files:
            fail(shown(address), "no file matches this pattern" if pattern else "no text in this folder")
        return files


def require_hub(name: str, prefix: str = "no such file, and ") -> None:
    """Fail fast without a network: the library would retry for half a minute.

    Raises:
        CorpusError: the hub cannot be reached; the message begins with `prefix`.
    """
    hub = urlsplit(os.environ.get("HF_ENDPOINT", "https://huggingface.co"))
    from urllib.request import getproxies  # imports an HTTP client

    if getproxies():
        return
    try:
        socket.create_connection((hub.hostname or "", hub.port or 443), timeout=_HUB_PATIENCE).close()
    except OSError as error:
        fail(name, f"{prefix}the hub cannot be reached to look there: {error.strerror or error}")
