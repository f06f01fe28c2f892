import numpy as np
import pytest
from test_noise import KEY, chances_of, make_batch, same, sentences_of, some

from naive.noise import add, delete, exchange, swap, swap_pairs
from selfsent.data.random import make_key
from selfsent.data.views.noise import AddWords, Chain, DeleteWords, MaskWords, ReplaceWords, SwapPairs, SwapWords
from selfsent.data.views.tokens import Template, Tokens
from selfsent.errors import SettingsError

KINDS = [SwapWords, MaskWords, ReplaceWords, AddWords, SwapPairs]


@pytest.fixture(scope="module")
def template():
    ordinary = np.ones(200, dtype=bool)
    ordinary[:7] = False
    return Template((1,), (2,), 3, ordinary)


def others_of(batch, template):
    """For every word, the ordinary token that the second draw points at."""
    ordinary = [number for number, usable in enumerate(template.ordinary) if usable]
    return [[ordinary[int(c * len(ordinary))] for c in chances] for chances in chances_of(batch, KEY, draw=1)]


@pytest.mark.parametrize("ratio", [0.05, 0.4, 1.0])
def test_noise_equals_lists_of_words(ratio, template):
    batch = make_batch(200)
    words, chances, others = sentences_of(batch), chances_of(batch, KEY), others_of(batch, template)
    masks = [[template.mask] * len(each) for each in words]
    damaged = {kind: sentences_of(kind(ratio)(batch, KEY, template)) for kind in KINDS}
    assert damaged[SwapWords] == [swap(w, c, ratio) for w, c in zip(words, chances, strict=True)]
    assert damaged[MaskWords] == [exchange(w, c, ratio, m) for w, c, m in zip(words, chances, masks, strict=True)]
    assert damaged[ReplaceWords] == [exchange(w, c, ratio, o) for w, c, o in zip(words, chances, others, strict=True)]
    assert damaged[AddWords] == [add(w, c, ratio, o) for w, c, o in zip(words, chances, others, strict=True)]


@pytest.mark.parametrize("ratio", [0.1, 1.0])
def test_pairs_are_swapped_as_in_lists_of_words_and_behind_deletion(ratio, template):
    batch = make_batch(200)
    damaged = SwapPairs(ratio)(batch, KEY, template)
    expected = [swap_pairs(*each, ratio) for each in zip(sentences_of(batch), chances_of(batch, KEY, 1), strict=True)]
    assert sentences_of(damaged) == expected
    both = Chain((DeleteWords(0.3), SwapPairs(ratio)))(batch, KEY, template)
    kept = [delete(*each, 0.3) for each in zip(sentences_of(batch), chances_of(batch, KEY), strict=True)]
    chances = chances_of(DeleteWords(0.3)(batch, KEY, template), KEY, 1)
    assert sentences_of(both) == [swap_pairs(*each, ratio) for each in zip(kept, chances, strict=True)]


def test_shares_are_the_ratio(template):
    batch = make_batch(1000, longest=40)
    words = sentences_of(batch)
    total = sum(map(len, words))
    swapped, masked, replaced, longer = (sentences_of(kind(0.3)(batch, KEY, template)) for kind in KINDS[:4])
    moved = sum(
        a != b for before, after in zip(words, swapped, strict=True) for a, b in zip(before, after, strict=True)
    )
    assert moved / total == pytest.approx(0.3, abs=0.02)
    assert all(sorted(a) == sorted(b) for a, b in zip(words, swapped, strict=True))
    assert sum(each.count((template.mask,)) for each in masked) / total == pytest.approx(0.3, abs=0.02)
    fresh = {word for before, after in zip(words, replaced, strict=True) for word in after if word not in before}
    assert {token for (token,) in fresh} == set(np.flatnonzero(template.ordinary))
    assert sum(map(len, longer)) / total == pytest.approx(1.3, abs=0.02)


@pytest.mark.parametrize("kind", KINDS)
def test_noise_depends_on_key_and_row_alone(kind, template):
    batch, noise = make_batch(60), kind(0.5)
    everything = noise(batch, KEY, template)
    same(everything, noise(batch, KEY, template))
    assert everything.ids.tolist() != noise(batch, make_key(0, 1, 1), template).ids.tolist()
    order = np.random.default_rng(1).permutation(60)[:20]
    assert noise(some(batch, order), KEY, template).ids.tolist() == some(everything, order).ids.tolist()
    assert everything.lengths.sum() == len(everything.ids) == len(everything.word_starts)


@pytest.mark.parametrize("kind", KINDS)
def test_edges(kind, template):
    lengths = np.array([0, 2, 0, 1, 3, 0])
    batch = Tokens(np.arange(50, 56), lengths, np.array([True, False, True, True, True, True]), np.arange(6))
    damaged = kind(0.9)(batch, KEY, template)
    assert (damaged.lengths == 0).tolist() == (lengths == 0).tolist()
    nothing = Tokens(np.empty(0, np.int64), np.zeros(2, np.int64), np.empty(0, bool), np.arange(2))
    assert kind(0.9)(nothing, KEY, template).lengths.tolist() == [0, 0]
    assert kind(0.0)(batch, KEY, template) is batch
    assert batch.ids.tolist() == list(range(50, 56))


def test_masks_need_a_mask(template):
    with pytest.raises(SettingsError, match="choose another --noise"):
        MaskWords()(make_batch(3), KEY, Template((), (), None, template.ordinary))
