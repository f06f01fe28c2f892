import numpy as np
import pytest

from selfsent.index.snapshot import _largest


@pytest.mark.parametrize("kinds", [3, 100, 10**6])
@pytest.mark.parametrize("size", [0, 5, 200, 5000])
@pytest.mark.parametrize("above", [0.0, -np.inf])
def test_the_largest_are_those_of_a_sort(kinds, size, above):
    draw = np.random.default_rng(size + kinds)
    values = (draw.integers(0, kinds, size) * (draw.random(size) < 0.5)).astype(np.float32)
    values[: size // 3] = np.sort(values[: size // 3])  # a sample may lie
    for count in (1, 10, 300):
        found = _largest(values, count, above)
        assert len(set(found.tolist())) == len(found)
        expected = sorted(values[values > above].tolist(), reverse=True)[:count]
        assert sorted(values[found].tolist(), reverse=True) == expected
