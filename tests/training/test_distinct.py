import numpy as np
import pytest

import tiny
from selfsent.errors import SettingsError
from selfsent.training.distinct import text_keys, without_repeats

rng = np.random.default_rng(0)


@pytest.mark.parametrize("texts", [300, 40])
def test_no_batch_holds_a_text_twice_and_nearly_all_rows_are_used(texts):
    keys = rng.integers(texts, size=(200, 2)).astype(np.uint64)
    order = rng.permutation(200)
    placed = without_repeats(order, keys, 8)
    assert placed.shape == (200,)
    for batch in placed.reshape(-1, 8):
        found = [key for row in batch for key in set(keys[row].tolist())]
        assert len(set(found)) == len(found)
    assert len(set(placed.tolist())) >= (195 if texts == 300 else 170)
    assert np.array_equal(placed, without_repeats(order, keys, 8))


def test_rows_that_go_together_keep_their_order():
    order = rng.permutation(50)
    keys = np.arange(100, dtype=np.uint64).reshape(50, 2)
    assert np.array_equal(without_repeats(order, keys, 7), order[:49])


def test_a_text_in_most_rows_takes_no_time():
    keys = np.arange(40_000, dtype=np.uint64).reshape(20_000, 2)
    keys[:15_000, 1] = 1
    placed = without_repeats(rng.permutation(20_000), keys, 16).reshape(-1, 16)
    assert ((placed < 15_000).sum(axis=1) <= 1).all()


def test_too_few_texts_for_a_batch():
    with pytest.raises(SettingsError, match=r"no batch of 8 rows .* lower --batch-size to 5 or less"):
        without_repeats(np.arange(100), np.arange(100, dtype=np.uint64)[:, None] % 5, 8)


def test_texts_are_the_same_once_cut():
    tokenizer = tiny.make_tokenizer()
    start = "bada gifo kute nasi"
    table = tiny.Table(tokenizer, [start, f"{start} pemo", f"{start} tolu", "gifo bada kute nasi"])
    length = len(tokenizer(start, add_special_tokens=False)["input_ids"])
    whole, cut = (text_keys(table, np.arange(4), longest) for longest in (40, length))
    assert len(set(whole.tolist())) == 4
    assert len(set(cut.tolist())) == 2
    assert cut[0] == cut[1] == cut[2] == whole[0]
