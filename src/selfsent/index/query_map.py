"""A map from the query vectors of one encoder to those of another, whose texts an index holds."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from selfsent.data.vector_files import Vectors, unit
from selfsent.errors import DataError, first_line
from selfsent.files import atomic_file

_KIND = "selfsent query map"
_TABLE = "query_map"


@dataclass(frozen=True)
class Mapped:
    """The two encoders of a map.

    Args:
        name: of the way it was learned, in words.
        model: name of the new encoder, whose query vectors are mapped.
        fingerprint: of the new encoder; empty for vectors of another source.
        old: name of the old encoder.
        space: fingerprint of the old encoder; likewise.
    """

    name: str
    model: str
    fingerprint: str
    old: str
    space: str


@dataclass(frozen=True)
class QueryMap:
    """A linear map of query vectors.

    Args:
        about: the encoders.
        matrix: (d, e), from d numbers of the new encoder to e numbers of the old one.

    Examples:
        >>> turn = np.array([[0, 1], [1, 0]], np.float32)
        >>> query_map = QueryMap(Mapped("turned", "new", "", "old", ""), turn)
        >>> query_map(np.array([[3.0, 4.0]], np.float32)).round(1).tolist()
        [[0.800000011920929, 0.6000000238418579]]
    """

    about: Mapped
    matrix: Vectors

    def __call__(self, queries: Vectors) -> Vectors:
        """Queries (q, d) of the new encoder as unit vectors (q, e) to multiply with the old encoder's vectors of texts.

        Raises:
            DataError: vectors of another size.
        """
        if queries.shape[1] != len(self.matrix):
            problem = f"the map is for vectors of {len(self.matrix)} numbers ({self.about.model})"
            raise DataError(f"{problem}, and these have {queries.shape[1]}")
        return unit(unit(np.asarray(queries, np.float32)) @ self.matrix)

    @property
    def size(self) -> int:
        """Numbers in a mapped vector, e."""
        return int(self.matrix.shape[1])

    def cut(self, size: int) -> QueryMap:
        """The map to the first numbers of the old encoder's vectors."""
        return replace(self, matrix=np.ascontiguousarray(self.matrix[:, :size]))

    def save(self, path: Path) -> None:
        """Write a `.safetensors` file.

        Raises:
            OutputError: it cannot be written.
        """
        from safetensors.numpy import save_file

        with atomic_file(path) as temporary:
            save_file({"matrix": np.ascontiguousarray(self.matrix)}, temporary, {"kind": _KIND, **asdict(self.about)})

    @classmethod
    def load(cls, path: Path) -> QueryMap:
        """Read what `save` wrote.

        Raises:
            DataError: it is missing or holds something else.
        """
        from safetensors import safe_open

        try:
            with safe_open(path, "numpy") as file:
                about = file.metadata() or {}
                if about.get("kind") != _KIND:
                    raise ValueError("it was not written by selfsent adapt --from OLD --to NEW")
                return cls._of(about, file.get_tensor("matrix"))
        except Exception as error:  # safetensors raises its own
            raise DataError(f"{path} is no map between two encoders: {first_line(error)}") from error

    @classmethod
    def _of(cls, about: Mapping[str, Any], matrix: Vectors) -> QueryMap:
        if matrix.ndim != 2 or matrix.dtype != np.float32 or not np.isfinite(matrix).all():
            raise ValueError("its matrix is none of finite float32")
        return cls(Mapped(*(str(about[name]) for name in Mapped.__dataclass_fields__)), matrix)

    def write(self, db: sqlite3.Connection) -> None:
        """Put the map into the database of an index, in place of another one."""
        self.remove(db)
        db.execute(f"CREATE TABLE {_TABLE}(about TEXT, matrix BLOB)")
        about = {**asdict(self.about), "rows": len(self.matrix)}
        db.execute(f"INSERT INTO {_TABLE} VALUES(?, ?)", [json.dumps(about), self.matrix.astype("<f4").tobytes()])

    @staticmethod
    def remove(db: sqlite3.Connection) -> None:
        """Take the map out of the database of an index, if there is one."""
        db.execute(f"DROP TABLE IF EXISTS {_TABLE}")

    @classmethod
    def read(cls, db: sqlite3.Connection) -> QueryMap | None:
        """The map in the database of an index.

        Raises:
            ValueError: it is damaged; KeyError, too.
        """
        if not db.execute("SELECT 1 FROM main.sqlite_master WHERE name = ?", [_TABLE]).fetchone():
            return None
        text, content = db.execute(f"SELECT about, matrix FROM {_TABLE}").fetchone()
        about = json.loads(text)
        return cls._of(about, np.frombuffer(content, "<f4").reshape(int(about["rows"]), -1))
