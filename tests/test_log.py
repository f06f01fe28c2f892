"""The log: every entry of its pages has one line, under a question, with a verdict; every line leads to an entry."""

import re
from collections import Counter
from pathlib import Path

LOG = Path(__file__).parents[1] / "docs" / "log.md"


def anchor_of(title):
    """As the documentation's table of contents has it; a name of its own stands in braces."""
    if named := re.search(r"\{\s*#([\w-]+)\s*\}", title):
        return named[1]
    plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", title.replace("`", "").replace("*", ""))
    return re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", plain).strip().lower())


def entries():
    found = []
    for page in sorted(LOG.with_suffix("").glob("*.md")):
        found += [f"log/{page.name}#{anchor_of(title)}" for title in re.findall(r"^## (.*)", page.read_text(), re.M)]
    return found


def lines():
    """The question above each line of the tables, the entry it leads to, and its verdict."""
    found, question = [], None
    for line in LOG.read_text().splitlines():
        if line.startswith("## "):
            question = line[3:]
        elif re.match(r"\| \d{4}-", line):
            date, title, verdict = (cell.strip() for cell in line.strip("| ").split(" | ", 2))
            found.append((question, re.search(r"\((log/[^)]+)\)$", title)[1], verdict))
            assert re.fullmatch(r"\d{4}-\d\d-\d\d", date), line
    return found


def test_every_entry_has_one_line():
    listed = Counter(entry for _, entry, _ in lines())
    assert [entry for entry in entries() if listed[entry] != 1] == []


def test_every_line_leads_to_an_entry_and_says_what_came_out():
    known = set(entries())
    assert [entry for _, entry, _ in lines() if entry not in known] == []
    assert [entry for question, entry, verdict in lines() if not question or not verdict] == []


def test_the_questions_are_listed_at_the_top():
    text = LOG.read_text()
    listed = re.findall(r"\]\(#([^)]+)\)", text.partition("\n## ")[0])
    assert listed == [anchor_of(question) for question in dict.fromkeys(question for question, _, _ in lines())]
    assert len(listed) > 5
