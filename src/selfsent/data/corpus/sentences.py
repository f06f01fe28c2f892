"""A small rule-based sentence splitter: abbreviations, initials, decimals, quotes, full stops of other scripts."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

_PARAGRAPH = re.compile(r"\n[^\S\n]*\n\s*")
_STOPS, _ALWAYS = ".!?…؟۔", "。！？｡．।॥။።។"
"""Stops that end a sentence when white space and a likely beginning follow, and stops that always do."""
_STOP = re.compile(
    # `re` finds a class of characters quickly if the pattern begins with it. A run of stops matches from its first one
    # only, which takes linear time.
    f"[{_STOPS}{_ALWAYS}](?:"
    rf"(?<=[{_STOPS}])(?<![{_STOPS}].)[{_STOPS}]*[\"'”’»)\]]*(?=\s|\Z)"
    rf"|(?<=[{_ALWAYS}])[{_ALWAYS}]*+[」』”’）》\"']*+(?!(?<=[」』])[とっ]))"
)
_OPENING = "\"'“‘«([{*_「『（《-–—"
_BEFORE = 24
"""Characters that are read on each side of a stop."""


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


_ABBREVIATIONS = _set(
    "mr mrs ms dr prof rev hon gen col lt sgt capt sen rep gov pres st jr sr mt ft messrs mme mlle "
    "vs cf eg ie al approx ca resp incl excl esp viz fig figs eq eqs sec ch chap vol pp ed eds tab ref refs "
    "inc ltd corp co dept univ assn bros est jan feb mar apr jun jul aug sep sept oct nov dec "
    "e.g i.e a.k.a u.k"
) | _set(
    "z.b bzw d.h usw abb nr vgl bspw evtl ggf inkl zzgl dipl ing sog geb gest mio mrd "  # German
    "mgr mlles p.ex sra srta dra ud uds págs núm aprox ee.uu exmo exma dott sig.ra "  # French, Spanish, Italian
    "sig डॉ bijv o.a d.w.z t.ex bl.a f.eks dvs osv m.a.o esim np tzw ul tzn m.in např tzv tj kupř "  # Dutch to Czech
    "örn çev bkz т.е т.к ул рис стр см напр тыс млн млрд κ.λπ π.χ δηλ"  # Turkish, Russian, Greek
)
_MONTHS = _set("januar jänner februar märz april mai juni juli august september oktober november dezember")
"""After a day in German: other languages with a full stop there write months in small letters."""
_DAY_AND_MONTH = re.compile(r"(?<!\d)(?:0?[1-9]|[12]\d|3[01])\.\s?(?:0?[1-9]|1[0-2])$")
_YEAR = re.compile(r"(?:19|20)\d\d\b")
_MONTH_AND_YEAR = re.compile(rf"(?:0?[1-9]|1[0-2])\.\s?{_YEAR.pattern}")
"""Parts of a date in digits with spaces, as in Czech and German: `12. 3. 2025`."""
_SPACED = re.compile(r"(?<![\w.])[^\W\d_]\.\s[^\W\d_]$")
"""The end of an abbreviation with a space within, such as `z. B`, before its last full stop."""
_BEFORE_NUMBERS = _set("no nos p pp art par para vol fig eq sec ch line v n abs bd kap rn str tel č čl")
_SPECIAL = _ABBREVIATIONS | _BEFORE_NUMBERS
_DATED = re.compile("|".join((r"\d", *sorted(_MONTHS))), re.IGNORECASE)
"""What may follow the day or the month of a date."""
_STARTERS = _set(
    "the this that these those it he she we they you i in on at but and so if when while there here however a an as "
    "for its his her their our my what who why how then thus yet or no not after before"
)


def split_sentences(text: str) -> list[str]:
    """Sentences of a text, in order; blank lines always end one. Linear in the length of the text.

    Args:
        text: running text of any length, line breaks included.

    Returns:
        The sentences, stripped, none of them empty.
    """
    return next(split_texts((text,)))


def split_texts(texts: Iterable[str]) -> Iterator[list[str]]:
    """The sentences of each of many texts, in order; see `split_sentences`."""
    for text in texts:
        parts: list[str] = []
        for paragraph in _PARAGRAPH.split(text):
            start = 0
            for stop in _STOP.finditer(paragraph):
                at, end = stop.span()
                if paragraph[at] not in _ALWAYS:
                    ahead = paragraph[end : end + _BEFORE].lstrip().lstrip(_OPENING)
                    if ahead[:1].islower():
                        continue
                    if paragraph[at] == ".":
                        words = paragraph[max(start, at - _BEFORE) : at].split()
                        word = words[-1].lstrip(_OPENING) if words else ""
                        is_word = len(word) > 1 and word.isalpha() and word.lower() not in _SPECIAL
                        is_number = len(words) > 1 and word.isdecimal() and not _DATED.match(ahead)
                        if not (is_word or is_number) and _goes_on(paragraph, start, at, word, ahead):
                            continue
                parts.append(paragraph[start:end].strip())
                start = end
            parts.append(paragraph[start:].strip())
        yield [part for part in parts if part]


def _goes_on(text: str, start: int, at: int, word: str, ahead: str) -> bool:
    """Whether the sentence from `start` goes on after the full stop at `at`, between a word and the text ahead."""
    before = text[max(start, at - _BEFORE) : at]
    is_list_number = word.isdigit() and before.strip() == word and at - start <= _BEFORE
    first = re.split(r"\W", ahead, maxsplit=1)[0]
    is_day = word.isdigit() and len(word) <= 2 and first.lower() in _MONTHS and first[:1].isupper()
    is_day = is_day or (word.isdecimal() and bool(_MONTH_AND_YEAR.match(ahead)))
    is_month = bool(_YEAR.match(ahead) and _DAY_AND_MONTH.search(before))
    begins = len(word) == 1 and word.islower() and len(first) == 1 and ahead[1:2] == "."
    spaced = bool(_SPACED.search(before)) and first.lower() not in _STARTERS
    return is_list_number or is_day or is_month or begins or spaced or _abbreviates(word, ahead)


def _abbreviates(word: str, ahead: str) -> bool:
    """Whether the full stop after `word` belongs to the word rather than to the sentence."""
    if word.lower() in _ABBREVIATIONS:
        return True
    if ahead[:1].isdigit() and word.lower() in _BEFORE_NUMBERS:
        return True
    if len(word) == 1 and word.isupper() and word != "I":
        return True
    dotted = "." in word and all(len(part) == 1 and part.isalpha() for part in word.split("."))
    return dotted and re.split(r"\W", ahead, maxsplit=1)[0].lower() not in _STARTERS
