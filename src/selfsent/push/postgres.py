"""PostgreSQL with pgvector: one statement ranks by the sum of two inner products."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from numpy.typing import NDArray

from selfsent.lexical.bm25 import TERMS
from selfsent.push.target import (
    DIGEST,
    EMBEDDING,
    KEY,
    LENGTH,
    OWN,
    TEXT,
    WORDS,
    Address,
    Record,
    Stamp,
    Target,
    client,
)

_TYPES = {str: "text", int: "bigint", float: "double precision", bool: "boolean"}


def search(collection: Any, vector: Any, terms: dict[int, float], weight: float, limit: int = 10) -> list[Any]:
    """Rows by dense + weight · lexical, best first, among the 300 nearest and the 300 best by words."""
    from psycopg import sql
    from psycopg.rows import dict_row

    database, name = collection
    statement = sql.SQL("""
        WITH near AS (SELECT selfsent_key FROM {table} WHERE NOT selfsent_repeats
                      ORDER BY embedding <#> %(vector)s::vector LIMIT %(depth)s),
             alike AS (SELECT selfsent_key FROM {table} WHERE NOT selfsent_repeats
                       ORDER BY words <#> %(words)s::sparsevec LIMIT %(depth)s)
        SELECT * FROM {table} WHERE selfsent_key IN (TABLE near UNION TABLE alike)
        ORDER BY (embedding <#> %(vector)s::vector) + %(weight)s * (words <#> %(words)s::sparsevec) LIMIT %(limit)s
    """).format(table=sql.Identifier(name))
    values: dict[str, Any] = {
        "vector": str([float(x) for x in vector]),
        "weight": weight,
        "limit": limit,
        "depth": max(300, limit),
    }
    # pgvector counts dimensions from 1.
    values["words"] = f"{{{','.join(f'{n + 1}:{weight}' for n, weight in sorted(terms.items()))}}}/{2**29}"
    with database.cursor(row_factory=dict_row) as cursor:
        rows = cursor.execute(statement, values).fetchall()
    return [{field: value for field, value in row.items() if field not in ("embedding", "words")} for row in rows]


class Postgres(Target):
    """A table; user, password and the rest come from libpq's variables, such as `PGPASSWORD`."""

    packages = ("psycopg[binary]",)
    imports = "import psycopg\n"
    code = 'collection = psycopg.connect("postgresql://{place}", autocommit=True), {name!r}'

    def __init__(self, address: Address) -> None:
        psycopg = client("psycopg", self.packages)
        type(self).errors = (OSError, ValueError, psycopg.Error)
        self._sql, self._name = client("psycopg.sql", self.packages), address.name
        self._table = self._sql.Identifier(address.name)
        self._db = psycopg.connect(f"postgresql://{address.place}", autocommit=True)

    def _run(self, statement: str, values: Any = None, **names: Any) -> Any:
        return self._db.execute(self._sql.SQL(statement).format(table=self._table, **names), values)

    def stamps(self) -> Iterable[Stamp]:
        """Keys and digests of its rows."""
        if self._run("SELECT to_regclass(quote_ident(%s))", [self._name]).fetchone()[0] is None:
            return
        with self._db.transaction(), self._db.cursor("stamps") as cursor:
            cursor.itersize = 10_000
            cursor.execute(self._sql.SQL(f"SELECT {KEY}, {DIGEST}, {LENGTH} FROM {{}}").format(self._table))
            yield from cursor

    def size(self) -> int | None:
        """Dimension of the vectors."""
        about = "SELECT atttypmod FROM pg_attribute WHERE attrelid = to_regclass(quote_ident(%s)) AND attname = %s"
        found = self._run(about, [self._name, EMBEDDING]).fetchone()
        return int(found[0]) if found else None

    def create(self, size: int, columns: dict[str, type]) -> None:
        """Make the table, and pgvector's types, which takes a right that not every user has."""
        self._run("CREATE EXTENSION IF NOT EXISTS vector")
        fields = {**OWN, **columns, TEXT: str}
        types = [self._sql.SQL(f"{{}} {_TYPES[kind]}").format(self._sql.Identifier(n)) for n, kind in fields.items()]
        about = f"{{fields}}, {EMBEDDING} vector({size}), {WORDS} sparsevec({TERMS}), PRIMARY KEY ({KEY})"
        self._run(f"CREATE TABLE {{table}} ({about})", fields=self._sql.SQL(", ").join(types))

    def upsert(self, new: Sequence[Record], changed: Sequence[Record]) -> None:
        """Write rows, all or none."""
        records = (*new, *changed)
        names = [*records[0].fields, EMBEDDING, WORDS]
        fields = self._sql.SQL(", ").join(map(self._sql.Identifier, names))
        marks = self._sql.SQL(", ").join([self._sql.Placeholder()] * len(names))
        others = [self._sql.SQL("{0} = EXCLUDED.{0}").format(self._sql.Identifier(n)) for n in names if n != KEY]
        insert = f"INSERT INTO {{table}} ({{fields}}) VALUES ({{marks}}) ON CONFLICT ({KEY}) DO UPDATE SET {{others}}"
        parts = {"fields": fields, "marks": marks, "others": self._sql.SQL(", ").join(others)}
        statement = self._sql.SQL(insert).format(table=self._table, **parts)
        with self._db.transaction(), self._db.cursor() as cursor:
            cursor.executemany(statement, [_values(each) for each in records])

    def delete(self, keys: Sequence[int]) -> None:
        """Remove rows."""
        self._run(f"DELETE FROM {{table}} WHERE {KEY} = ANY(%s)", [list(keys)])

    def search(self, vector: NDArray[Any], terms: dict[int, float], weight: float, limit: int) -> list[dict[str, Any]]:
        """The best rows."""
        return search((self._db, self._name), vector, terms, weight, limit)

    def close(self) -> None:
        """Leave the server."""
        self._db.close()


def _values(record: Record) -> list[Any]:
    """The cells of a row; PostgreSQL holds no text with a NUL."""
    cells = [each.replace("\0", "") if isinstance(each, str) else each for each in record.fields.values()]
    return [*cells, str(record.vector.tolist()), _sparse(record.terms)]


def _sparse(terms: Mapping[int, float]) -> str:
    """A sparse vector in pgvector's form, which counts dimensions from 1."""
    return f"{{{','.join(f'{number + 1}:{weight}' for number, weight in sorted(terms.items()))}}}/{TERMS}"
