import numpy as np

from selfsent.data.views.view import NegativeSampler

CORPUS = np.arange(100, 600, 5)


def test_the_first_of_every_group_is_its_own_partner_and_nobody_else():
    rows = CORPUS[:64]
    partners = NegativeSampler(7)(rows, 3, CORPUS)
    assert ((partners == rows) == (np.arange(64) % 8 == 0)).all()
    assert np.isin(partners, CORPUS).all()


def test_partners_are_drawn_from_the_whole_corpus_alike():
    counts = np.zeros(600)
    for key in range(400):
        np.add.at(counts, NegativeSampler(7)(CORPUS[1:8], key, CORPUS)[1:], 1)
    assert counts[CORPUS].min() > 5
    assert counts[CORPUS].std() < 1.5 * np.sqrt(counts[CORPUS].mean())


def test_partners_depend_on_key_and_row_alone():
    rows = CORPUS[:16]
    first = NegativeSampler(7)(rows, 1, CORPUS)
    assert (NegativeSampler(7)(rows, 1, CORPUS) == first).all()
    assert (NegativeSampler(7)(rows[8:], 1, CORPUS) == first[8:]).all()
    assert (NegativeSampler(7)(rows, 2, CORPUS) != first).any()


def test_of_two_sentences_the_other_is_the_partner():
    two = np.array([4, 9])
    for key in range(20):
        assert NegativeSampler(1)(two, key, two).tolist() == [4, 4]
