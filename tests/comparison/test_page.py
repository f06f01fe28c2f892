import re
from html.parser import HTMLParser

from selfsent.comparison.page import comparison_page
from selfsent.report.pages import BEST, WORDS

HOSTILE = '<script>alert("1")</script>&amp;'


class Tags(HTMLParser):
    """The tags that are open, to find one that is not closed."""

    VOID = ("meta", "br")

    def __init__(self):
        super().__init__()
        self.open, self.seen, self.text = [], [], []

    def handle_starttag(self, tag, attributes):
        self.seen.append(tag)
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.seen.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


def score(value, **beside):
    return {"score": value, "low": value - 2, "high": value + 2, "n": 500, "signature": "context", **beside}


def page(best=HOSTILE, remarks=(), seeds=1):
    gain = {"difference": 5.0, "low": 3.0, "high": 7.0, "p": 0.001}
    tests = {name: score(value) for name, value in {HOSTILE: 35.0, "untrained": 31.0, "TF-IDF": 44.0}.items()}
    candidate = {"name": HOSTILE, "base": "untrained", "steps": 1200, "seconds": 60.4, "dev": score(35.0), "gain": gain}
    several = {str(seed): {"steps": 1200 - seed} for seed in range(seeds)}
    candidate |= {"deviation": 0.75 if seeds > 1 else None, "seed": 7, "seeds": several}
    for name in tests.keys() - {best}:
        tests[name]["best_minus_it"] = {"difference": -9.0, "low": -11.25, "high": -0.001, "p": 0.0}
    found = {
        "headline": f"TF-IDF still beats {HOSTILE}",
        "advice": "Use TF-IDF.",
        "remarks": list(remarks),
        "dev": "context",
        "best": best,
        "bases": {"untrained": score(30.0)},
        "baselines": {"TF-IDF": score(44.5), "BM25": score(43.25)},
        "tests": tests,
        "candidates": [candidate],
    }
    near = [{"sentence": HOSTILE, "cosine": 0.9}]
    neighbours = [{"sentence": HOSTILE, "before": near, "after": near}]
    return comparison_page(found, {"corpus": HOSTILE}, neighbours, {HOSTILE: [(1, 3.0), (2, 2.5)]})


def test_hostile_text_stays_text_and_every_tag_is_closed():
    tags = Tags()
    tags.feed(page(remarks=[HOSTILE]))
    assert tags.open == []
    assert not {"script", "img", "iframe", "link"} & set(tags.seen)
    assert "".join(tags.text).count(HOSTILE) >= 10


def test_the_page_has_every_figure_and_needs_nothing_from_elsewhere():
    shown = page()
    for figure in (
        "35.00",
        "33.00 to 37.00",
        "+5.00 [+3.00, +7.00]",
        "0.001",
        "1,200",
        "44.50",
        "42.50 to 46.50",
        "43.25",
        "30.00",
        "-9.00 [-11.25, +0.00]",
    ):
        assert figure in shown, figure
    assert not re.search(r"(src|href)=|https?://|@import|url\(", shown)


def test_what_was_found_is_the_headline_and_words_have_dots_of_their_own():
    shown = page()
    assert re.search(r"<h1>TF-IDF still beats .*</h1>\s*<p><b>Use TF-IDF.</b></p>", shown)
    assert shown.count(f'fill="{WORDS}"') == 2
    assert shown.count(f'fill="{BEST}"') == 1
    assert "Dashed: untrained." in shown


def test_over_seeds_the_deviation_stands_beside_the_mean():
    shown = page(seeds=3)
    assert "35.00 ± 0.75 over 3 seeds" in shown
    assert "1,198 to 1,200" in shown
    assert "±" not in page()


def test_what_must_be_known_beside_it_is_a_list():
    assert "<li>mlm took no more than 3 steps.</li>" in page(remarks=["mlm took no more than 3 steps"])
    assert "<li>" not in page()
