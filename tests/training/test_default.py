import pytest

import tiny
from selfsent import read_corpus
from selfsent.training.default import default_plan


@pytest.fixture
def lonely(tmp_path):
    return read_corpus(tiny.make_sentences(20), cache=tmp_path / "cache")


def test_noise_of_the_users_own_takes_the_place_of_the_usual(lonely):
    usual, _ = default_plan(lonely, "bundled")
    own, _ = default_plan(lonely, "bundled", delete_words=0.3, pooling=None)
    assert (usual.options.crop_words, usual.pooling) == (0.5, "mean")
    assert (own.options.crop_words, own.options.delete_words, own.pooling) == (0, 0.3, "mean")
