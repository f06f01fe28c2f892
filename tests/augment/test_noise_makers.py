import pytest

import tiny
from selfsent.augment.noise import Dropout, Repetition, WordNoise

TEXTS = tiny.make_sentences(60, words=(8, 20))


def counts(made):
    return sum(len(view.split()) for view in made) / sum(len(text.split()) for text in TEXTS)


def test_words_deleted_exchanged_and_said_twice(views):
    deleted, swapped = views(WordNoise(ratio=0.4), TEXTS), views(WordNoise("swap", 0.4), TEXTS)
    repeated = views(Repetition(), TEXTS)
    assert counts(deleted) == pytest.approx(0.6, abs=0.05)
    assert counts(repeated) == pytest.approx(1.16, abs=0.05)
    for text, fewer, other, more in zip(TEXTS, deleted, swapped, repeated, strict=True):
        words = iter(text.split())
        assert all(word in words for word in fewer.split())  # in their order
        assert sorted(other.split()) == sorted(text.split())
        assert other != text
        assert list(dict.fromkeys(more.split())) == list(dict.fromkeys(text.split()))


@pytest.mark.parametrize("maker", [WordNoise(), WordNoise("swap"), Repetition()])
def test_key_and_row_alone_decide(maker, views):
    whole = views(maker, TEXTS, key=5)
    assert views(maker, TEXTS, key=5, size=7) == whole
    assert views(maker, TEXTS[::-1], key=5, rows=range(len(TEXTS) - 1, -1, -1)) == whole[::-1]
    assert views(maker, TEXTS, key=6) != whole


def test_nothing_is_changed_for_dropout_or_without_words(views):
    assert views(Dropout(), TEXTS) == TEXTS
    assert views(WordNoise(ratio=1.0), ["今天早上我买了书。"]) == ["今天早上我买了书。"]
