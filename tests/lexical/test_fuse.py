"""The one place where dense and lexical scores are put together."""

import numpy as np
import pytest

from selfsent.errors import SettingsError
from selfsent.lexical.hybrid import check_weight, fuse, normalized, top_k, top_k_unordered


def test_the_sum_and_its_mean():
    dense, lexical = np.array([0.5, -0.25], np.float32), np.array([1.0, 0.5], np.float32)
    fused = fuse(dense, lexical, 1.5)
    assert fused.dtype == np.float32
    np.testing.assert_allclose(fused, [2.0, 0.5])
    np.testing.assert_allclose(normalized(fused, 1.5), [0.8, 0.2])
    assert normalized(fuse(0.5, 0.9, 0.0), 0.0) == 0.5


@pytest.mark.parametrize("k", [0, 1, 3, 7, 50])
def test_the_best_are_those_of_a_stable_sort(k):
    scores = np.random.default_rng(k).integers(0, 4, (5, 7)).astype(np.float32)
    expected = [sorted(range(7), key=lambda place: (-row[place], place))[:k] for row in scores.tolist()]
    assert top_k(scores, k).tolist() == expected
    assert top_k(scores[0], k).tolist() == expected[0]


@pytest.mark.parametrize("weight", [-0.1, 1000.1, float("nan"), float("inf")])
def test_weights_out_of_range_are_refused(weight):
    with pytest.raises(SettingsError, match="0 to 1,000"):
        check_weight(weight)


@pytest.mark.parametrize("kinds", [3, 100, 10**6])
@pytest.mark.parametrize("size", [0, 5, 200, 5000])
@pytest.mark.parametrize("above", [0.0, -np.inf])
def test_the_largest_are_those_of_a_sort(kinds, size, above):
    draw = np.random.default_rng(size + kinds)
    values = (draw.integers(0, kinds, size) * (draw.random(size) < 0.5)).astype(np.float32)
    values[: size // 3] = np.sort(values[: size // 3])  # a sample may lie
    for count in (1, 10, 300):
        found = top_k_unordered(values, count, above)
        assert len(set(found.tolist())) == len(found)
        expected = sorted(values[values > above].tolist(), reverse=True)[:count]
        assert sorted(values[found].tolist(), reverse=True) == expected
