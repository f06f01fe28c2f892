"""Long texts to passages: so many words each, at the ends of sentences, headings kept with what follows."""

from __future__ import annotations

import re
from dataclasses import dataclass

from selfsent.data.corpus.clean import UNSPACED
from selfsent.data.corpus.sentences import split_sentences
from selfsent.errors import SettingsError

OVERLAP = 6
"""A passage begins with the last sentences of the one before, up to this fraction of its words."""
SHORTEST, LONGEST = 10, 10_000
"""Minimum and maximum words of a passage."""
_HEADING = re.compile(r"[^\S\n]{0,3}#{1,6}[^\S\n]+\S.*")
_UNDERLINED = re.compile(r"(?m)^[^\S\n]{0,3}(\S[^\n]*)\n[^\S\n]{0,3}(?:={3,}|-{3,})[^\S\n]*$")
_SIGNS_OF_A_WORD = 2
"""Signs that count as a word in scripts without spaces."""


@dataclass(frozen=True)
class _Piece:
    """A sentence, a part of a long one, or a heading."""

    text: str
    words: int
    heading: bool = False


def check_passages(words: int | None) -> None:
    """Check the length of passages.

    Raises:
        SettingsError: not between `SHORTEST` and `LONGEST` words.
    """
    if words is not None and not SHORTEST <= words <= LONGEST:
        raise SettingsError(f"passages is {words}; it must be at least {SHORTEST} and at most {LONGEST:,} words")


def split_passages(text: str, words: int) -> list[str]:
    """Passages of a text, in order: at most so many words each, and a sixth of these from the passage before.

    A passage ends where a sentence does, and before a heading (Markdown's `#` or underlined) if it is half full. A
    heading stands with what follows it, so that a passage may be longer by one, and what begins with it has no overlap.
    A longer sentence is cut between words.

    Args:
        text: running text of any length, line breaks included.
        words: of a passage; in scripts without spaces two signs count as one.

    Examples:
        >>> split_passages("One two three four. Five six. Seven eight nine. Ten.", 5)
        ['One two three four.', 'Five six. Seven eight nine.', 'Ten.']
    """
    found, current, count = list[str](), list[_Piece](), 0
    pieces = _pieces(text, words)
    for place, piece in enumerate(pieces):
        following = pieces[place + 1].words if piece.heading and place + 1 < len(pieces) else 0
        full = count + piece.words + following > words or (piece.heading and 2 * count >= words)
        if current and full and not (current[-1].heading and 2 * count < words):
            found.append(" ".join(each.text for each in current))
            kept = [] if piece.heading else _overlap(current, min(words // OVERLAP, words - piece.words))
            current, count = kept, sum(each.words for each in kept)
        current.append(piece)
        count += piece.words
    return [*found, " ".join(each.text for each in current)] if current else found


def _overlap(pieces: list[_Piece], words: int) -> list[_Piece]:
    """The last whole sentences with at most so many words."""
    count = 0
    for number, piece in enumerate(reversed(pieces)):
        count += piece.words
        if count > words or piece.heading:
            return pieces[len(pieces) - number :]
    return []


def _pieces(text: str, words: int) -> list[_Piece]:
    """The sentences and headings of a text, none of them longer than so many words."""
    found = list[_Piece]()
    for part, heading in _parts(_UNDERLINED.sub(r"# \1", text)):
        for sentence in [part] if heading else split_sentences(part):
            found += [_Piece(each, _count(each), heading) for each in _cut(sentence, words)]
    return found


def _parts(text: str) -> list[tuple[str, bool]]:
    """Running text and headings, in order."""
    found, running = list[tuple[str, bool]](), list[str]()
    for line in text.split("\n"):
        if _HEADING.fullmatch(line):
            found += [("\n".join(running), False), (line.strip(), True)]
            running = []
        else:
            running.append(line)
    return [(part, heading) for part, heading in [*found, ("\n".join(running), False)] if part.strip()]


def _count(text: str) -> int:
    unspaced = len(UNSPACED.findall(text))
    return len(UNSPACED.sub(" ", text).split() if unspaced else text.split()) + -(-unspaced // _SIGNS_OF_A_WORD)


def _cut(sentence: str, words: int) -> list[str]:
    """A sentence in parts of at most so many words."""
    if _count(sentence) <= words:
        return [sentence]
    units = re.findall(rf"{UNSPACED.pattern}|(?:(?!{UNSPACED.pattern})\S)+|\s+", sentence)
    found, start, count = list[str](), 0, 0.0
    for place, unit in enumerate(units):
        weight = 0 if unit.isspace() else 1 / _SIGNS_OF_A_WORD if UNSPACED.fullmatch(unit) else 1
        if count + weight > words:
            found.append("".join(units[start:place]).strip())
            start, count = place, 0
        count += weight
    return [*found, "".join(units[start:]).strip()]
