"""Cleaners of text, applied on request before normalisation and splitting: HTML, mail, URLs and separator lines."""

from __future__ import annotations

import html
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from importlib import import_module
from random import Random
from typing import Any

from selfsent import naming
from selfsent.errors import SettingsError, guess

_LONGEST_SIGNATURE = 12
"""Most lines of a signature; text below a rule that is longer, or between rules, is kept."""
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
"""Signs of quoted mail and signatures in a corpus."""


def without_mail(text: str) -> str:
    """A text without quoted and forwarded mail, its headers, and signatures.

    A mail that is forwarded, or quoted without marks, is kept without its headers where nothing is written above it.

    Args:
        text: the body of a mail as plain text.

    Raises:
        SettingsError: quotequail is not installed.
    """
    text = text.replace("\r\n", "\n")
    if not _MAY_BE.search(text):
        return text
    lines = text.split("\n")
    kept: list[str] = []
    written, ruled, at = False, False, 0
    while at < len(lines):
        if _quoted(lines, at):
            at += 1
        elif not ruled and (end := _end_of_signature(lines, at)):
            at = end
        elif begin := _after_introduction(lines, at):
            # Answers are between and below quoted lines; quoted mail without marks goes on to the end.
            if written and not _quoted(lines, _next_filled(lines, begin)):
                break
            at = begin
        else:
            written = written or bool(lines[at].strip())
            ruled = ruled or bool(_RULE.match(lines[at]))
            kept.append(lines[at])
            at += 1
    return "\n".join(kept).strip() if len(kept) < len(lines) else text


def quoted_mail(text: str) -> str:
    r"""What a mail quotes first, line by line, as its author wrote it: without what was quoted there in turn.

    Args:
        text: the body of a mail as plain text.

    Returns:
        Its lines without their marks; empty if none begins with >.

    Raises:
        SettingsError: quotequail is not installed.

    Example:
        >>> quoted_mail("> > Closed?\n> No, the valve is stuck.\n\nThen turn it.")
        'No, the valve is stuck.'
    """
    lines = text.replace("\r\n", "\n").split("\n")
    begin = next((at for at in range(len(lines)) if _quoted(lines, at)), len(lines))
    end = next((at for at in range(begin, len(lines)) if not _quoted(lines, at)), len(lines))
    inner = "\n".join(line.lstrip()[1:].lstrip(" ") for line in lines[begin:end])
    return without_mail(inner) if inner else ""


def _next_filled(lines: Sequence[str], at: int) -> int:
    """The line itself, or the next one that is not blank."""
    while at < len(lines) and not lines[at].strip():
        at += 1
    return at


def _quoted(lines: Sequence[str], at: int) -> bool:
    return at < len(lines) and lines[at].lstrip().startswith(">")


def _end_of_signature(lines: Sequence[str], at: int) -> int | None:
    """The line after a signature that begins at a line; None if none does."""
    if not _SIGNATURE.match(lines[at]):
        return None
    end = at + 1
    while end < len(lines) and not _quoted(lines, end) and not _after_introduction(lines, end):
        if end - at == _LONGEST_SIGNATURE or _RULE.match(lines[end]):
            return None
        end += 1
    return end


def _after_introduction(lines: Sequence[str], at: int) -> int | None:
    """The line after the introduction of a quoted mail, headers included; None if no introduction begins here."""

    def introduces(part: Sequence[str]) -> bool:
        """Whether lines as a whole are a mail program's introduction, which quotequail knows in various languages.

        It gets one or two lines at a time: over a whole text its time grows with the square of the lines.
        """
        text = "\n".join(line.strip() for line in part)
        likely = 8 < len(text) < 1000 and part[-1].rstrip().endswith((":", ">", "-", "_"))
        return likely and not _needed("quotequail").quote(text, quote_intro_line=True)[0][1]

    for end in (at + 1, at + 2):
        if introduces(lines[at:end]) and not (end > at + 1 and introduces(lines[at + 1 : end])):
            return _after_headers(lines, end)
    if _HEADERS.match(lines[at]) and sum(map(bool, map(_HEADER.match, lines[at : at + 4]))) > 1:
        return _after_headers(lines, at)
    return None


def _after_headers(lines: Sequence[str], at: int) -> int:
    """The line after the headers of a mail; the line itself if none begin here or after blank lines."""
    begin = end = _next_filled(lines, at)
    while end < len(lines) and (_HEADER.match(lines[end]) or (end > begin and lines[end][:1] in (" ", "\t"))):
        end += 1
    return end if end > begin else at


