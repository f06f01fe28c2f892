"""English inflection: which form a word has, and the same form of another lemma."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Literal

from selfsent.makers.wordnet import Part

Form = Literal["base", "s", "ing", "past", "participle", "er", "est"]
Irregular = Mapping[Part, Mapping[str, Sequence[str]]]
"""By part of speech and lemma, the irregular forms."""

_PARTICIPLE_AFTER = (
    "have has had having be am is are was were been being ve s get gets got getting by not never already"
)
_UNCHANGING = "bet burst cast cost cut fit hit hurt let put quit read rid set shed shut slit split spread thrust upset"
"""Verbs whose past is their lemma, which WordNet's list of exceptions leaves out."""
_VOWELS = "aeiou"
_SILENT_H = ("hon", "hour", "heir")
_LIKE_YOU = re.compile(r"(uni(?!n|m)|us[eua]|eu|one\b|once|ut[ei]|ubiq)")


def form_of(word: str, lemma: str, part: Part, before: str) -> Form:
    """The form a word has.

    Args:
        word: in lower case.
        lemma: of the word.
        part: its part of speech.
        before: the word in front of it, in lower case, which tells a past tense from a participle.
    """
    if word == lemma:
        return "base"
    if part == "noun":
        return "s"
    if part == "verb":
        if word.endswith("ing"):
            return "ing"
        if word.endswith("s") and not word.endswith("ss"):
            return "s"
        return "participle" if before in _PARTICIPLE_AFTER.split() or word.endswith("en") else "past"
    return "est" if word.endswith("est") else "er"


def inflected(lemma: str, part: Part, form: Form, irregular: Irregular) -> str:
    """A lemma in a form.

    Args:
        lemma: one word in lower case.
        part: its part of speech.
        form: of that part of speech.
        irregular: WordNet's exceptions.
    """
    if form == "base":
        return lemma
    forms = irregular[part].get(lemma, ())
    if part in ("adj", "adv"):
        return _compared(lemma, form, forms)
    if form == "s":
        plurals = [] if part == "verb" else [*forms]
        return plurals[0] if plurals else _with_s(lemma)
    if form == "ing":
        listed = [known for known in forms if known.endswith("ing")]
        return listed[0] if listed else _with_ing(lemma)
    if lemma in _UNCHANGING.split():
        return lemma
    pasts = [known for known in forms if not known.endswith(("ing", "s"))]
    if not pasts:
        return _with_ed(lemma)
    return min(pasts, key=lambda known: (_is_participle(known) != (form == "participle"), pasts.index(known)))


def article_before(word: str) -> str:
    """`a` or `an`, as the sound of the word asks for; by spelling, with the commonest exceptions."""
    lower = word.casefold()
    vowel = lower.startswith(_SILENT_H) or (lower[:1] in _VOWELS and not _LIKE_YOU.match(lower))
    return "an" if vowel else "a"


def with_capitals_of(word: str, pattern: str) -> str:
    """A word in lower case with the capitals of another: none, the first, or all."""
    if len(pattern) > 1 and pattern.isupper():
        return word.upper()
    if pattern[:1].isupper():
        # Turkish has a capital for each of its two letters i; this one can only be the dotted one's.
        return ("İ" if pattern[0] == "İ" and word[0] == "i" else word[0].upper()) + word[1:]
    return word


def _is_participle(form: str) -> bool:
    return form.endswith(("n", "ne")) or bool(re.search(r"u[nmr][gk]?$", form))


def _ends_in_consonant_y(lemma: str) -> bool:
    return lemma.endswith("y") and lemma[-2:-1] not in _VOWELS


def _with_s(lemma: str) -> str:
    if _ends_in_consonant_y(lemma):
        return lemma[:-1] + "ies"
    return lemma + ("es" if lemma.endswith(("s", "x", "z", "ch", "sh")) else "s")


def _with_ed(lemma: str) -> str:
    if _ends_in_consonant_y(lemma):
        return lemma[:-1] + "ied"
    return lemma + ("d" if lemma.endswith("e") else "ed")


def _with_ing(lemma: str) -> str:
    if lemma.endswith("ie"):
        return lemma[:-2] + "ying"
    return (lemma[:-1] if lemma.endswith("e") and not lemma.endswith(("ee", "oe", "ye")) else lemma) + "ing"


def _compared(lemma: str, form: Form, forms: Sequence[str]) -> str:
    listed = [known for known in forms if known.endswith("est" if form == "est" else "er")]
    if listed:
        return listed[0]
    if len(re.findall(r"[aeiouy]+", lemma.removesuffix("e"))) > 1 and not _ends_in_consonant_y(lemma):
        return f"{'most' if form == 'est' else 'more'} {lemma}"
    stem = lemma[:-1] + "i" if _ends_in_consonant_y(lemma) else lemma.removesuffix("e")
    return stem + form
