import pytest

from selfsent.display import counted, markdown, shortened, table_of, text_of, visible


@pytest.fixture
def table():
    title, caption = "A title of more words than the table is wide", "and a caption that is as long as that"
    return table_of(["a"], [["[b]1[/b]"]], title=title, caption=caption)


def test_title_and_caption_may_be_wider_than_the_table(table):
    lines = text_of(table, ["[i]below"]).splitlines()
    assert lines[0] == "A title of more words than the table is wide"
    assert lines[-2:] == ["and a caption that is as long as that", "[i]below"]
    assert any("│ [b]1[/b] │" in line for line in lines)
    assert str(table.title) == lines[0]
    assert table.caption == lines[-2]


def test_neither_notebooks_nor_colours_change_what_is_printed(table, monkeypatch):
    expected = text_of(table)
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setattr("rich.console._is_jupyter", lambda: True)
    assert text_of(table) == expected


def test_markdown_has_the_caption_below(table):
    assert markdown(table).splitlines() == [
        "| a |", "|---|", "| \\[b\\]1\\[/b\\] |", "", "and a caption that is as long as that  "
    ]  # fmt: skip


def test_nothing_that_commands_a_terminal_is_shown_raw():
    link = "\x1b]8;;http://example.org\x07here\x1b]8;;\x07"
    assert visible(f"a\x1b[31mb\u202ec {link}") == (
        "a\\x1b[31mb\\u202ec \\x1b]8;;http://example.org\\x07here\\x1b]8;;\\x07"
    )
    assert visible("two\nlines, \u0646\u200c\u0647 \u2713") == "two\nlines, \u0646\u200c\u0647 \u2713"


def test_singular_and_plural():
    assert [counted(n, "query", "queries") for n in (0, 1, 2000)] == ["0 queries", "1 query", "2,000 queries"]
    assert counted(1, "text") == "1 text"


def test_a_text_is_not_cut_between_a_letter_and_its_vowel_sign():
    assert shortened("abcdef", 5) == "abcd…"
    assert shortened("काम कि बात", 6) == "काम …"
    assert shortened("\u0301" * 9, 5) == "\u0301" * 4 + "…"