_TAGS = (
    "html|head|body|title|meta|style|script|p|div|span|br|hr|a|b|i|u|s|em|strong|small|font|center|pre|code|tt|sub|sup"
    "|h[1-6]|ul|ol|li|dl|dt|dd|table|thead|tbody|tfoot|tr|td|th|img|blockquote|section|article|header|footer|form|input"
)
_TAG = re.compile(rf"</?(?:{_TAGS})(?=[\s/>])[^<>]*>|<!--|<!doctype\b", re.IGNORECASE)
_ENTITY = re.compile(r"&(?:[a-zA-Z]{2,8}[1-4]?|#\d{1,7}|#[xX][0-9a-fA-F]{1,6});")
_NO_ENTITY = re.compile(r"&#\d{100,};?")
_HTML = re.compile(f"{_TAG.pattern}|{_ENTITY.pattern}", re.IGNORECASE)
_BLOCK = re.compile(
    r"</?(?:address|article|aside|blockquote|dd|div|dl|dt|fieldset|figure|footer|form|h[1-6]|header|hr|li|main|nav|ol|p"
    r"|pre|section|table|tbody|td|tfoot|th|thead|tr|ul)(?=[\s/>])",
    re.IGNORECASE,
)
_BREAK = re.compile(r"<br(?=[\s/>])", re.IGNORECASE)
_AS_IT_IS = re.compile(r"<(?:pre|textarea)(?=[\s/>])", re.IGNORECASE)
_UNSEEN = ["head", "script", "style", "template", "noscript"]
_QUOTED = "blockquote,.gmail_quote,.gmail_attr,.gmail_signature,.moz-cite-prefix,.moz-signature,.yahoo_quoted"
_URL = r"(?:\b(?:https?|ftp)://|\bwww\.(?=\w))[^\s<>\"]*[^\s<>\"'.,;:!?)\]}»”’…]"
_URLS = re.compile(rf"(?<=\])\({_URL}\)|<{_URL}>|{_URL}", re.IGNORECASE)
_SEPARATING = r"[=_*~#+^\-\u2010-\u2015\u2500-\u259f]"
_SEPARATORS = re.compile(rf"^[ \t]*+(?:{_SEPARATING}[ \t]*+){{3,}}+\r?$|(?:{_SEPARATING}[ \t]?+){{5,}}+", re.MULTILINE)
"""A line of three such signs or more, or five of them in a row; also with blanks between."""
NUMBERS = "numbers"
"""Texts that are nothing but a number, among what `look` counts."""
_NUMBER = re.compile(r"\A\s*[-+]?[\d.,' ]*\d[\d.,' ]*%?\s*\Z")
_MOST_TAGS = 10_000
"""Tags of a text that is parsed: the time of a parser of HTML grows with the square of their depth."""
_LOOKED_AT, _BEGINNING = 256, 5000
"""Texts sampled from a batch, and characters read of each."""

_VERSION = 1
"""Version of the cleaners; raise it when the output of one changes."""

SIGNS: Mapping[str, re.Pattern[str]] = {"html": _HTML, "mail": MAIL, "urls": _URLS, "separators": _SEPARATORS}
"""Patterns of the cleaners' matches, by name; the cleaners work in this order."""
HELD = {"html": "HTML", "mail": "quoted mail or signatures", "urls": "URLs", "separators": "separator lines"}
"""Description of the matches of a cleaner."""
_PACKAGES = {"html": "selectolax.lexbor", "mail": "quotequail"}
"""Packages of cleaners, which the extra `clean` brings."""
_NOTABLE = {"html": 0.05, "mail": 0.05, "urls": 0.2, "separators": 0.05}
"""Share of the texts from which on a cleaner is recommended."""


