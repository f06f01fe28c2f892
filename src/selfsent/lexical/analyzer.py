"""Texts to terms: lower case, stop words out, stems; and which language a corpus is in."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence, Set

from selfsent.data.corpus.clean import UNSPACED
from selfsent.errors import SettingsError, guess

_WORD = re.compile(r"[\w\u0300-\u036f\u0591-\u05c7\u064b-\u065f\u0670\u0900-\u0963\u0966-\u0dff]{2,}")
"""Letters and digits, and the vowel signs and accents that `\\w` leaves out: Hebrew, Arabic, and those of India."""
_UNSPACED_RUN = re.compile(rf"{UNSPACED.pattern}+")
_CODES = {
    **{"ar": "arabic", "ca": "catalan", "cs": "czech", "da": "danish", "de": "german", "el": "greek", "en": "english"},
    **{"eo": "esperanto", "es": "spanish", "et": "estonian", "eu": "basque", "fa": "persian", "fi": "finnish"},
    **{"fr": "french", "ga": "irish", "hi": "hindi", "hu": "hungarian", "hy": "armenian", "id": "indonesian"},
    **{"it": "italian", "lt": "lithuanian", "ne": "nepali", "nl": "dutch", "no": "norwegian", "pl": "polish"},
    **{"pt": "portuguese", "ro": "romanian", "ru": "russian", "sr": "serbian", "st": "sesotho", "sv": "swedish"},
    **{"ta": "tamil", "tr": "turkish", "yi": "yiddish"},
}
"""Snowball's languages by their code."""
LANGUAGES = (*sorted(_CODES.values()), "none")
"""Values of `language`."""
SAMPLED, _TOGETHER, _BEGINNING = 400, 10, 300
"""Texts sampled to detect the language, number classified together, and characters of each."""
_AGREED = 0.9
"""Least share of them in one language."""
_CACHED = 1 << 20


class Analyzer:
    """The terms of a text: words of two characters or more, without stop words, stemmed by Snowball.

    Upper and lower case are alike. Scripts without spaces give pairs of neighbouring signs, whatever the language.

    Args:
        language: one of `LANGUAGES`; None and `none` for words as they are, stop words among them.

    Raises:
        SettingsError: there is no such language.

    Example:
        >>> Analyzer("english")("The printers are printing")
        ['printer', 'print']
    """

    def __init__(self, language: str | None = None) -> None:
        if language is not None and language not in LANGUAGES:
            raise SettingsError(f"there is no language {language!r} to find stems in; {guess(language, LANGUAGES)}")
        self.language = None if language == "none" else language
        self._terms: dict[str, str] = {}
        self._stop_words = frozenset[str]()
        if self.language:
            from bm25s import stopwords  # lists of twelve languages
            from Stemmer import Stemmer

            self._stem: Callable[[str], str] = Stemmer(self.language).stemWord
            name = "EN_PLUS" if self.language == "english" else self.language.upper()
            self._stop_words = frozenset(getattr(stopwords, f"STOPWORDS_{name}", ()))

    def __call__(self, text: str) -> list[str]:
        """The terms of a text, in order."""
        if not self.language:
            return words_of(text)
        known = self._terms
        if len(known) > _CACHED:
            known.clear()
        words = words_of(text)
        for word in words:
            if word not in known:
                known[word] = "" if word in self._stop_words else self._stem(word)
        return [term for term in map(known.__getitem__, words) if term]

    def split_at(self, text: str, wanted: Set[str]) -> list[str]:
        """A text in pieces, of which every second one is a word with one of the `wanted` terms.

        Example:
            >>> Analyzer("english").split_at("Printing, printed.", {"print"})
            ['', 'Printing', ', ', 'printed', '.']
        """
        spaced = _UNSPACED_RUN.sub(lambda run: " " * len(run[0]), text)
        spans = [word.span() for word in _WORD.finditer(spaced) if not wanted.isdisjoint(self(word[0]))]
        for run in _UNSPACED_RUN.finditer(text):
            starts = range(run.start(), max(run.start() + 1, run.end() - 1))
            spans += [(at, min(at + 2, run.end())) for at in starts if text[at : at + 2].strip() in wanted]
        pieces, end = [""], 0
        for start, stop in sorted(spans):
            if start < end:  # pairs of signs that overlap are one word
                pieces[-2] += text[end:stop]
                end = max(end, stop)
            else:
                pieces[-1] = text[end:start]
                pieces += [text[start:stop], ""]
                end = stop
        pieces[-1] = text[end:]
        return pieces


def words_of(text: str) -> list[str]:
    """The words of a text; in scripts without spaces pairs of neighbouring signs, or a single one."""
    text = text.lower()
    if text.isascii() or not UNSPACED.search(text):
        return _WORD.findall(text)
    runs = _UNSPACED_RUN.findall(text)
    pairs = [run[start : start + 2] for run in runs for start in range(max(1, len(run) - 1))]
    return _WORD.findall(_UNSPACED_RUN.sub(" ", text)) + pairs


def language_of(texts: Sequence[str]) -> str | None:
    """The language that texts are in, one of `LANGUAGES`; None where less than nine tenths of a sample agree.

    Args:
        texts: a sample of some hundred beginnings is classified.
    """
    from py3langid import classify

    step = max(1, len(texts) // SAMPLED)
    sample = [text[:_BEGINNING] for text in texts[::step][:SAMPLED] if text]
    groups = [" ".join(sample[start : start + _TOGETHER]) for start in range(0, len(sample), _TOGETHER)]
    found = Counter(classify(group)[0] for group in groups)
    code, count = found.most_common(1)[0] if found else ("", 0)
    return _CODES.get(code) if count >= _AGREED * len(groups) else None
