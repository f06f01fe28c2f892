import numpy as np
import pytest

from selfsent.index.snapshot import best_by_words


@pytest.mark.parametrize("weight", [1.5, 3, 30, 1000])
def test_thebest_by_words_are_among_those_given_whatever_the_cosines_are(weight):
    draw, decided = np.random.default_rng(0), 0
    for size, spread in [(5, 1), (400, 1), (400, 0.1), (5000, 1), (5000, 0.001)]:
        lexical = (1 - spread * draw.random(size)).astype(np.float32) * (draw.random(size) < 0.5)
        mask = draw.random(size) < 0.9
        found = best_by_words(lexical, weight, 10, mask)
        if found is None:
            continue
        decided += 1
        assert (np.diff(found) > 0).all()
        fused = np.sign(draw.random(size) - 0.5) + weight * lexical
        fused[~mask] = -np.inf
        assert set(np.argsort(-fused)[:10].tolist()) <= set(found.tolist())
    assert decided == {1.5: 0, 3: 2, 30: 3, 1000: 3}[weight]
