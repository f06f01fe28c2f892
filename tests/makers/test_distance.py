from hypothesis import given
from hypothesis import strategies as st

from naive import distances
from selfsent.makers.distance import edit_distance
from selfsent.makers.statistics import Difference

TEXTS = st.text("ab😀ش", max_size=12)


@given(TEXTS, TEXTS)
def test_equal_to_the_table(a, b):
    assert edit_distance(a, b) == distances.edit_distance(a, b)


def test_longer_than_a_machine_word():
    a = "the quick answer is no " * 9
    b = a[:50] + "x" + a[52:120] + "yy" + a[121:]
    assert edit_distance(a, b) == distances.edit_distance(a, b)


def test_means_over_views():
    difference = Difference.of(["abcd", "same"], ["abxdef", "same"]) + Difference.of(["ab"], ["a"])
    assert difference == Difference(3, 1, 0.5 + 0.5, 1.5 + 1 + 0.5)
    assert difference.summary() == "33.3% unchanged, mean edit distance 33.3% of the characters, length ratio 1.00"
