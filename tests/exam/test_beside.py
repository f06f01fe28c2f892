import numpy as np
import pytest

from selfsent.evaluation.results import Result, Score
from selfsent.exam.beside import Beside


def scored(value, spread=1.0, **details):
    samples = value + spread * np.linspace(-1, 1, 101)
    return Score("x", value, value - abs(spread), value + abs(spread), 20, "s", details=details, samples=samples)


def beside(*models):
    """Models by name, score on the exam and by judged queries; scores at a distance below 1 are not decided."""
    found = []
    for number, (name, exam, judged, *read) in enumerate(models):
        shift = (-1) ** number  # so that paired differences spread, too
        details = {"has_read": [9, 10]} if read else {}
        found.append(Result(name, {"e": scored(exam, 0.5 * shift, **details), "mine": scored(judged, 0.5 * shift)}))
    return Beside(found, "e", "mine")


@pytest.mark.parametrize(
    ("models", "verdict"),
    [
        ([("a", 60, 50), ("b", 40, 30)], "Both put a first. Both decide 1 of 1 comparison, and agree in all of them."),
        (
            [("a", 60, 30), ("b", 40, 50)],
            "Your queries put b first, the exam a. They disagree: your queries have b over a. Believe your queries.",
        ),
        (
            [("a", 50.2, 50), ("b", 50, 50.2), ("c", 10, 10)],
            "Your queries put b first, the exam a, which may be chance. Both decide 2 of 3 comparisons, and agree in"
            " all of them.",
        ),
        (
            [("a", 60, 50.1), ("b", 40, 50)],
            "Both put a first. Both decide 0 of 1 comparison, so nothing speaks against either: judge more queries.",
        ),
        (
            [("a", 60, 50), ("b", 90, 90, "read")],
            "There is nothing to compare: name two models or more that have not read the answers.",
        ),
    ],
)
def test_the_verdict_says_who_is_to_be_believed(models, verdict):
    assert beside(*models).verdict == verdict


def test_table_and_json_have_both_scores():
    found = beside(("a", 60, 30), ("b", 40, 50))
    assert found.to_json()["decided"] == [{"better": "b", "worse": "a", "agree": False}]
    table = found.table()
    assert [str(cell) for cell in table.columns[0].cells] == ["b", "a"]  # the best by the judged queries first
    assert [str(cell) for cell in table.columns[1].cells] == ["40.00 ± 0.50", "60.00 ± 0.50"]
    assert "from 20 judged queries on the exam is weighted" in str(table.caption)
