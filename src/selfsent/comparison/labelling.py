"""Judgements of pairs by a human: a file that grows with every answer, and that can be gone on with later."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from selfsent.errors import DataError
from selfsent.evaluation.tasks.own import PAIRS
from selfsent.files import write_text

KEYS = {**{str(score): score for score in range(6)}, "y": 5, "n": 0}
"""What can be answered, and the score it means."""
Pair = tuple[str, str]


class Judgements:
    """The answers so far, and the pairs that are still to be judged.

    Args:
        path: a tab-separated file with a heading: sentence1, sentence2, score. It is read if it is there.
        pairs: those to be judged, in order; what the file holds already is not asked again.

    Raises:
        DataError: the file cannot be read, or is something else.

    Example:
        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as folder:
        ...     found = Judgements(Path(folder) / "pairs.tsv", [("a car", "an auto"), ("a car", "a cat")])
        ...     found.answer("y")
        ...     found.next
        ('a car', 'a cat')
    """

    def __init__(self, path: Path, pairs: Sequence[Pair]) -> None:
        self.path, self.answers = path, _read(path)
        known = {frozenset(pair) for pair in self.answers}
        self.todo = [pair for pair in map(_plain, pairs) if frozenset(pair) not in known]
        self.given: list[Pair] = []
        """Those answered now, which can be undone."""

    @property
    def next(self) -> Pair | None:
        """The pair to be judged; None where all are."""
        return self.todo[0] if self.todo else None

    def answer(self, key: str) -> None:
        """Keep the answer to the next pair: one of KEYS."""
        pair = self.todo.pop(0)
        self.answers[pair] = float(KEYS[key])
        self.given.append(pair)
        self._write()

    def undo(self) -> bool:
        """Take the last answer back, so that its pair comes again; whether there was one."""
        if not self.given:
            return False
        pair = self.given.pop()
        del self.answers[pair]
        self.todo.insert(0, pair)
        self._write()
        return True

    def skip(self) -> None:
        """Leave the next pair out, until the command is started again."""
        self.todo.pop(0)

    def _write(self) -> None:
        lines = ["\t".join(PAIRS), *(f"{a}\t{b}\t{score:g}" for (a, b), score in self.answers.items())]
        write_text(self.path, "\n".join(lines) + "\n")


def _plain(pair: Pair) -> Pair:
    """Both texts on one line, without tabs."""
    return " ".join(pair[0].split()), " ".join(pair[1].split())


def _read(path: Path) -> dict[Pair, float]:
    if not path.exists():
        return {}
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{path} cannot be gone on with: {error}; use another --output") from error
    found: dict[Pair, float] = {}
    for number, line in enumerate(lines, 1):
        fields = line.split("\t")
        if fields == list(PAIRS) and number == 1:
            continue
        try:
            found[fields[0], fields[1]] = float(fields[2])
        except (IndexError, ValueError):
            raise DataError(f"{path}, line {number}: not written by selfsent label; use another --output") from None
    return found
