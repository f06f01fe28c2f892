"""Judgements of hits: which texts answer which queries, in a table that grows by one answer at a time."""

from __future__ import annotations

import csv
import io
import threading
from pathlib import Path

from selfsent.display import shortened
from selfsent.errors import DataError, SettingsError
from selfsent.files import check_file, write_text
from selfsent.locks import lock_range

COLUMNS = ("query", "id", "relevant")
"""Columns of the table. Queries written by hand need no `relevant`: all of their ids are right."""
_WORDS = {**dict.fromkeys(("yes", "y", "true"), 1.0), **dict.fromkeys(("no", "n", "false"), 0.0)}
_ONE = threading.Lock()
"""Held while a file is written: locks of files are between processes."""


def plain(value: object) -> str:
    """A query as judgements have it: text with single spaces."""
    return "" if value is None else " ".join(str(value).split())


def written(value: object) -> str:
    """An id as judgements have it: as it is written, as another may differ from it in its spaces alone."""
    return "" if value is None else str(value).strip()


def grade_of(text: str) -> float | None:
    """The grade that a cell of `relevant` stands for; None for an empty one.

    Raises:
        DataError: it is neither a number from 0 nor yes or no.

    Examples:
        >>> grade_of("1"), grade_of("no"), grade_of("")
        (1.0, 0.0, None)
    """
    given = text.strip().casefold()
    if not given:
        return None
    try:
        grade = _WORDS[given] if given in _WORDS else float(given)
    except ValueError:
        grade = -1.0
    if not 0 <= grade < float("inf"):
        raise DataError(f"relevant is {shortened(text, 40)!r}; it is 1 for an answer and 0 for none, or a higher grade")
    return grade


class Judgements:
    """The judgements in a file. Each new one is written at once, and the file is whole at every moment.

    Several threads and processes may judge into one file: what others wrote is read before each answer.

    Args:
        path: a `.csv` file with the columns query and id, and relevant (1 or 0). Read if it exists.
        maximum: number of judgements in a file that is written.

    Raises:
        SettingsError: another suffix.
        DataError: the file cannot be read, or has other columns, which would be lost.
        OutputError: it is no ordinary file.

    Examples:
        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as folder:
        ...     found = Judgements(Path(folder) / "mine.csv")
        ...     found.judge("printer is dead", "T-17", True)
        ...     found.of("printer is dead", "T-17")
        True
    """

    def __init__(self, path: Path, maximum: int = 20_000) -> None:
        self.maximum = maximum
        if path.suffix != ".csv":
            raise SettingsError(f"{path} must end in .csv: judgements are a table of query, id and relevant")
        check_file(path)
        self.path, self._given = path, _read(path)

    def __len__(self) -> int:
        return sum(grade is not None for grade in self._given.values())

    @property
    def queries(self) -> int:
        """The number of queries that have an answer."""
        return len({query for (query, _), grade in self._given.items() if grade})

    def of(self, query: str, name: object) -> bool | None:
        """Whether the text with this id answers a query; None if nobody has judged it."""
        grade = self._given.get((plain(query), written(name)))
        return None if grade is None else grade > 0

    def judge(self, query: str, name: object, relevant: bool | None) -> None:
        """Write one judgement; None takes it back.

        Raises:
            DataError: the query or the id is empty; `maximum` judgements are there; or the file was damaged meanwhile.
            OutputError: it cannot be written.
        """
        key = plain(query), written(name)
        if not all(key):
            raise DataError("a judgement needs a query and an id")
        with _ONE, lock_range(self.path.with_name(f".{self.path.name}.lock"), 0, 1, patient=True):
            given = _read(self.path)
            if relevant is None:
                given.pop(key, None)
            else:
                given[key] = float(relevant)
            if len(given) > self.maximum:
                raise DataError(f"{self.path} has {self.maximum:,} judgements, the maximum: use another file")
            table = io.StringIO()
            rows = ((*pair, "" if grade is None else f"{grade:g}") for pair, grade in given.items())
            csv.writer(table, lineterminator="\n").writerows([COLUMNS, *rows])
            write_text(self.path, table.getvalue())
            self._given = given


def _read(path: Path) -> dict[tuple[str, str], float | None]:
    """The grade of each query and id; None for one that waits for its judgement."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            rows = [row for row in csv.reader(file) if row]
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, csv.Error) as error:
        raise DataError(f"{path} cannot be read: {error}") from error
    if not rows:
        return {}
    heading, found = tuple(cell.strip() for cell in rows[0]), dict[tuple[str, str], float | None]()
    if heading not in (COLUMNS, COLUMNS[:2]) or any(len(row) != len(heading) for row in rows):
        raise DataError(f"{path} must have the columns query, id and relevant, and no others: use another file")
    for query, name, *cells in rows[1:]:
        try:
            grade = grade_of(cells[0]) if cells else 1.0
        except DataError as error:
            raise DataError(f"{path}: {error}") from error
        found[plain(query), written(name)] = grade
    return found
