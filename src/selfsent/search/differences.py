"""Differences between a text and its near-copy, and changes that make another text of it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Container, Iterable, Sequence
from difflib import SequenceMatcher
from functools import cache
from typing import Literal

from selfsent.data.corpus.clean import UNSPACED
from selfsent.display import shortened
from selfsent.lexical.analyzer import combining_marks, fold

Guard = Literal["numbers", "negations", "names", "order"]
"""A change that two texts of one family may not have."""

_NUMBER = re.compile(r"\d+(?:[.,:/-]\d+)*")
_NEGATION = re.compile(
    r"(?<!\w)(?:no|not|nor|never|none|nobody|nothing|nowhere|neither|cannot|without|\w+n['’]t|"
    r"nicht|nichts|kein\w{0,2}|nie|niemals|niemand|ohne|ne|pas|jamais|aucune?|sans|non|nunca|nadie|ning[uú]n\w?|sin|"
    r"senza|nessun[oa]?|não|sem|nenhuma?|niet|niets|geen|nooit|zonder|inte|ikke|ingen|inga|aldrig?|utan|uten|uden|"
    r"ei|eivät|emme|ilman|bez|nigdy|nem|nincs|nélkül|nu|fără|değil|yok|tidak|bukan|tanpa|belum|không|chưa|"
    r"не|нет|ни|без|никогда|нельзя|ні|немає|ніколи|δεν|δε|μην?|όχι|χωρίς|לא|אין|בלי|لا|لم|لن|ليست?|غير|بدون|نیست|"
    r"नहीं|मत|बिना|안|(?:않|못|없)\w*)(?!\w)|[不没沒未无無]|ない|なかった|なく|ません|ไม่"
)
"""Negations that are words of their own, or signs of Chinese, Japanese and Thai, in the languages that ship."""
_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*")
_BEGINS = re.compile(r"(?:^|[.!?:;…]|\n)[\s\"'“”„«»(\[*-]*$")
"""The characters before the first word of a sentence."""
_COMPARED, _CHANGES, _LONGEST = 600, 6, 60
"""Tokens that are compared after the first difference, changes that are told, and characters of each side of one."""


@cache
def _token() -> re.Pattern[str]:
    """A number with its points and dashes, a sign of a script without spaces, a word, or another sign.

    Vowel signs and accents belong to their letter.
    """
    marks, unspaced = combining_marks(), UNSPACED.pattern
    word = rf"(?:(?!{unspaced})[^\W\d_][{marks}]*)+"
    return re.compile(rf"{_NUMBER.pattern}|{unspaced}[{marks}]*|{word}(?:['’]{word})*|[^\w\s]|_+")


def differences(kept: str, other: str) -> str:
    """Differences between two texts, in words: `42 → 43`, `+ not`, `− today`.

    Capitals and white space do not count. Common words at both ends are passed over; of the rest some hundred
    words are compared.

    Args:
        kept: the text that stays.
        other: its copy.

    Examples:
        >>> differences("Printer 42 is jammed", "printer 43 is not jammed"), differences("It rains", "it  rains")
        ('42 → 43; + not', '')
    """
    one, two = ([token.span() for token in _token().finditer(text)] for text in (kept, other))
    left, right = [kept[a:b].casefold() for a, b in one], [other[a:b].casefold() for a, b in two]
    start, shorter = 0, min(len(one), len(two))
    while start < shorter and left[start] == right[start]:
        start += 1
    end = 0
    while end < shorter - start and left[-1 - end] == right[-1 - end]:
        end += 1
    stops = len(one) - end, len(two) - end
    is_cut = max(stops) > start + _COMPARED
    left, right = left[start : min(stops[0], start + _COMPARED)], right[start : min(stops[1], start + _COMPARED)]
    changes = []
    for kind, a, b, c, d in SequenceMatcher(None, left, right, autojunk=False).get_opcodes():
        gone, new = _cut(kept, one[start + a : start + b]), _cut(other, two[start + c : start + d])
        if kind != "equal":
            changes.append(f"{gone} → {new}" if gone and new else f"+ {new}" if new else f"− {gone}")
    more = ["…"] if len(changes) > _CHANGES or is_cut else []
    return "; ".join(changes[:_CHANGES] + more)


def _cut(text: str, tokens: Sequence[tuple[int, int]]) -> str:
    return shortened(" ".join(text[tokens[0][0] : tokens[-1][1]].split()), _LONGEST) if tokens else ""


def names_in(texts: Iterable[str]) -> set[str]:
    """The names in texts, in small letters: words with a capital inside of sentences, more often than without one.

    Texts with a capital at half of these words, such as headlines, tell nothing. Nouns of German count as names.

    Examples:
        >>> names_in(["Please call Miller at once", "Miller said: please stop"])
        {'miller'}
    """
    capital, small = Counter[str](), Counter[str]()
    for text in texts:
        words = [*_WORD.finditer(text)]
        # The text before a word is looked at as far back as quotes and brackets may stand there.
        inside = [word[0] for word in words if not _BEGINS.search(text[max(0, word.start() - 8) : word.start()])]
        if 2 * sum(word[0].isupper() for word in inside) < len(inside):
            capital.update({word.casefold() for word in inside if word[0].isupper() and len(word) > 1})
            small.update({word[0] for word in words if word[0].islower()})
    return {word for word, count in capital.items() if count > small[word]}


def is_reordered(one: str, other: str) -> bool:
    """Whether two texts have words in another order, by the words that occur once in both.

    Examples:
        >>> is_reordered("from Rome to Paris", "from Paris to Rome"), is_reordered("Rome or Paris", "not Rome, Paris")
        (True, False)
    """
    words = [[token for token in _token().findall(text.casefold()) if token[0].isalnum()] for text in (one, other)]
    single = [{word for word, count in Counter(own).items() if count == 1} for own in words]
    both = single[0] & single[1]
    return [word for word in words[0] if word in both] != [word for word in words[1] if word in both]


def is_guarded(one: str, other: str, guards: Sequence[Guard], names: Container[str] = frozenset()) -> bool:
    """Whether two texts differ in a way that a guard forbids.

    `numbers`: a number of one became another; a number that was only added or cut does not count. `negations`: one has
    more of `not`, `never`, `without` and the like. `names`: each has a name that the other one lacks. `order`: words
    are in another order (see `is_reordered`).

    Args:
        one: a text.
        other: the other one.
        guards: changes that are forbidden.
        names: names in the corpus (see `names_in`), for `names`.

    Examples:
        >>> is_guarded("room 42", "room 43", ["numbers"]), is_guarded("room 42 now", "room 42", ["numbers"])
        (True, False)
        >>> is_guarded("it is jammed", "it isn't jammed", ["negations"])
        True
        >>> is_guarded("call Smith now", "call Miller", ["names"], {"smith", "miller"})
        True
    """
    if "numbers" in guards:
        short, long = sorted((_NUMBER.findall(" ".join(fold(text.split()))) for text in (one, other)), key=len)
        left = iter(long)
        if not all(number in left for number in short):  # in the same order, with others between them
            return True
    if "names" in guards:
        left_words, right_words = (set(_WORD.findall(text.casefold())) for text in (one, other))
        if all(any(word in names for word in own) for own in (left_words - right_words, right_words - left_words)):
            return True
    if "order" in guards and is_reordered(one, other):
        return True
    if "negations" in guards:
        return len(_NEGATION.findall(one.casefold())) != len(_NEGATION.findall(other.casefold()))
    return False
