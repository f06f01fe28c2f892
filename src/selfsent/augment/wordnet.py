"""A reader of WordNet's own files."""

from __future__ import annotations

from bisect import bisect_left
from functools import lru_cache
from pathlib import Path
from typing import Literal

from selfsent.errors import SettingsError

Part = Literal["noun", "verb", "adj", "adv"]
PARTS: tuple[Part, ...] = ("noun", "verb", "adj", "adv")
_DIRECTORIES = (
    *("/usr/share/wordnet", "/usr/share/wordnet/dict"),
    *("/usr/local/WordNet-3.0/dict", "/opt/homebrew/share/wordnet"),
)
_TYPES: dict[str, Part] = {"1": "noun", "2": "verb", "3": "adj", "4": "adv", "5": "adj"}


class WordNet:
    """WordNet in a directory (Miller 1995); words in lower case, spaces as underscores.

    Args:
        directory: of `index.noun`, `data.noun` and so on; None searches where packages install it.

    Raises:
        SettingsError: files are missing.
    """

    def __init__(self, directory: str | Path | None = None) -> None:
        self.directory = find_wordnet(directory)
        try:
            self._index = {part: (self.directory / f"index.{part}").read_bytes().splitlines() for part in PARTS}
            self._data = {part: (self.directory / f"data.{part}").read_bytes() for part in PARTS}
        except OSError as error:
            raise SettingsError(f"{self.directory} cannot be read as WordNet: {error}") from None
        self._counts = _read_counts(self.directory / "cntlist.rev")
        self.senses = lru_cache(1 << 16)(self._senses)

    def count(self, lemma: str, part: Part) -> int:
        """Frequency of a lemma as this part of speech in WordNet's tagged texts; 0 if unlisted."""
        return self._counts.get((lemma, part), 0)

    def _senses(self, lemma: str, part: Part) -> tuple[tuple[str, ...], ...]:
        """The words of each sense of a lemma, itself among them, most frequent sense first."""
        line = self._line(lemma, part)
        if not line:
            return ()
        fields = line.split()
        return tuple(self._words(int(offset), part) for offset in fields[-int(fields[2]) :])

    def _words(self, offset: int, part: Part) -> tuple[str, ...]:
        data = self._data[part]
        fields = data[offset : data.find(b"\n", offset)].decode("ascii", "replace").split()
        count = int(fields[3], 16)
        # Adjectives may carry a marker of their position, as in galore(ip).
        return tuple(word.partition("(")[0] for word in fields[4 : 4 + 2 * count : 2])

    def _line(self, lemma: str, part: Part) -> str:
        """The line of a lemma in the index (sorted by bytes); empty if missing."""
        lines, start = self._index[part], lemma.encode() + b" "
        row = bisect_left(lines, start)
        found = row < len(lines) and lines[row].startswith(start)
        return lines[row].decode("ascii", "replace") if found else ""


def find_wordnet(directory: str | Path | None) -> Path:
    """The directory of WordNet.

    Raises:
        SettingsError: it is missing.
    """
    paths = [Path(directory).expanduser()] if directory else [Path(path) for path in _DIRECTORIES]
    for path in paths:
        if all((path / f"{kind}.{part}").is_file() for kind in ("index", "data") for part in PARTS):
            return path
    where = f"in {directory or _DIRECTORIES[0]} (index.noun, data.noun ...)"
    raise SettingsError(f"WordNet is not {where}: install Debian's wordnet-base, or set `wordnet`")


def _read_counts(path: Path) -> dict[tuple[str, Part], int]:
    counts: dict[tuple[str, Part], int] = {}
    for line in path.read_text("ascii", "replace").splitlines() if path.is_file() else []:
        key, _, count = line.split()
        lemma, _, rest = key.partition("%")
        word = lemma, _TYPES[rest[0]]
        counts[word] = counts.get(word, 0) + int(count)
    return counts
