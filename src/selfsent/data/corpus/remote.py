"""One-line messages for the exceptions of fsspec's drivers."""

from __future__ import annotations

import dataclasses
import io
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, Any
from urllib.parse import unquote, urlsplit
from urllib.request import url2pathname

from selfsent.data.corpus.streams import fail
from selfsent.errors import CorpusError, first_line, near

_KEYS = {
    **dict.fromkeys(("s3", "s3a"), "set AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"),
    **dict.fromkeys(("gs", "gcs"), "run gcloud auth application-default login, or set GOOGLE_APPLICATION_CREDENTIALS"),
    **dict.fromkeys(("az", "abfs", "abfss"), "set AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ACCOUNT_KEY"),
    "hf": "run hf auth login, or set HF_TOKEN",
}
_FORBIDDEN = "Credential|Forbidden|AccessDenied|Unauthorized|RefreshError|GatedRepo"
_CUT = "Payload|Reset|IncompleteRead|ServerDisconnected|ContentLength|RemoteProtocol"
_AWAY = "Connect|Timeout|gaierror|DNS|Endpoint"


def why(error: BaseException, protocol: str) -> str:
    """The message for an exception that a driver raised.

    Args:
        error: of whatever class; a library may have wrapped what was first.
        protocol: such as `s3`.
    """
    chain = [error]
    while cause := chain[-1].__cause__ or (None if chain[-1].__suppress_context__ else chain[-1].__context__):
        chain.append(cause)
    if any(isinstance(each, ImportError) for each in chain):
        return f"reading {protocol}:// needs a driver: {first_line(error)}"  # fsspec says which
    codes = [code for each in chain for code in _codes(each)]
    kinds = " ".join([*(type(each).__name__ for each in chain), *map(str, codes)])
    statuses = [code for code in codes if isinstance(code, int) and 400 <= code < 600]
    if "RepositoryNotFound" in kinds:
        return f"not found, or private: check the name, or {_KEYS['hf']}"
    refused = {401, 403} & {*statuses} or any(isinstance(each, PermissionError) for each in chain)
    if refused or re.search(_FORBIDDEN, kinds):
        keys = _KEYS.get(protocol)
        return "access denied: credentials are missing, or do not reach this" + (f" ({keys})" if keys else "")
    if re.search(_CUT, kinds):
        return f"the connection was cut ({first_line(chain[-1])}): run the same command again"
    if {404, 410} & {*statuses}:
        return "not found"
    if statuses:
        return f"the server answered {statuses[-1]}: try again later"
    if re.search(_AWAY, kinds):  # first, as fsspec says of any web address that it does not reach that it is not there
        return f"cannot be reached: {first_line(chain[-1])}"
    if re.search("NotFound|NoSuch", kinds):
        return "not found"
    return f"cannot be read: {first_line(error)}"


def _codes(error: BaseException) -> list[Any]:
    """Status and error codes of an exception, wherever the library keeps them."""
    response = getattr(error, "response", None)
    if isinstance(response, dict):  # botocore's
        told = response.get("ResponseMetadata", {}).get("HTTPStatusCode")
        return [told, response.get("Error", {}).get("Code")]
    return [getattr(error, "status", None), getattr(response, "status_code", None), getattr(error, "code", None)]


_ADDRESS = re.compile(r"(?:[a-z][a-z0-9+.-]*::)?([a-z][a-z0-9+.-]*)://\S.*", re.IGNORECASE | re.DOTALL)
_FLAT = re.compile(r"([a-z][a-z0-9+.-]+):/[^/]", re.IGNORECASE)
"""An address after `Path` has collapsed its slashes."""
_BLOCK = 1 << 22
"""Bytes fetched at a time from a file that is not read from beginning to end."""
_BUFFER = 1 << 20
_WEB = ("http", "https")
_PATIENCE = 60
"""Seconds without data after which a web server counts as down."""
_MARKS = (
    *("ETag", "etag", "Content-MD5", "md5Hash", "content_md5", "crc32c", "generation", "blob_id", "CRC"),
    *("LastModified", "Last-Modified", "last_modified", "mtime", "updated", "modified", "created", "date_time"),
)
"""Metadata fields of drivers that change with the contents of a file."""


