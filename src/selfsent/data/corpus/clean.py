"""Normalisation of every text: NFC, no control characters, single spaces."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

LONGEST_TEXT = 1 << 20
"""Characters kept of a text; longer ones are truncated and counted."""

# Categories Cc, Cf and Cs, less white space (it becomes a space) and less what scripts need to be read: the joiners
# U+200C and U+200D, the Arabic, Syriac and Kaithi signs that are drawn, the Mongolian vowel separator, and the
# controls of hieroglyphs.
#
# Tags (U+E0020 to U+E007F) hide text in text, save in flags such as England's: a black flag, the letters and digits of
# a region, and the end of tags.
_DROPPED = re.compile(
    "(\U0001f3f4[\U000e0030-\U000e0039\U000e0061-\U000e007a]{3,6}\U000e007f)|"
    "[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\xad\u061c\u200b\u200e\u200f\u202a-\u202e\u2060-\u2064\u2066-\u206f\ufeff"
    "\ufff9-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0001\U000e0020-\U000e007f\ud800-\udfff]"
)
UNSPACED = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\U00020000-\U0003ffff]")
"""Letters of scripts that put no spaces between words: Thai, Lao, Burmese, Khmer, Japanese and Chinese."""
_INVISIBLE = " \u200c\u200d"
_LONGEST_WORD = 1024
_ASCII_LETTERS = {code: chr(code).lower() if chr(code).isalnum() else None for code in range(128)}


def clean(texts: Iterable[str]) -> tuple[list[str], list[int]]:
    """Texts in Unicode NFC, on one line, without control characters and surplus white space.

    Args:
        texts: any strings, lone surrogates included.

    Returns:
        The cleaned texts, in order, empty where nothing was left; and the positions of texts that had control
        characters.
    """
    cleaned: list[str] = []
    control: list[int] = []
    for row, text in enumerate(texts):
        # Printable text has neither control characters nor any white space but the plain space.
        if not text.isprintable():
            kept = _DROPPED.sub(r"\1", text)
            if len(kept) != len(text):
                control.append(row)
            text = " ".join(kept.split())
        elif "  " in text or text[:1] == " " or text[-1:] == " ":
            text = " ".join(text.split())
        if not text.isascii():
            text = _compose(text)
            if not text.strip(_INVISIBLE):
                text = ""
        cleaned.append(text)
    return cleaned, control


def letters(text: str) -> str:
    """The letters and digits of a text, case-folded, by which texts are compared."""
    return letters_of((text,))[0]


def letters_of(texts: Iterable[str]) -> list[str]:
    """The `letters` of each of many texts."""
    # Turkish has two letters i; Python treats I as the capital of the dotted one alone.
    return [
        text.translate(_ASCII_LETTERS)
        if text.isascii()
        else "".join(filter(str.isalnum, text.casefold())).replace("ı", "i")
        for text in texts
    ]


def _compose(text: str) -> str:
    """NFC in linear time: Python's own is quadratic in a run of combining marks, so very long words go in pieces."""
    if unicodedata.is_normalized("NFC", text):
        return text
    # Composition can turn a character into a plain space, hence the split after it.
    if len(text) <= _LONGEST_WORD:
        return " ".join(unicodedata.normalize("NFC", text).split())
    words = (word[at : at + _LONGEST_WORD] for word in _words(text) for at in range(0, len(word), _LONGEST_WORD))
    return " ".join("".join(unicodedata.normalize("NFC", word) for word in words).split())


def _words(text: str) -> Iterable[str]:
    """The words of a text, each with the space before it."""
    return re.findall(r" ?[^ ]+", text)
