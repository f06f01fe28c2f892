"""Words replaced by others that share a sense in WordNet (the synonym views of BSL, Zhang et al. 2021, section 5.3)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from selfsent.augment.augmenter import Augmenter, Change, Sentences, state_of, with_capitals_of
from selfsent.augment.wordnet import PARTS, WordNet, find_wordnet
from selfsent.settings import setting

_WORD = re.compile(r"</?[A-Za-z][^<>]*>|[^\W\d_]+(?:-[^\W\d_]+)*")
"""A word, or an HTML tag (skipped)."""
_ALONE = re.compile(
    r"(?<!['’@#/\\_.&<>0-9-])[a-z-]{2,}(?![@/\\_<>0-9-]|\.\w|['’](?:t|ll|re|ve|m|d)\b|[\u0300-\u036f])", re.IGNORECASE
)
"""A word of ASCII that is no part of a contraction, a number or an address."""


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


_STOP = _set(
    "a an the this that these those each every some any no all both either neither such what which whose "
    "my your his its our their i you he she it we they who let please to not never "
    "will would shall should can could may might must do does did don didn doesn won "
    "be am is are was were been being have has had having done doing ought cannot "
    "me him her us them mine yours hers ours theirs myself yourself himself herself itself ourselves themselves "
    "whom someone something anyone anything everyone everything nobody nothing none one ones there here "
    "of in on at by for with from into onto over under above below between among through during before after "
    "against without within about across behind beyond near off out up down since until upon via per toward towards "
    "and or but nor yet so if because although though while whereas unless than as whether when where why how "
    "very too also just only even still already always often again now then once quite rather almost ever well "
    "more most less least much many few several own same other another else like last next first second "
    "two three four five six seven eight nine ten hundred thousand million billion mr mrs ms dr"
)


@dataclass(frozen=True)
class Synonym(Augmenter):
    """Replaces a share of the words by synonyms with their capitals; inflected words stay as they are."""

    name = "synonym"
    about = "English words replaced through WordNet"
    unchanged = "WordNet knows English words alone: for another language choose mlm with a model that knows it"

    ratio: float = setting(
        0.3, "share of the words to change, 0.3 unless given (mlm: of the tokens, 0.2)", above=0.0, maximum=1.0
    )
    sense: Literal["first", "random"] = setting(
        "first", "synonyms of a word's most frequent sense, or of any (random: the paper's)"
    )
    wordnet: str | None = setting(None, "directory with WordNet's files, instead of Debian's wordnet-base")

    def identity(self) -> Any:
        """Options, and the state of WordNet's files."""
        return [*super().identity(), state_of(find_wordnet(self.wordnet))]

    def start(self) -> Change:
        """Open WordNet."""
        words = _Words(WordNet(self.wordnet), self.sense)

        def change(sentences: Sentences, key: int) -> list[str]:
            pairs = zip(sentences.texts, sentences.rows.tolist(), strict=True)
            return [words.change(text, row, key, self.ratio) for text, row in pairs]

        return change


_Choice = tuple[int, tuple[tuple[str, ...], ...]]
"""A replaceable word: its index in the sentence, and the words of its senses."""


class _Words:
    """Replaces the words of sentences."""

    def __init__(self, wordnet: WordNet, sense: str) -> None:
        self.wordnet, self.sense = wordnet, sense

    def change(self, text: str, row: int, key: int, ratio: float) -> str:
        """The sentence with a share of its words replaced; unchanged if none can be."""
        import numpy as np

        from selfsent.data.random import uniforms

        found = [match for match in _WORD.finditer(text) if match[0][0] != "<"]
        choices = [choice for choice in (self._choice(text, found, index) for index in range(len(found))) if choice]
        if not choices:
            return text
        rows, indices = np.full(len(choices), row), np.array([index for index, *_ in choices])
        order, sense, synonym = (uniforms(key, rows, indices, draw).tolist() for draw in range(3))
        wanted = max(1, round(ratio * len(found)))
        parts, end = [], 0
        for number in sorted(sorted(range(len(choices)), key=order.__getitem__)[:wanted]):
            index, senses = choices[number]
            match, words = found[index], senses[int(sense[number] * len(senses))]
            new = words[int(synonym[number] * len(words))]
            parts += [text[end : match.start()], with_capitals_of(new, match[0])]
            end = match.end()
        return "".join([*parts, text[end:]])

    def _choice(self, text: str, found: Sequence[re.Match[str]], index: int) -> _Choice | None:
        word = found[index][0].lower()
        if not _plain(text, found[index], index) or word in _STOP:
            return None
        # Of the parts of speech the most frequent one; an inflected word has none.
        known = (part for part in PARTS if self.wordnet.senses(word, part))
        part = max(known, key=lambda part: self.wordnet.count(word, part), default=None)
        senses = self.wordnet.senses(word, part) if part else ()
        kept = [_usable(words, word) for words in (senses[:1] if self.sense == "first" else senses)]
        filled = tuple(words for words in kept if words)
        return (index, filled) if filled else None


def _plain(text: str, match: re.Match[str], index: int) -> bool:
    """Whether a word may be replaced: by itself, and no name or acronym."""
    word, alone = match[0], _ALONE.match(text, match.start())
    # A capital inside a sentence marks a name, unless all of it is in capitals.
    named = not text.isupper() and (word[1:] != word[1:].lower() or (index > 0 and word[0].isupper()))
    return not named and alone is not None and alone.end() == match.end()


def _usable(words: tuple[str, ...], word: str) -> tuple[str, ...]:
    """Usable replacements from a sense: single words, no names, not the word itself."""
    # There is no agreement model for "be" (am, are, is).
    return tuple(w for w in words if w.isalpha() and w.islower() and w not in ("be", word) and len(w) > 1)
