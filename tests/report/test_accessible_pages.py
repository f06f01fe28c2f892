"""What axe-core asked for on the pages, told from the HTML alone; `tests/accessibility.py` runs it in a browser."""

import re
from pathlib import Path

import pytest

from selfsent.display import cells_of, table_of
from selfsent.report.pages import render

TEMPLATES = Path(__file__).parents[2] / "src" / "selfsent" / "report" / "templates"
PAGES = sorted(path.name for path in TEMPLATES.glob("*.html") if "{% extends" in path.read_text())


@pytest.fixture
def page():
    table = cells_of(table_of(("", "score"), [["bundled", "52.10"]], title="Scores"))
    return render("evaluation.html", headline="Scores", drawings=[], tables=[table], remarks=[], signatures=[])


def test_all_that_is_read_lies_in_the_main_part(page):
    for each in (page, render("serve.html")):
        assert each.count("<main>") == each.count("</main>") == 1
    before, _, rest = page.partition("<main>")
    assert "Scores</h1>" in rest.partition("</main>")[0]
    assert re.sub(r"<(head|style)>.*?</\1>|<[^>]*>|\s", "", before, flags=re.DOTALL) == ""
    assert len(PAGES) >= 7
    for name in PAGES:  # each fills the main part, or has its own
        source = (TEMPLATES / name).read_text()
        assert ("{% block body %}" in source) != ("<main>" in source), name


def test_a_table_that_scrolls_is_reached_by_keyboard(page):
    written = "".join(path.read_text() for path in TEMPLATES.glob("*.html"))
    found = [re.findall(r'<div class="wide"[^>]*>', each) for each in (page, written)]
    assert list(map(len, found)) == [1, 2]
    for opened in (*found[0], *found[1]):
        assert 'tabindex="0"' in opened
        assert "aria-label=" in opened


def test_a_column_without_a_name_has_no_empty_heading(page):
    assert "<th></th>" not in page
    assert '<tr><td></td><th class="number">score</th></tr>' in page
