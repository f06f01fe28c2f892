import re

from selfsent.report.run_page import run_page

HOSTILE = '<script>alert("1")</script>&amp;'
RECORD = {
    "config": {
        "method": HOSTILE,
        "base": HOSTILE,
        "pooling": "mean",
        "corpus": {"source": HOSTILE, "sentences": 12345},
        "settings": {"learning_rate": 0.001, "seed": 0, "budget": None},
    },
    "steps": 40,
    "versions": {"torch": HOSTILE},
}
METRICS = [{"step": 10, "loss": 4.0}, {"step": 20, "loss": 3.0, "mean_cosine": 0.2}, {"step": 40, "loss": 2.5}]


def score(value):
    return {"score": value, "low": value - 2, "high": value + 2, "n": 500}


def scores(gain, over):
    found = {"base": score(30.0), "trained": score(30.0 + gain), "tfidf": score(30.0 + gain - over)}
    found["difference"] = {"score": gain, "low": gain - 1, "high": gain + 1, "p": 0.0}
    found["bm25"] = found["tfidf"]
    for kind in ("tfidf", "bm25"):
        found[f"over_{kind}"] = {"score": over, "low": over - 1, "high": over + 1, "p": 0.0}
    return found


def test_the_headline_says_what_came_of_it():
    page = run_page(RECORD, scores(5.0, -3.0), [], METRICS)
    ahead = (
        "<h1>At finding the next sentence the trained encoder is ahead of the untrained base, behind TF-IDF and BM25"
    )
    assert f"{ahead}</h1>" in page
    assert "ahead of the untrained base, TF-IDF and BM25</h1>" in run_page(RECORD, scores(5.0, 3.0), [], METRICS)
    assert "level with the untrained base" in run_page(RECORD, scores(0.5, 3.0), [], METRICS)
    named = re.findall(r'<div class="name"[^>]*>(.*?)</div>', page)
    assert named == ["trained - untrained", "trained - TF-IDF", "trained - BM25"]
    assert "No score was taken" in run_page(RECORD, None, [], METRICS)


def test_search_comes_first_where_it_was_scored():
    less = {"score": -1.0, "low": -2.0, "high": -0.5, "p": 0.01}
    search = {**scores(5.0, -3.0), "with_words": score(37.0), "words_over_bm25": less, "asked": HOSTILE}
    search |= {"base_with_words": score(36.0), "words_over_base": {**less, "low": -2.0, "high": 1.0}}
    page = run_page(RECORD, scores(5.0, 3.0), [], METRICS, search=search)
    assert "<h1>In search trained + words is behind BM25, level with the untrained base + words</h1>" in page
    assert page.index("<h2>Search: nDCG@10") < page.index("is behind BM25: the difference is -1.00")
    assert page.index("is behind BM25: the difference is -1.00") < page.index("<h2>The next sentence: MRR@10")
    assert '<tr class="best"><td>trained + words (search)</td>' in page
    assert "<script" not in page
    alone = run_page(RECORD, None, [], METRICS, search=search)  # as of pairs
    assert "<h2>The next sentence" not in alone
    assert "<h2>Search" in alone


def test_hostile_text_stays_text_in_every_field():
    near = [{"sentence": HOSTILE, "cosine": 0.9}]
    page = run_page(RECORD, scores(5.0, -3.0), [{"sentence": HOSTILE, "before": near, "after": near}], METRICS)
    assert "<script" not in page
    assert page.count("&lt;script&gt;") == 8  # title, method, base, source, version, and a sentence three times


def test_a_notebook_gets_the_same_without_the_page_around_it():
    part = run_page(RECORD, scores(5.0, 3.0), [], METRICS, fragment=True)
    assert "<html" not in part
    assert "trained - TF-IDF: better" in part


def test_the_warranty_is_on_the_page():
    each = {"gain": 1.5, "low": 0.25, "high": 2.75, "score": 30.0, "n": 100}
    tried = [{"alpha": share, "loss": 0.1, "dev": each, "test": {**each, "gain": -2.5}} for share in (0.0, 0.5, 1.0)]
    found = {
        "alpha": 0.5,
        "line": f"Kept 50%. {HOSTILE}",
        "exam": "200 queries",
        "regression_check": "STS-B dev",
        "candidates": tried,
    }
    page = run_page({**RECORD, "warranty": found}, None, [], METRICS)
    assert "Warranty: nDCG@10" in page
    assert "+1.50 [+0.25, +2.75]" in page
    assert "-2.50 [+0.25, +2.75]" in page
    assert "lost on STS-B dev" in page
    assert HOSTILE not in page
    assert "Warranty" not in run_page(RECORD, None, [], METRICS)


def test_differences_stand_over_an_axis_with_a_line_at_zero():
    page = run_page(RECORD, scores(5.0, -3.0), [], METRICS)
    ticks = [tick for _, tick in re.findall(r'<span style="left:([\d.]+)%">([^<]+)</span>', page)]
    assert ticks == ["-4", "-2", "0", "+2", "+4", "+6"]
    assert page.count('<i class="zero" style="left:40.0%">') == 3
    assert '<i class="interval" style="left:80.0%;width:20.0%' in page  # 4 to 6
    assert ">+5.0</b>" in page


def test_a_warranty_is_drawn_on_both_halves():
    half = {"score": 30.0, "n": 200, "gain": 1.0, "low": -0.5, "high": 2.0}
    none = {"score": 29.0, "n": 200, "gain": 0.0, "low": 0.0, "high": 0.0}
    tried = [
        {"alpha": 0.0, "loss": 0.0, "dev": none, "test": none},
        {"alpha": 1.0, "loss": 0.1, "dev": half, "test": half},
    ]
    found = {"alpha": 1.0, "line": HOSTILE, "exam": "some queries", "regression_check": HOSTILE, "candidates": tried}
    page = run_page({**RECORD, "warranty": found}, None, [], METRICS)
    assert page.count("<polyline") - page.count("<figcaption") == 2
    assert ">100%</text>" in page
    assert "<script" not in page
