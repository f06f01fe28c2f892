import re
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace

import numpy as np

from selfsent.comparison import Selection
from selfsent.comparison.page import comparison_page
from selfsent.evaluation.results import Score
from selfsent.report.pages import BEST, WORDS

HOSTILE = '<script>alert("1")</script>&amp;'


class Tags(HTMLParser):
    """The tags that are open, to find one that is not closed."""

    def __init__(self):
        super().__init__()
        self.open, self.seen, self.text = [], [], []

    def handle_starttag(self, tag, attributes):
        self.seen.append(tag)
        if tag not in ("meta", "br"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


def score(value):
    samples = value + np.linspace(-2, 2, 200)
    return Score("context", value, value - 2, value + 2, 500, "context", samples=samples)


def page(failures=()):
    found = Selection(
        Path(),
        "context",
        {"untrained": score(30.0)},
        (),
        failures=dict(failures),
        baselines={"TF-IDF": score(44.5), "BM25": score(43.25)},
        tests={HOSTILE: score(35.0), "untrained": score(31.0), "TF-IDF": score(44.0)},
    )
    record = {"steps": 1200, "config": {"settings": {"seed": 0}}}
    found = found.with_run(HOSTILE, SimpleNamespace(record=record, directory=Path()), score(35.0))
    near = [{"sentence": HOSTILE, "cosine": 0.9}]
    neighbours = [{"sentence": HOSTILE, "before": near, "after": near}]
    return comparison_page(found, {"corpus": HOSTILE}, neighbours, {HOSTILE: [(1, 3.0), (2, 2.5)]})


def test_hostile_text_stays_text_and_every_tag_is_closed():
    tags = Tags()
    tags.feed(page(failures={HOSTILE: HOSTILE}))
    assert tags.open == []
    assert not {"script", "img", "iframe", "link"} & set(tags.seen)
    assert "".join(tags.text).count(HOSTILE) >= 10


def test_the_page_has_every_figure_and_needs_nothing_from_elsewhere():
    shown = page()
    for figure in ("35.00", "33.00 to 37.00", "+5.00 [+5.00, +5.00]", "44.50", "42.50 to 46.50", "43.25", "30.00"):
        assert figure in shown, figure
    assert "-9.00 [-9.00, -9.00]" in shown
    assert not re.search(r"(src|href)=|https?://|@import|url\(", shown)


def test_the_finding_is_the_headline_and_words_have_dots_of_their_own():
    shown = page()
    assert re.search(r"<h1>TF-IDF still beats .*</h1>\s*<p><b>Use TF-IDF", shown)
    assert shown.count(f'%;background:{WORDS}"></i><b>') == 2
    assert shown.count(f'%;background:{BEST}"></i><b>') == 1
    assert "Dashed: untrained." in shown
    assert "<li>mlm failed: no memory.</li>" in page(failures={"mlm": "no memory"})
