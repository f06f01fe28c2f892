import numpy as np
import pytest

from selfsent.index.snapshot import _best_by_words, _largest


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


@pytest.mark.parametrize("weight", [1.5, 3, 30, 1000])
def test_the_best_by_words_are_among_those_given_whatever_the_cosines_are(weight):
    draw, decided = np.random.default_rng(0), 0
    for size, spread in [(5, 1), (400, 1), (400, 0.1), (5000, 1), (5000, 0.001)]:
        lexical = (1 - spread * draw.random(size)).astype(np.float32) * (draw.random(size) < 0.5)
        mask = draw.random(size) < 0.9
        found = _best_by_words(lexical, weight, 10, mask)
        if found is None:
            continue
        decided += 1
        assert (np.diff(found) > 0).all()
        fused = np.sign(draw.random(size) - 0.5) + weight * lexical
        fused[~mask] = -np.inf
        assert set(np.argsort(-fused)[:10].tolist()) <= set(found.tolist())
    assert decided == {1.5: 0, 3: 2, 30: 3, 1000: 3}[weight]
