import numpy as np
import pytest
from tests.naive.raking import raked

from selfsent.evaluation.tasks.retrieval import RetrievalTask
from selfsent.exam.likeness import MIN_QUERIES, effective_size, look_of, looks_of, weighted_like, weights_like
from selfsent.lexical import Analyzer
from selfsent.scorers.load_scorer import load_scorer


@pytest.mark.parametrize(
    ("query", "look"),
    [
        ("printer dead", ("1 to 3 words", "keywords", "more than 2/3 in common")),
        ("the printer on my desk", ("4 to 8 words", "sentence", "at most 2/3 in common")),
        ("coffee", ("1 to 3 words", "keywords", "at most 1/3 in common")),
        (
            "why does the printer not print what it should?",
            ("9 words or more", "question", "more than 2/3 in common"),
        ),
        ("1", ("1 to 3 words", "keywords", "at most 1/3 in common")),
    ],
)
def test_how_a_query_looks(query, look):
    answers = ["An invoice.", "The printer is dead and prints nothing.", "A desk."]
    assert look_of(query, answers[:2], Analyzer("english")) == look


def test_the_answer_with_the_most_words_in_common_counts():
    task = RetrievalTask("t", ["red car"], ["a blue car", "a red car"], [{0: 1.0, 1: 1.0, 2: 1.0}])
    assert looks_of(task, Analyzer("english"))[0][2] == "more than 2/3 in common"
    worse = RetrievalTask("t", ["red car"], ["a blue car", "a red car"], [{0: 1.0, 1: 0.0}])
    assert looks_of(worse, Analyzer("english"))[0][2] == "at most 2/3 in common"


@pytest.mark.parametrize("seed", range(4))
def test_weights_are_those_of_the_naive_twin(seed):
    rng = np.random.default_rng(seed)
    draw = [[f"{place}{rng.integers(3 - place // 2)}" for place in range(3)] for _ in range(60)]
    drawn, real = [tuple(look) for look in draw], [(*draw[row][:2], "20") for row in rng.integers(9, size=30)]
    real += [("unknown", "10", "20")] * 5
    weights = weights_like(drawn, real)
    np.testing.assert_allclose(weights, raked(drawn, real), rtol=1e-5)
    assert weights.mean() == pytest.approx(1)


def test_one_class_is_post_stratification():
    drawn = [("short", "", "")] * 2 + [("long", "", "")] * 8
    weights = weights_like(drawn, [("short", "", "")] * 30 + [("long", "", "")] * 10)
    share = (30 + 2 * 0.2) / 42  # of 40 real queries and two more that are like the drawn ones
    np.testing.assert_allclose(weights, [10 * share / 2] * 2 + [10 * (1 - share) / 8] * 8)
    assert effective_size(weights) == pytest.approx(100 / (2 * weights[0] ** 2 + 8 * weights[9] ** 2))


def test_an_exam_like_the_queries_keeps_its_weights():
    looks = [("short", "a", "x"), ("long", "b", "y"), ("long", "a", "x")] * 10
    np.testing.assert_allclose(weights_like(looks, looks * 3), 1)
    assert effective_size(np.ones(30)) == 30


def asked(count, words):
    return [" ".join([f"word{number}", *["filler"] * (words - 1)]) for number in range(count)]


def test_what_real_queries_look_like_decides():
    short, long = asked(30, 1), asked(90, 10)
    texts = [f"text {number}" for number in range(120)]
    exam = RetrievalTask("exam", [*short, *long], texts, [{number: 1.0} for number in range(120)], of="e")
    real = RetrievalTask(
        "mine", [f"{query} x" for query in asked(MIN_QUERIES, 2)], texts, [{row: 1.0} for row in range(MIN_QUERIES)]
    )
    rows = dict(zip([*short, *long], range(120), strict=True))

    def knows(known):
        """A model that finds the answers of some queries, and the opposite of those of all others."""

        def encode(given):
            places = [rows.get(text, int(text.split()[-1]) if text.startswith("text ") else 0) for text in given]
            signs = [-1 if text in rows and text not in known else 1 for text in given]
            return np.eye(120)[places] * np.array(signs)[:, None]

        return load_scorer(encode)

    weighted = weighted_like(exam, real)
    plain = [exam.score(knows({*known})).score for known in (short, long)]
    like = [weighted.task.score(knows({*known})).score for known in (short, long)]
    assert plain == pytest.approx([25, 75])
    share = (20 + 2 * 0.25) / 22  # of short queries: all 20, and two more that are like the drawn ones
    assert like == pytest.approx([100 * share, 100 * (1 - share)])
    score = weighted.task.score(knows({*short}))
    assert score.name == "exam-like-mine"
    assert score.low < score.score < score.high
    assert "|w:" in score.signature
    assert weighted.size == pytest.approx(120**2 / (30 * (4 * share) ** 2 + 90 * (4 / 3 * (1 - share)) ** 2))
    assert weighted.unlike == 0
    half = weighted.task.part([0, 1, 119])
    assert half.score(knows({*short})).score == pytest.approx(100 * 8 * share / (8 * share + 4 / 3 * (1 - share)))
    assert exam.score(knows({*short})).score == pytest.approx(25)  # as it was
    assert weighted_like(exam, real.part(range(MIN_QUERIES - 1))) is None
