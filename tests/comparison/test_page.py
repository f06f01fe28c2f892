import re
from html.parser import HTMLParser

from selfsent.comparison.page import comparison_page

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


def page(chosen=HOSTILE, rivals=None, failures=None, seeds=1, hurried=()):
    gain = {"difference": 5.0, "low": 3.0, "high": 7.0, "p": 0.001}
    test = {"base": score(31.0), "trained": score(35.0), "tfidf": score(44.0)}
    test["difference"] = {"score": 4.0, "low": 2.5, "high": 5.5, "p": 0.0}
    test["over_tfidf"] = {"score": -9.0, "low": -11.25, "high": -0.001, "p": 0.0}
    candidate = {"name": HOSTILE, "steps": 1200, "seconds": 60.4, "dev": score(35.0), "gain": gain, "test": test}
    several = {str(seed): {"steps": 1200 - seed} for seed in range(seeds)}
    candidate |= {"deviation": 0.75 if seeds > 1 else None, "seed": 7, "seeds": several}
    found = {
        "dev": "context",
        "chosen": chosen,
        "rivals": rivals or {},
        "seeds": seeds,
        "base": score(30.0, tfidf=44.5),
        "candidates": [candidate],
        "failures": failures or {},
        "hurried": list(hurried),
    }
    near = [{"sentence": HOSTILE, "cosine": 0.9}]
    neighbours = [{"sentence": HOSTILE, "before": near, "after": near}] if chosen else []
    return comparison_page(found, {"corpus": HOSTILE}, neighbours, {HOSTILE: [(1, 3.0), (2, 2.5)]})


def test_hostile_text_stays_text_and_every_tag_is_closed():
    tags = Tags()
    tags.feed(page(rivals={HOSTILE: 0.4}, failures={HOSTILE: HOSTILE}))
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
        "+4.00",
        "30.00",
        "-11.25 to +0.00",
    ):
        assert figure in shown, figure
    assert not re.search(r"(src|href)=|https?://|@import|url\(", shown)


def test_over_seeds_the_mean_is_told_from_the_run_that_is_the_model():
    shown = page(seeds=3, rivals={"mlm": 0.4})
    assert "is best: 35.00 ± 0.75 over 3 seeds, untrained 30.00. The model is its run with seed 7." in shown
    assert "Not told apart from it by these items and seeds: mlm" in shown
    assert "1,198 to 1,200" in shown
    assert "±" not in page(rivals={"mlm": 0.4})


def test_where_the_untrained_base_is_best_nothing_is_chosen():
    shown = page(chosen=None, hurried=["mlm took no more than 3 steps: too few to judge it by"])
    assert "No method made the base better: use the base as it is" in shown
    assert "mlm took no more than 3 steps: too few to judge it by." in shown
    assert "nothing was trained on or chosen by" not in shown
