from selfsent.augment.difference import Difference


def test_means_over_views():
    difference = Difference.of(["abcd", "same"], ["abxdef", "same"]) + Difference.of(["ab"], ["a"])
    assert difference == Difference(3, 1, 0.5 + 0.5, 1.5 + 1 + 0.5)
    assert difference.summary() == "33.3% unchanged, mean edit distance 33.3% of the characters, length ratio 1.00"


def test_long_texts_are_measured_at_their_beginning():
    long = "the quick answer is no " * 20_000
    difference = Difference.of([long], ["x" + long[::-1]])
    assert difference == Difference.of([long[:2000]], [("x" + long[::-1])[:2000]]) + Difference(
        0, 0, 0.0, 1 / len(long)
    )
