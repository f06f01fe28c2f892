"""A collection in a database: its address, what an adapter does, and errors without credentials."""

from __future__ import annotations

import inspect
import os
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import Any, ClassVar

from numpy.typing import NDArray

from selfsent.errors import OutputError, SettingsError, first_line
from selfsent.index import Index

KEY, DIGEST, LENGTH, REPEATS = "selfsent_key", "selfsent_digest", "selfsent_length", "selfsent_repeats"
"""Fields of every row beside its columns: key, hash of all it has, mean length that its weights have, and whether an
earlier row has the same text."""
OWN = {KEY: int, DIGEST: int, LENGTH: float, REPEATS: bool}
EMBEDDING, WORDS, TEXT = "embedding", "words", "text"
NUMBERS, WEIGHTS = "term_numbers", "term_weights"
"""Fields of the sparse vector where a database has no type for it."""
SECRETS = ("QDRANT_API_KEY", "PGPASSWORD", "MILVUS_TOKEN", "OPENSEARCH_PASSWORD", "LANCEDB_API_KEY")
"""Variables of the environment with credentials: a server's errors are shown without their values."""
KINDS = {
    "lancedb": ("lance", "Lance"),
    "qdrant": ("qdrant", "Qdrant"),
    "milvus": ("milvus", "Milvus"),
    "postgresql": ("postgres", "Postgres"),
    "opensearch": ("opensearch", "OpenSearch"),
}
"""The file and class of each kind of database. A file is imported when its database is named."""
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,62}")
_EXAMPLES = "lancedb://folder#tickets, or qdrant://host:6333/tickets on a server"

Stamp = tuple[int, int, float]
"""Key, digest and mean length of a row in a database."""


@dataclass(frozen=True)
class Address:
    """Where a collection is: `KIND://PLACE#NAME` in files, or `KIND://HOST:PORT/NAME` on a server.

    Args:
        kind: of database, one of `KINDS`.
        place: a path, or host and port.
        name: of the collection.
        files: whether it is a path.
    """

    kind: str
    place: str
    name: str
    files: bool

    @classmethod
    def of(cls, target: str) -> Address:
        """An address from its text.

        Raises:
            SettingsError: no such database, no name, or a password in it; it is not repeated in the line.

        Examples:
            >>> Address.of("lancedb://folder#tickets")
            Address(kind='lancedb', place='folder', name='tickets', files=True)
        """
        kind, sign, rest = target.partition("://")
        if not sign or kind not in KINDS:
            raise SettingsError(f"TARGET begins with one of {', '.join(f'{each}://' for each in KINDS)}: {_EXAMPLES}")
        if re.search(r"(?i)//[^/@#]*:[^/@#]+@|(password|token|key)=", target):
            raise SettingsError(
                f"TARGET holds a password, which logs would show: give it by one of {', '.join(SECRETS)}"
            )
        place, _, name = rest.rpartition("#" if "#" in rest else "/")
        if not place or not _NAME.fullmatch(name):
            problem = f"TARGET {target} names no collection of letters, figures, _ and -"
            raise SettingsError(f"{problem}: give it as {_EXAMPLES}")
        return cls(kind, place, name, "#" in rest)

    def __str__(self) -> str:
        return f"{self.kind}://{self.place}{'#' if self.files else '/'}{self.name}"


@dataclass(frozen=True)
class Record:
    """A row as a database gets it.

    Args:
        fields: the fields of `OWN`, the metadata columns, and the text or None.
        vector: (d,) of length 1.
        words: terms in order, by number.
        terms: BM25 weight of each of them: a sparse vector.
    """

    fields: dict[str, Any]
    vector: NDArray[Any]
    words: Sequence[int]
    terms: dict[int, float]

    @property
    def key(self) -> int:
        """Its key."""
        return int(self.fields[KEY])


