"""Parts of speech without a model or a download: closed classes by list, open classes by ending and position.

Deliberately coarse: it separates nouns, verbs and function words well enough to count the parts of speech that a
similarity depends on. A better tagger can be passed instead.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

Tagger = Callable[[Sequence[str]], Sequence[str]]
"""Words of a sentence -> their parts of speech."""

_CLOSED = {
    "DET": "a an the this that these those each every some any no all both half either neither such what which whose",
    "PRON": "i you he she it we they me him her us them my your his its our their mine yours hers ours theirs myself "
    "yourself himself herself itself ourselves themselves who whom someone something anyone anything everyone "
    "everything nobody nothing one ones there",
    "ADP": "of in on at by for with from into onto over under above below between among through during before after "
    "against without within about across behind beyond near off out up down since until upon via per toward towards",
    "CONJ": "and or but nor yet so if because although though while whereas unless than as whether when where why how",
    "VERB": "is am are was were be been being do does did done doing have has had having will would shall should can "
    "could may might must get gets got go goes went gone make makes made take takes took taken come comes came say "
    "says said see sees saw seen know knows knew give gives gave find finds found think thinks thought tell told keep "
    "kept let run runs ran use uses used want wants wanted need needs needed try tries tried ask asks asked",
    "PART": "not n't 's to",
    "ADV": "very too also just only even still already never always often again now then here once perhaps maybe quite "
    "rather almost soon ever well away back together however therefore instead more most less least",
    "ADJ": "new old good bad great small big large little long short high low young early late own same other "
    "different many few much several last next first second best better worse worst free full open sure able",
    "NUM": "zero two three four five six seven eight nine ten eleven twelve hundred thousand million billion",
}
_LISTED = {word: tag for tag, words in _CLOSED.items() for word in words.split()}
_ENDINGS = (
    ("ADV", re.compile(r".{3,}ly")),
    ("NOUN", re.compile(r".{2,}(tion|sion|ment|ness|ity|ance|ence|ship|ism|ist|hood|age|ure|er|or|ers|ors)")),
    ("VERB", re.compile(r".{2,}(ing|ed|ize|ise|ify|izes|ises|ifies)")),
    ("ADJ", re.compile(r".{2,}(ous|ful|less|able|ible|ive|ic|ical|al|ish|ary|est)")),
)


def tag(words: Sequence[str]) -> list[str]:
    """The part of speech of each word: NOUN, PROPN, VERB, ADJ, ADV, PRON, DET, ADP, CONJ, PART, NUM or PUNCT."""
    tags: list[str] = []
    for index, word in enumerate(words):
        tags.append(_tag(word, index, tags[-1] if tags else ""))
    return tags


def _tag(word: str, index: int, before: str) -> str:
    lower = word.casefold()
    if not any(character.isalnum() for character in word):
        return "PUNCT"
    if any(character.isdigit() for character in word):
        return "NUM"
    if lower in _LISTED:
        return _LISTED[lower]
    if index and word[0].isupper():
        return "PROPN"
    if before == "PRON" or (before == "PART" and not lower.endswith("tion")):
        return "VERB"
    return next((name for name, ending in _ENDINGS if ending.fullmatch(lower)), "NOUN")
