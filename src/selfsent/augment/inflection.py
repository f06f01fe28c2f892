"""English inflection: the form of a word, and the same form of another lemma."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Literal

from selfsent.augment.wordnet import Part

Form = Literal["base", "s", "ing", "past", "participle", "er", "est"]
Irregular = Mapping[Part, Mapping[str, Sequence[str]]]
"""By part of speech and lemma, the irregular forms."""

_PARTICIPLE_AFTER = (
    "have has had having be am is are was were been being ve s get gets got getting by not never already"
)
_UNCHANGING = "bet burst cast cost cut fit hit hurt let put quit read rid set shed shut slit split spread thrust upset"
"""Verbs with past equal to lemma, absent from WordNet's list of exceptions."""
_ONE_PAST = ("beat", "bid")
"""Endings of verbs with the lemma as past but another participle."""
_ONE_PARTICIPLE = ("come", "run")
"""Endings of irregular verbs with the lemma as participle."""
_HARD_CH = (
    "stomach epoch eunuch loch tech biotech monarch patriarch matriarch oligarch hierarch ethnarch exarch czech"
    " distich cromlech pibroch coronach mach tach sumach"
)
"""Words with ch pronounced k."""
_PLAIN_O = "crescendo decrescendo demo disco mambo solo tango velcro"
"""Verbs in consonant + o that take a plain s."""
_VOWELS = "aeiou"
_SILENT_H = ("hon", "hour", "heir")
_LIKE_YOU = re.compile(r"(uni(?!n|m)|us[eua]|eu|one\b|once|ut[ei]|ubiq)")


def form_of(word: str, lemma: str, part: Part, before: str) -> Form:
    """The inflected form of a word.

    Args:
        word: in lower case.
        lemma: of the word.
        part: its part of speech.
        before: the preceding word, in lower case: it separates past tense from participle.
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
        if part == "verb":
            return _third_person(lemma)
        return forms[0] if forms else _with_s(lemma)
    if form == "ing":
        listed = [known for known in forms if known.endswith("ing")]
        return listed[0] if listed else _with_ing(lemma)
    if lemma in _UNCHANGING.split():
        return lemma
    pasts = [known for known in forms if not known.endswith(("ing", "s"))]
    if form == "participle":
        if pasts and lemma.endswith(_ONE_PARTICIPLE):
            return lemma
        return min(pasts, key=lambda known: not _is_participle(known), default=_with_ed(lemma))
    # WordNet lists only the irregular participle of some verbs: shown, proven.
    pasts = [known for known in pasts if not known.endswith(("en", "wn"))]
    return min(pasts, key=_is_participle, default=lemma if lemma.endswith(_ONE_PAST) else _with_ed(lemma))


def article_before(word: str) -> str:
    """`a` or `an`, by spelling, with the commonest exceptions."""
    lower = word.casefold()
    vowel = lower.startswith(_SILENT_H) or (lower[:1] in _VOWELS and not _LIKE_YOU.match(lower))
    return "an" if vowel else "a"


def with_capitals_of(word: str, pattern: str) -> str:
    """A lower-case word with the capitals of another: none, the first, or all."""
    every = len(pattern) > 1 and pattern.isupper()
    capitals, rest = (word, "") if every else (word[:1], word[1:]) if pattern[:1].isupper() else ("", word)
    # Turkish has two letters i with a capital each. Given this capital, an i must be the dotted one.
    dotted = "İ" in (pattern if every else pattern[:1])
    return (capitals.replace("i", "İ") if dotted else capitals).upper() + rest


def _is_participle(form: str) -> bool:
    return bool(re.search(r"([^a]n|ne|u[nmr][gk]?)$", form))


def _ends_in_consonant_y(lemma: str) -> bool:
    return lemma.endswith("y") and lemma[-2:-1] not in _VOWELS


def _third_person(lemma: str) -> str:
    if lemma == "have":
        return "has"
    takes_es = lemma.endswith("o") and lemma[-2:-1] not in _VOWELS and lemma not in _PLAIN_O.split()
    return lemma + "es" if takes_es else _with_s(lemma)


def _with_s(lemma: str) -> str:
    if _ends_in_consonant_y(lemma):
        return lemma[:-1] + "ies"
    if re.fullmatch(r"[^aeiouy]*u?[aeiou]z", lemma):  # quiz, whiz
        return lemma + "zes"
    hissing = lemma.endswith(("s", "x", "z", "ch", "sh")) and lemma not in _HARD_CH.split()
    return lemma + ("es" if hissing else "s")


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
