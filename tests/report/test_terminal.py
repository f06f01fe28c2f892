from io import StringIO

import pytest
from rich.console import Console

from selfsent.display import text_of
from selfsent.report.scores import neighbours_lines, scores_table


def shown(renderable):
    console = Console(file=StringIO(), width=120)
    console.print(renderable)
    return console.file.getvalue()


def scores(low, high):
    one = {"score": 10.0, "low": 9.0, "high": 11.0, "n": 1234}
    difference = {"score": (low + high) / 2, "low": low, "high": high, "p": 0.5}
    return {"base": one, "trained": {**one, "score": 12.0}, "tfidf": one, "difference": difference}


@pytest.mark.parametrize(
    ("low", "high", "verdict"),
    [(0.5, 2, "better"), (-2, -0.5, "worse"), (-1, 1, "no clear difference"), (0, 1, "no clear")],
)
def test_the_verdict_is_that_of_the_interval(low, high, verdict):
    text = shown(scores_table(scores(low, high)))
    assert f"trained - untrained: {verdict}" in text
    assert f"{low:+.2f} to {high:+.2f}" in text
    assert "12.00" in text
    assert "1,234 queries" in text


def test_search_is_shown_with_what_was_asked():
    less = {"score": 2.0, "low": 1.0, "high": 3.0, "p": 0.01}
    search = {**scores(0.5, 2), "words_over_bm25": less, "asked": "a text of “[red]\x1b[31m” finds its “b”"}
    text = text_of(scores_table(search))
    assert text.startswith("Search: nDCG@10 × 100")
    assert "(trained + words) - BM25: better" in text
    assert "a text of “[red]" in " ".join(text.split())
    assert "\x1b" not in text
    assert "believe search more" not in text


def test_a_sentence_has_a_line_with_its_nearest_before_and_after():
    before, after = [{"sentence": "[red]not\nred[/red]", "cosine": 0.5}], [{"sentence": "x" * 100, "cosine": 0.4}]
    lines = neighbours_lines(
        [{"sentence": "[b]query[/nope]", "before": before, "after": each} for each in (before, after)]
    )
    assert lines[0] == "Nearest to “[b]query[/nope]”: “[red]not red[/red]”, as before"
    assert lines[1] == f"Nearest to “[b]query[/nope]”: “{'x' * 59}…”; before “[red]not red[/red]”"