def is_address(name: str) -> bool:
    """Whether this is an address rather than the name of a local file."""
    return _ADDRESS.fullmatch(name) is not None


def protocol_of(address: str) -> str:
    """Such as `s3`, in lower case."""
    found = _ADDRESS.fullmatch(address)
    return found[1].lower() if found else "file"


def local_path(address: str) -> Path | None:
    """The local file that an address of the form `file://` means; None for others."""
    return Path(url2pathname(urlsplit(address).path)) if address.lower().startswith("file://") else None


def path_of(name: str) -> Path:
    """The local path that a name means, written as one or as `file://`."""
    return local_path(name) or Path(name)


def shown(address: str) -> str:
    """An address for messages and cards, without password and signature."""
    if protocol_of(address) not in _WEB:
        return address
    parts = urlsplit(address)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}" + "?…" * bool(parts.query)


def flattened(name: str) -> str:
    """Advice for an address that was passed as a Path; empty otherwise."""
    found = _FLAT.match(name)
    return f": give an address as text, not as a Path ({found[1]}://...)" if found else ""


@dataclass(frozen=True)
class RemoteFile:
    """A remote file with the part of the `Path` interface that readers use.

    Args:
        filesystem: of fsspec.
        path: the file's, there.
        info: what the filesystem tells of it.
    """

    filesystem: Any
    path: str
    info: Mapping[str, Any]

    def __str__(self) -> str:
        return shown(self.address)

    @property
    def address(self) -> str:
        """What fsspec opens."""
        return str(self.filesystem.unstrip_protocol(self.path))

    @property
    def suffixes(self) -> list[str]:
        """The ends of its name, as of a `Path`."""
        return PurePosixPath(unquote(urlsplit(self.path).path) if self.is_web else self.path).suffixes

    @property
    def suffix(self) -> str:
        """The last of them, or nothing."""
        return (self.suffixes or [""])[-1]

    @property
    def is_web(self) -> bool:
        """Whether a web server has it."""
        return protocol_of(self.address) in _WEB

    @property
    def size(self) -> int | None:
        """Bytes, where the filesystem tells them."""
        size = self.info.get("size")
        return int(size) if isinstance(size, int | float) else None

    @property
    def state(self) -> list[Any] | None:
        """Value that changes with the file, as JSON; None if the driver has none.

        fsspec's `ukey` will not do: for web addresses it is the address alone, and for the hub it depends on earlier
        listings.
        """
        marks = [str(self.info[name]) for name in _MARKS if self.info.get(name) is not None]
        return [self.address, self.size, *marks] if marks else None

    def is_file(self) -> bool:
        """True: it is never a pipe."""
        return True

    def open(self, mode: str = "rb") -> IO[bytes]:
        """A stream of its bytes that raises `CorpusError`."""
        return io.BufferedReader(_Watched(self), _BUFFER)

    def opened(self) -> tuple[Any, bool]:
        """The driver's stream, and whether it can seek; files of web servers are streamed if possible."""
        if not self.is_web or (self.suffix == ".parquet" and self.size):
            file = self.filesystem.open(self.path, "rb", block_size=_BLOCK, cache_type="readahead")
            try:
                if self.is_web and self.size:
                    file.seek(self.size - 1)
                    file.read(1)
                    file.seek(0)
                return file, True
            except (OSError, ValueError):  # this server sends whole files alone
                file.close()
        return self.filesystem.open(self.path, "rb", block_size=0, size=self.size), False


