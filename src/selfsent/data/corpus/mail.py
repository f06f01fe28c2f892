"""Removal of quoted and forwarded mail, and of signatures.

How mail programs introduce a mail that they quote or forward, in various languages, is known to quotequail. It is asked
about one or two lines at a time: over a whole text its time grows with the square of the lines.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

Quote = Callable[..., list[tuple[bool, str]]]
"""`quotequail.quote`."""

_SHORTEST, _LONGEST = 8, 1000
"""Exclusive bounds on the characters of the lines that introduce a mail."""
_LONGEST_SIGNATURE = 12
"""Lines of a signature: what is longer is text below a rule, and so is what stands between rules."""
_ENDS = (":", ">", "-", "_")
_MOBILE = (
    "(?:sent from my|sent from outlook|get outlook for|gesendet von mein|von meinem .{1,40} gesendet|envoyé depuis mon"
    r"|envoyé de mon|enviado desde mi|inviato da|verzonden vanaf mijn|skickat från min)\b"
)
_FROM = r"\**(?:from|von|de|da|van|från|от кого|от)\**[ \t]?:"
_RULE = re.compile(r"[ \t]*(?:--|__)[ \t]*$")
_SIGNATURE = re.compile(rf"{_RULE.pattern}|[ \t]*{_MOBILE}", re.IGNORECASE)
_HEADERS = re.compile(rf"[ \t]*{_FROM}", re.IGNORECASE)
_HEADER = re.compile(r"[ \t]*\**[^\W\d_][-\w ]{1,20}\**[ \t]?:")
_MAY_BE = re.compile(rf"^[ \t]*(?:>|{_FROM}|{_MOBILE})|[:>_-][ \t]*$", re.IGNORECASE | re.MULTILINE)

MAIL = re.compile(
    rf"^[ \t]*>(?!>).*\n[ \t]*>|\b(?:wrote|schrieb.{{0,80}}|a écrit|escribió|escreveu)[ \t]?:[ \t]*$"
    rf"|^-{{3,}} ?(?:original|forwarded|ursprüngliche|weitergeleitete) \w+ ?-{{3,}}|^{_FROM}.{{1,200}}\n[^\n:]{{2,20}}:"
    rf"|^--[ \t]*\n(?:(?!--).*\n){{0,11}}(?!--).*\Z|^{_MOBILE}",
    re.IGNORECASE | re.MULTILINE,
)
"""Signs of mail, by which a look at a corpus finds it."""


def without_mail(text: str, quote: Quote) -> str:
    """A text without quoted and forwarded mail, its headers, and signatures.

    Where nothing stands above a mail that is forwarded, or quoted without marks, it is the text, and only its headers
    go.

    Args:
        text: the body of a mail as plain text.
        quote: `quotequail.quote`.
    """
    if "\r" in text:
        text = text.replace("\r\n", "\n")
    if not _MAY_BE.search(text):
        return text
    lines = text.split("\n")
    kept: list[str] = []
    said, ruled, at = False, False, 0
    while at < len(lines):
        if _quoted(lines, at):
            at += 1
        elif not ruled and (end := _end_of_signature(lines, at, quote)):
            at = end
        elif begin := _behind_introduction(lines, at, quote):
            # Answers stand between quoted lines, and below them; quoted mail without marks goes on to the end.
            if said and not _quoted(lines, begin, skip_blank=True):
                break
            at = begin
        else:
            said = said or bool(lines[at].strip())
            ruled = ruled or bool(_RULE.match(lines[at]))
            kept.append(lines[at])
            at += 1
    return "\n".join(kept).strip() if len(kept) < len(lines) else text


def _quoted(lines: Sequence[str], at: int, skip_blank: bool = False) -> bool:
    """Whether a line, or the next one that is not blank, is marked as quoted."""
    while skip_blank and at < len(lines) and not lines[at].strip():
        at += 1
    return at < len(lines) and lines[at].lstrip().startswith(">")


def _end_of_signature(lines: Sequence[str], at: int, quote: Quote) -> int | None:
    """The line behind a signature that begins at a line; None where none does."""
    if not _SIGNATURE.match(lines[at]):
        return None
    end = at + 1
    while end < len(lines) and not _quoted(lines, end) and not _behind_introduction(lines, end, quote):
        if end - at == _LONGEST_SIGNATURE or _RULE.match(lines[end]):
            return None
        end += 1
    return end


def _behind_introduction(lines: Sequence[str], at: int, quote: Quote) -> int | None:
    """The line behind what introduces a mail at a line, its headers included; None where nothing does."""
    for end in (at + 1, at + 2):
        if _introduces(lines[at:end], quote) and not (end > at + 1 and _introduces(lines[at + 1 : end], quote)):
            return _behind_headers(lines, end)
    if _HEADERS.match(lines[at]) and sum(map(bool, map(_HEADER.match, lines[at : at + 4]))) > 1:
        return _behind_headers(lines, at)
    return None


def _introduces(lines: Sequence[str], quote: Quote) -> bool:
    """Whether lines are, as a whole, what a mail program writes above a mail."""
    if not lines or not lines[-1].rstrip().endswith(_ENDS):
        return False
    text = "\n".join(line.strip() for line in lines)
    return _SHORTEST < len(text) < _LONGEST and not quote(text, quote_intro_line=True)[0][1]


def _behind_headers(lines: Sequence[str], at: int) -> int:
    """The line behind the headers of a mail, if such begin at a line or behind blank ones."""
    begin = at
    while begin < len(lines) and not lines[begin].strip():
        begin += 1
    end = begin
    while end < len(lines) and (_HEADER.match(lines[end]) or (end > begin and lines[end][:1] in (" ", "\t"))):
        end += 1
    return end if end > begin else at
