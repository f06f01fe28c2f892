import re

import pytest

from selfsent.display import table_of, text_of
from selfsent.narrow import broken_at, fitting_widths

NAMES = [
    "bundled+words+passages:120",
    "runs/tickets-2026-11-20/model+words",
    "sentence-transformers/all-MiniLM-L6-v2",
    "retrieval: nDCG@10 on exam, test",
]
DIFFERENCE = "+1.20 [+0.30, +2.10]"


@pytest.fixture
def shown(monkeypatch):
    """The lines of a table of names and figures in a terminal so wide, and the texts of its cells without breaks."""

    def of(width, names=NAMES):
        monkeypatch.setenv("COLUMNS", str(width))
        rows = [[name, "46.12", "30.12 to 31.00", DIFFERENCE, "0.002"] for name in names]
        table = table_of(("model", "score", "95 % interval", "difference [95 %]", "p"), rows, caption="below")
        lines = text_of(table).splitlines()
        return lines, [cells for line in lines if len(cells := [each.strip() for each in line.split("│")[1:-1]]) > 1]

    return of


@pytest.mark.parametrize("width", [60, 80, 100, 120, 200])
def test_no_word_of_a_name_and_no_number_is_broken(shown, width):
    lines, cells = shown(width)
    assert max(map(len, lines)) <= width
    parts = {part for name in NAMES for part in re.split(r"(?<=[/+:-])|\s", name)}
    pieces = {part for row in cells for part in re.split(r"(?<=[/+:-])|\s", row[0]) if "…" not in part}
    assert pieces <= parts | {""}
    assert {part for row in cells for part in row[3].split()} == set(DIFFERENCE.split())
    assert sum(row[1] == "46.12" for row in cells) == len(NAMES)
    assert NAMES[0] in "".join(row[0] for row in cells)


def test_what_fits_is_as_it_was(shown):
    _, cells = shown(120)
    assert [row[0] for row in cells] == NAMES
    assert [row[3] for row in cells] == [DIFFERENCE] * 4


def test_numbers_keep_their_line_before_names(shown):
    _, cells = shown(80, NAMES[:1])
    assert [row[0] for row in cells] == ["bundled+words+", "passages:120"]
    assert cells[0][2:4] == ["30.12 to 31.00", DIFFERENCE]


def test_a_long_word_loses_its_middle_and_a_number_nothing(shown):
    lines, cells = shown(44, ["incomprehensibilitiesofmodernlanguages"])
    assert max(map(len, lines)) <= 44
    assert re.fullmatch(r"in*\w*…\w*s", cells[0][0])
    assert "".join("".join(row[3].split()) for row in cells) == DIFFERENCE.replace(" ", "")


def test_signs_without_spaces_are_folded_without_loss(shown):
    name = "日本語のテキストは空白がないので折り返します"
    _, cells = shown(80, [name])
    assert "".join(row[0] for row in cells) == name


def test_widths_and_breaks():
    assert fitting_widths([["a" * 10], ["1.00"]], [True, False], 14) is None
    assert fitting_widths([["one two three"], ["1 to 2"]], [True, False], 12) == [6, 6]
    assert fitting_widths([["a" * 50], ["12345"]], [True, False], 12) == [7, 5]
    assert fitting_widths([["a" * 50], ["12345"]], [True, False], 2) == [1, 1]
    assert broken_at("x-2026-11-20/model", 13) == "x-2026-11-20/\nmodel"  # a date is one part
    assert broken_at("a  b", 10) == "a  b"
    assert broken_at("", 3) == ""
