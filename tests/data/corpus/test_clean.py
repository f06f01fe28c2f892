import unicodedata

import pytest
from hypothesis import given, settings, strategies as st

from selfsent.data.corpus.clean import clean, letters, letters_of

ANY_TEXT = st.text(alphabet=st.characters(exclude_categories=()))
KEPT_FORMATS = (
    "\u0600\u0601\u0602\u0603\u0604\u0605\u06dd\u070f\u0890\u0891\u08e2\u180e\u200c\u200d\U000110bd\U000110cd"
)

TAGS = "\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067"
ENGLAND = f"\U0001f3f4{TAGS}\U000e007f"


def one(text):
    return clean([text])[0][0]


@pytest.mark.parametrize(
    ("raw", "cleaned"),
    [
        ("  two \t\r\n  words\u00a0\u3000here ", "two words here"),
        ("cafe\u0301", "caf\u00e9"),
        ("e\u00ad\u0301", "\u00e9"),
        ("be\x07ll\x00 \x1b[31mred\u200b\u202e\ufeff", "bell [31mred"),
        ("lone \ud800surrogate\udfff", "lone surrogate"),
        ("\u200d\u200c \u200d", ""),
        ("\x00\x01", ""),
        ("می‌خواهم", "می‌خواهم"),
        ("👩‍👩‍👧 family", "👩‍👩‍👧 family"),
        (f"{ENGLAND} won", f"{ENGLAND} won"),
        (f"{ENGLAND}{TAGS}\U000e007f", ENGLAND),
        (f"\U0001f3f4{TAGS} a{TAGS}", "\U0001f3f4 a"),
        (f"\U0001f3f4{TAGS * 3}\U000e007f", "\U0001f3f4"),
        ('<b>&amp; "x"</b>', '<b>&amp; "x"</b>'),
        ("plain", "plain"),
    ],
)
def test_clean(raw, cleaned):
    assert one(raw) == cleaned


def test_upper_and_lower_case_are_alike_in_turkish():
    assert letters("ISPARTA'DA, İzmir") == letters("ısparta'da izmir") == letters("Isparta’da İZMİR")
    assert letters("ılık") != letters("alık")


def test_letters_of_ascii_are_as_those_of_other_text():
    ascii_text = "".join(map(chr, range(128)))
    digits, small = "0123456789", "abcdefghijklmnopqrstuvwxyz"
    assert letters_of([ascii_text, "É" + ascii_text, ""]) == [digits + small * 2, "é" + digits + small * 2, ""]
    assert letters(ascii_text) == digits + small * 2


def test_counts_rows_with_control_characters_but_not_white_space_and_flags():
    assert clean(["a\tb\nc", "a\x07", "fine", "b\u200e", f"{ENGLAND} won", f"hidden{TAGS}"])[1] == [1, 3, 5]


@settings(deadline=None)
@given(ANY_TEXT)
def test_properties_of_clean_text(text):
    cleaned = one(text)
    assert cleaned == " ".join(cleaned.split())
    assert unicodedata.is_normalized("NFC", cleaned)
    assert one(cleaned) == cleaned
    assert clean([cleaned])[1] == []
    cleaned.encode("utf-8")


@settings(deadline=None)
@given(st.text(alphabet=st.characters(categories=("L", "N", "P", "S"))))
def test_visible_characters_stay(text):
    assert one(text) == unicodedata.normalize("NFC", text)


def test_every_control_character_is_dropped_or_white_space_or_known_to_be_needed():
    for code in range(0x110000):
        char = chr(code)
        if unicodedata.category(char) in ("Cc", "Cf", "Cs"):
            needed = char in "\u200c\u200d" or char in KEPT_FORMATS or 0x13430 <= code <= 0x1343F
            assert one(f"a{char}b") == (f"a{char}b" if needed else "a b" if char.isspace() else "ab"), hex(code)


def test_a_run_of_combining_marks_is_not_quadratic():
    # Alternating classes make Python's own normalisation sort the whole run: minutes for this text.
    assert len(one("a" + "\u0301\u0316" * 200_000)) > 200_000
    # Long texts are composed word by word.
    assert one(" ".join(["cafe\u0301"] * 500)) == " ".join(["caf\u00e9"] * 500)
