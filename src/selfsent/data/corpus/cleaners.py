"""Cleaners of text, applied on request before normalisation and splitting: HTML, mail, URLs and separator lines."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib import import_module
from random import Random
from typing import Any

from selfsent import naming
from selfsent.data.corpus.mail import has_mail, without_mail
from selfsent.data.corpus.markup import has_html, without_html
from selfsent.errors import SettingsError, guess, install

_URL = r"(?:\b(?:https?|ftp)://|\bwww\.(?=\w))[^\s<>\"]*[^\s<>\"'.,;:!?)\]}»”’…]"
_URLS = re.compile(rf"(?<=\])\({_URL}\)|<{_URL}>|{_URL}", re.IGNORECASE)
_SEPARATING = r"[=_*~#+^\-\u2010-\u2015\u2500-\u259f]"
_SEPARATORS = re.compile(rf"^[ \t]*+(?:{_SEPARATING}[ \t]*+){{3,}}+\r?$|(?:{_SEPARATING}[ \t]?+){{5,}}+", re.MULTILINE)
"""A line of three such signs or more, or five of them in a row; also with blanks between."""
NUMBERS = "numbers"
"""Texts that are nothing but a number, among what `look` counts."""
_NUMBER = re.compile(r"\A\s*[-+]?[\d.,' ]*\d[\d.,' ]*%?\s*\Z")
_LOOKED_AT, _BEGINNING = 256, 5000
"""Texts sampled from a batch, and characters read of each."""

_VERSION = 2
"""Version of the cleaners; raise it when the output of one changes."""

SIGNS: Mapping[str, Callable[[str], object]] = {
    "html": has_html,
    "mail": has_mail,
    "urls": _URLS.search,
    "separators": _SEPARATORS.search,
}
"""Whether a text has what a cleaner takes out, by name; the cleaners work in this order."""
HELD = {"html": "HTML", "mail": "quoted mail or signatures", "urls": "URLs", "separators": "separator lines"}
"""Description of the matches of a cleaner."""
_NOTABLE = {"html": 0.05, "mail": 0.05, "urls": 0.2, "separators": 0.05}
"""Share of the texts from which on a cleaner is recommended."""


class Cleaners:
    """Cleaners by name, and how many texts each of them changed and left empty.

    Args:
        names: some of html, mail, urls and separators, in any order, as a list or between commas.

    Raises:
        SettingsError: there is no such cleaner, or its package is not installed.

    Examples:
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
        if "html" in self.names:
            html_parser()
        self._cleaners: dict[str, Callable[[str], str]] = {
            "html": lambda text: without_html(text, html_parser(), "mail" in self.names),
            "mail": without_mail,
            "urls": without_urls,
            "separators": lambda text: _SEPARATORS.sub(" ", text),
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


def without_urls(text: str) -> str:
    """A text without addresses that begin with http://, https://, ftp:// or www."""
    return _URLS.sub("", text) if "://" in text or "www." in text.lower() else text


def look(texts: Sequence[str]) -> tuple[int, Counter[str]]:
    """Size of a sample of the texts; the number of texts that each cleaner would change, and of `NUMBERS`."""
    chosen = Random(0).sample(texts, min(len(texts), _LOOKED_AT))
    seen = [text[:_BEGINNING] for text in chosen if text]
    signs: dict[str, Callable[[str], object]] = {**SIGNS, NUMBERS: _NUMBER.search}
    return len(seen), Counter(name for text in seen for name, sign in signs.items() if sign(text))


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
def html_parser() -> Any:
    """The parser of HTML.

    Raises:
        SettingsError: it is not installed.
    """
    try:
        return import_module("selectolax.lexbor").LexborHTMLParser
    except ImportError:
        raise SettingsError(f"`clean` needs selectolax: {install('clean')}") from None