class _Watched(io.RawIOBase):
    """A remote file that reports faults in one line, truncated downloads included."""

    def __init__(self, file: RemoteFile) -> None:
        self._about, self._place = file, 0
        with telling(file.address):
            self._file, self._seeks = file.opened()

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return self._seeks

    def seek(self, offset: int, whence: int = 0) -> int:
        if not self._seeks:
            raise io.UnsupportedOperation("seek")
        with telling(self._about.address):
            self._place = int(self._file.seek(offset, whence))
        return self._place

    def tell(self) -> int:
        return self._place

    def readinto(self, buffer: Any) -> int:
        with telling(self._about.address):
            data = self._file.read(len(buffer))
        size = self._about.size
        if not data and size is not None and self._place < size:
            fail(str(self._about), f"cut short: {self._place:,} of {size:,} bytes came; run the same command again")
        buffer[: len(data)] = data
        self._place += len(data)
        return len(data)

    def close(self) -> None:
        if not self.closed:
            self._file.close()
        super().close()


@contextmanager
def telling(address: str) -> Iterator[None]:
    """Turn any exception of a driver into a one-line `CorpusError`."""
    try:
        yield
    except CorpusError:
        raise
    except Exception as error:
        fail(shown(address), why(error, protocol_of(address)))


def filesystem_of(address: str) -> tuple[Any, str]:
    """The filesystem of an address, and the path there.

    Raises:
        CorpusError: there is no such protocol, or its driver is not installed.
    """
    import fsspec
    from fsspec.core import url_to_fs

    protocol = protocol_of(address)
    if protocol not in (known := fsspec.available_protocols()):
        hint = near(protocol, known) or "such as s3, gs, az, hf or https are known"
        fail(shown(address), f"unknown protocol {protocol}://, {hint}")
    with telling(address):
        if protocol == "hf":
            from selfsent.data.corpus.hub import require_hub

            require_hub(address, "")
        options: dict[str, Any] = {}
        if protocol in _WEB:  # a long file may take any time; proxies of the environment hold
            from aiohttp import ClientTimeout

            timeout = ClientTimeout(total=None, sock_connect=_PATIENCE, sock_read=_PATIENCE)
            options = {"client_kwargs": {"timeout": timeout, "trust_env": True}}
        filesystem, path = url_to_fs(address, **options)
        filesystem.invalidate_cache()  # what was listed before may have changed
    return filesystem, path


def find_remote(address: str, is_known: Callable[[RemoteFile], bool]) -> list[RemoteFile]:
    """The files that an address means: itself, those that match it as a pattern, or those below it, in order.

    Args:
        address: of a file, a folder, or a pattern with `*`.
        is_known: says of a `RemoteFile` whether it is of a kind that is read; others in a folder are left out.

    Raises:
        CorpusError: nothing is there, or it cannot be reached or read.
    """
    filesystem, path = filesystem_of(address)
    web = protocol_of(address) in _WEB

    def below(found: Mapping[str, Mapping[str, Any]]) -> list[RemoteFile]:
        """The files in order, without folders and hidden files."""
        files = (RemoteFile(filesystem, name, info) for name, info in sorted(found.items()))
        return [f for f in files if f.info["type"] != "directory" and f.path.count("/.") == path.count("/.")]

    with telling(address):
        pattern = any(sign in path for sign in ("*[" if web else "*?["))
        found = [RemoteFile(filesystem, path, {} if web or pattern else filesystem.info(path))]
        if pattern:
            found = below(filesystem.glob(path, detail=True))
            if not found:
                fail(shown(address), "no file matches this pattern")
        # The web has no folders but pages of links, whose addresses end in a slash.
        elif path.endswith("/") and not is_known(found[0]) if web else found[0].info["type"] == "directory":
            found = [file for file in below(filesystem.find(path, detail=True)) if is_known(file)]
            if not found:
                fail(shown(address), "no text in this folder")
        # Listings of web servers carry no metadata of the files.
        return [dataclasses.replace(file, info=filesystem.info(file.path)) for file in found] if web else found
