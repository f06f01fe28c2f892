from hypothesis import given
from hypothesis import strategies as st

from naive import distances
from selfsent.augment.distance import edit_distance
from selfsent.augment.statistics import Difference

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


def test_long_texts_are_measured_at_their_beginning():
    long = "the quick answer is no " * 20_000
    difference = Difference.of([long], ["x" + long[::-1]])
    assert difference == Difference(1, 0, edit_distance(long[:2000], "x" + long[::-1][:1999]) / 2000, 1 + 1 / len(long))
