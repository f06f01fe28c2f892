import numpy as np

from selfsent.data.views.view import NegativeSampler

CORPUS = np.arange(100, 600, 5)


def test_negatives_are_random_others_by_key_and_row_alone():
    rows = CORPUS[:64]
    partners = NegativeSampler(7)(rows, 3, CORPUS)
    assert ((partners == rows) == (np.arange(64) % 8 == 0)).all()
    assert (NegativeSampler(7)(rows[8:], 3, CORPUS) == partners[8:]).all()
    assert (NegativeSampler(7)(rows, 2, CORPUS) != partners).any()
    counts = np.zeros(600)
    for key in range(400):
        np.add.at(counts, NegativeSampler(7)(CORPUS[1:8], key, CORPUS)[1:], 1)
    assert counts[CORPUS].sum() == counts.sum()
    assert counts[CORPUS].min() > 5
    assert counts[CORPUS].std() < 1.5 * np.sqrt(counts[CORPUS].mean())
    two = np.array([4, 9])
    assert all(NegativeSampler(1)(two, key, two).tolist() == [4, 4] for key in range(20))
