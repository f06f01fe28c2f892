import pytest

from selfsent.methods import get_method
from selfsent.training.plan import make_plan


@pytest.mark.parametrize(
    ("method", "options", "pairs"),
    [
        ("mnrl", {}, True),
        ("mnrl", {"positives": "neighbours"}, False),  # reads one column
        ("simcse", {"columns": True}, True),
        ("simcse", {}, False),
        ("triplet", {}, True),
        ("cosine", {}, False),  # learns from scores
        ("cross-encoder", {}, False),  # has no vectors to search by
    ],
)
def test_which_methods_learn_from_pairs_that_search_can_score(method, options, pairs):
    assert make_plan(get_method(method), "bundled-raw", **options).contrasts_pairs is pairs
