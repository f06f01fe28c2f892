import pytest
from rich.table import Table
from rich.text import Text

from selfsent.display import markdown, text_of


@pytest.fixture
def table():
    table = Table("a", title=Text("A title of more words than the table is wide"), title_justify="left")
    table.add_row("[b]1[/b]")
    table.caption = "and a caption that is as long as that"
    return table


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


def test_a_bare_table_is_a_table():
    assert text_of(Table("a")).splitlines()[0].startswith("┏")


def test_markdown_has_the_caption_below(table):
    assert markdown(table).splitlines() == [
        "| a |", "|---|", "| \\[b\\]1\\[/b\\] |", "", "and a caption that is as long as that  "
    ]  # fmt: skip