class Cleaners:
    """Cleaners by name, and how many texts each of them changed and left empty.

    Args:
        names: some of html, mail, urls and separators, in any order, as a list or between commas.

    Raises:
        SettingsError: there is no such cleaner, or its package is not installed.

    Example:
        >>> Cleaners("urls")(["see https://example.org/a for more"])
        ['see  for more']
    """

    def __init__(self, names: str | Sequence[str] | None) -> None:
        given = naming.names(names)
        for name in given:
            if name not in SIGNS:
                raise SettingsError(f"there is no cleaner {name!r}; {guess(name, SIGNS)}")
        self.names = tuple(name for name in SIGNS if name in given)
        self._changed: Counter[str] = Counter()
        self._emptied: Counter[str] = Counter()
        for name in _PACKAGES.keys() & {*self.names}:
            _needed(_PACKAGES[name])
        self._cleaners: dict[str, Callable[[str], str]] = {
            "html": partial(without_html, quoted_too="mail" in self.names),
            "mail": without_mail,
            "urls": without_urls,
            "separators": partial(_SEPARATORS.sub, " "),
        }

    def options(self) -> list[object]:
        """Cache key of the cleaners, as JSON; empty without any."""
        return ["clean", _VERSION, *self.names] if self.names else []

    def counts(self) -> dict[str, tuple[int, int]]:
        """For each cleaner how many texts it changed, and how many of these it left empty.

        A link that was the target of a tag went with the tag, and counts for both.
        """
        return {name: (self._changed[name], self._emptied[name]) for name in self.names}

    def __call__(self, texts: list[str]) -> list[str]:
        """The cleaned texts, (n,)."""
        for name in self.names:
            cleaned = list(map(self._cleaners[name], texts))
            changed = [(new, old) for new, old in zip(cleaned, texts, strict=True) if new != old]
            self._changed[name] += len(changed)
            if name == "html" and "urls" in self.names:  # addresses that no text shows any more
                self._changed["urls"] += sum(bool(_URLS.search(old)) and not _URLS.search(new) for new, old in changed)
            self._emptied[name] += sum(not new or new.isspace() for new, _ in changed)
            texts = cleaned
        return texts


def _unescaped(text: str) -> str:
    """A text with its entities resolved; numbers of thousands of digits, which Python rejects, are replaced."""
    return html.unescape(_NO_ENTITY.sub("\ufffd", text))


def without_html(text: str, quoted_too: bool = False) -> str:
    """A text without tags and comments, its entities resolved, a blank line where a block begins or ends.

    Args:
        text: text or a whole page.
        quoted_too: quoted mail and signatures go, as mail programs mark them.
    """
    if not _TAG.search(text):
        return _unescaped(text) if _ENTITY.search(text) else text
    if text.count("<") > _MOST_TAGS:
        return _unescaped(_TAG.sub("\n\n", text))
    if (_BLOCK.search(text) or _BREAK.search(text)) and not _AS_IT_IS.search(text):
        # Line ends of the source are spaces in a page, and stay what they are in text with a tag here and there.
        text = " ".join(text.split())
    text = _BREAK.sub(r"\n\g<0>", _BLOCK.sub(r"\n\n\g<0>", text))
    tree = _needed("selectolax.lexbor").LexborHTMLParser(text.encode("utf-8", "replace"))
    tree.strip_tags(_UNSEEN, recursive=True)
    for node in tree.css(_QUOTED) if quoted_too else ():
        node.decompose()
    return str(tree.root.text(deep=True, separator="", strip=False)).strip()


def without_urls(text: str) -> str:
    """A text without addresses that begin with http://, https://, ftp:// or www."""
    return _URLS.sub("", text) if "://" in text or "www." in text.lower() else text


def look(texts: Sequence[str]) -> tuple[int, Counter[str]]:
    """Size of a sample of the texts; for each cleaner the number of texts it would change, and that of `NUMBERS`."""
    chosen = Random(0).sample(texts, min(len(texts), _LOOKED_AT))
    seen = [text[:_BEGINNING] for text in chosen if text]
    signs = {**SIGNS, NUMBERS: _NUMBER}.items()
    return len(seen), Counter(name for text in seen for name, sign in signs if sign.search(text))


def advice(shares: Mapping[str, float], flag: str) -> str | None:
    """A line that recommends cleaners; None if none is needed.

    Args:
        shares: cleaner -> share of the texts, 0 to 1, that it would change.
        flag: prefix of the names of cleaners, such as `clean=`.
    """
    found = [name for name in SIGNS if shares.get(name, 0) >= _NOTABLE[name]]
    line = ", ".join(f"{shares[name]:.0%} {HELD[name]}" for name in found).replace("% ", "% of the texts hold ", 1)
    return f"{line}: add {flag}{','.join(found)}" if found else None


@cache
def _needed(module: str) -> Any:
    try:
        return import_module(module)
    except ImportError:
        package = module.partition(".")[0]
        raise SettingsError(f'`clean` needs {package}: pip install "selfsent[clean]"') from None