class Target(ABC):
    """A collection in a database: an adapter is a file with one of these and a function `search`, which is printed.

    Args:
        address: of the collection, which need not be there yet.
    """

    packages: ClassVar[tuple[str, ...]]
    """Packages to install for it."""
    together: ClassVar[int] = 1000
    """Rows of a batch."""
    code: str
    """Source text that makes the `collection` of `search`, with `place` and `name` of the address."""
    imports: ClassVar[str]
    """Imports of the printed query."""
    errors: ClassVar[tuple[type[Exception], ...]] = (OSError,)
    """Exceptions of the client where the database refuses or is away."""

    @abstractmethod
    def __init__(self, address: Address) -> None: ...

    @abstractmethod
    def stamps(self) -> Iterable[Stamp]:
        """Keys and digests of its rows; nothing where there is no collection."""

    @abstractmethod
    def size(self) -> int | None:
        """Dimension of the vectors it holds; None where there is no collection."""

    @abstractmethod
    def create(self, size: int, columns: dict[str, type]) -> None:
        """Make the collection, which is not there.

        Args:
            size: dimension of the vectors.
            columns: names and types of metadata columns.
        """

    @abstractmethod
    def upsert(self, new: Sequence[Record], changed: Sequence[Record]) -> None:
        """Write rows whose keys it does not hold, and others that it holds."""

    @abstractmethod
    def delete(self, keys: Sequence[int]) -> None:
        """Remove rows."""

    def finish(self) -> None:  # noqa: B027 - most databases need nothing
        """Make lookups and the like, after all is written."""

    def close(self) -> None:  # noqa: B027 - as above
        """Leave the database."""

    @abstractmethod
    def search(self, vector: NDArray[Any], terms: dict[int, float], weight: float, limit: int) -> list[dict[str, Any]]:
        """The fields of the best rows, by the function of the file."""

    def query(self, index: Index, address: Address) -> str:
        """The search in Python, ready to paste."""
        where = {"place": address.place, "name": address.name}
        return _QUERY.format(
            packages=" ".join(self.packages),
            imports=self.imports.strip(),
            search=inspect.getsource(inspect.getmodule(type(self)).search).strip(),  # type: ignore[union-attr]
            index=str(index.path),
            vector=_UNIT if index.query_map is None else _MAPPED,
            connect=self.code.strip().format(**where),
        )


_UNIT = """vector = encode(encoder, [query], side="query")[0, : index.size]
vector = vector / np.linalg.norm(vector)"""
_MAPPED = """vector = index.query_map(encode(encoder, [query], side="query"))[0]"""
_QUERY = """# python -m pip install {packages}
from typing import Any

{imports}
import numpy as np

from selfsent import Index
from selfsent.models.encoding import encode
from selfsent.models.opening import open_encoder


{search}


index = Index({index!r})  # the words of queries, and how rare they are
encoder = open_encoder(index.query_model)
query = "printer does not answer"  # yours
{vector}
{connect}
for row in search(collection, vector, index.query_weights(query), weight=index.lexical_weight, limit=10):
    print(row)
"""


def client(name: str, packages: Iterable[str]) -> Any:
    """A module of a client.

    Raises:
        SettingsError: it is not installed.
    """
    try:
        return import_module(name)
    except ImportError as error:
        missing = f"{error.name or name} is not installed"
        raise SettingsError(f"{missing}: python -m pip install {' '.join(packages)}") from None


@contextmanager
def told(target: Target | type[Target], address: Address) -> Iterator[None]:
    """Turn errors of a client into one line without credentials."""
    try:
        yield
    except target.errors as error:
        line = first_line(error)
        for name in SECRETS:
            line = line.replace(os.environ.get(name) or "\0", f"${name}")
        again = "see that the database runs; what was written is there, and the same command goes on from it"
        raise OutputError(f"{address}: {line}: {again}") from None


def open_target(address: Address) -> Target:
    """The adapter of an address, connected.

    Raises:
        SettingsError: its client is not installed.
        OutputError: it cannot be reached.
    """
    file, kind = KINDS[address.kind]
    adapter: type[Target] = getattr(import_module(f"selfsent.push.{file}"), kind)
    with told(adapter, address):
        return adapter(address)
