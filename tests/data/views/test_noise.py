import numpy as np
import pytest

import tiny
from naive import noise as naive
from naive.noise import is_subsequence, words_of
from selfsent.data.random import make_key, uniforms
from selfsent.data.targets import IGNORED
from selfsent.data.views.noise import AddWords, DeleteWords, MaskTokens, MaskWords, PickWords, ReplaceWords, SwapWords
from selfsent.data.views.tokens import Template, Tokens
from selfsent.errors import SettingsError

KEY = make_key(0, 0, 1)
ORDINARY = np.arange(200) >= 7
TEMPLATE = Template((1,), (2,), 3, ORDINARY)
NOISES = [
    *(DeleteWords(0.6), PickWords(4), MaskTokens()),
    *(SwapWords(0.5), MaskWords(0.5), ReplaceWords(0.5), AddWords(0.5)),
]
each_noise = pytest.mark.parametrize("noise", NOISES, ids=str)


def make_batch(count=200, longest=20):
    """Random sentences; every token id says which sentence, word and piece it is."""
    rng = np.random.default_rng(0)
    ids, starts, lengths = [], [], []
    for sentence in range(count):
        pieces = rng.integers(1, 4, rng.integers(1, longest + 1))
        for word, size in enumerate(pieces):
            ids += [(sentence * 100 + word) * 10 + piece for piece in range(size)]
            starts += [True] + [False] * (size - 1)
        lengths.append(pieces.sum())
    return Tokens(np.array(ids), np.array(lengths), np.array(starts), np.arange(count) * 3 + 5)


def sentences_of(tokens):
    """The words of each sentence."""
    ends = np.cumsum(tokens.lengths)[:-1]
    pairs = zip(np.split(tokens.ids, ends), np.split(tokens.word_starts, ends), strict=True)
    return [words_of(ids.tolist(), starts.tolist()) for ids, starts in pairs]


def chances_of(tokens, draw=0):
    pairs = zip(sentences_of(tokens), tokens.rows, strict=True)
    return [uniforms(KEY, np.full(len(words), row), np.arange(len(words)), draw).tolist() for words, row in pairs]


def each(function, *lists):
    return [function(*values) for values in zip(*lists, strict=True)]


def damaged(noise, batch):
    return sentences_of(noise(batch, KEY, TEMPLATE))


@pytest.mark.parametrize("ratio", [0.05, 0.4, 1.0])
def test_noise_equals_lists_of_words(ratio):
    batch = make_batch()
    words, chances = sentences_of(batch), chances_of(batch)
    ordinary = np.flatnonzero(ORDINARY).tolist()
    others = [[ordinary[int(c * len(ordinary))] for c in row] for row in chances_of(batch, draw=1)]
    masks, ratios = [[3] * len(row) for row in words], [ratio] * len(words)
    by_sentence = uniforms(KEY, batch.rows, np.zeros(len(words), dtype=np.int64), draw=1)
    assert damaged(DeleteWords(ratio), batch) == each(naive.delete, words, chances, ratios)
    picked = each(naive.pick, words, chances, 1 + (4 * by_sentence).astype(int))
    assert damaged(PickWords(4), batch) == picked
    assert set(map(len, picked)) == {1, 2, 3, 4}
    assert damaged(SwapWords(ratio), batch) == each(naive.swap, words, chances, ratios)
    assert damaged(MaskWords(ratio), batch) == each(naive.exchange, words, chances, ratios, masks)
    assert damaged(ReplaceWords(ratio), batch) == each(naive.exchange, words, chances, ratios, others)
    assert damaged(AddWords(ratio), batch) == each(naive.add, words, chances, ratios, others)


def test_shares_are_the_ratio():
    batch = make_batch(1000, longest=40)
    words = sentences_of(batch)
    total = sum(map(len, words))
    deleted, longer, swapped = (damaged(kind(0.3), batch) for kind in (DeleteWords, AddWords, SwapWords))
    assert sum(map(len, deleted)) / total == pytest.approx(0.7, abs=0.02)
    assert min(map(len, deleted)) == 1
    assert sum(map(len, longer)) / total == pytest.approx(1.3, abs=0.02)
    moved = sum(a != b for pair in zip(words, swapped, strict=True) for a, b in zip(*pair, strict=True))
    assert moved / total == pytest.approx(0.3, abs=0.02)


def test_everything_deleted_leaves_one_random_word():
    batch = make_batch(3000, longest=6)
    left = damaged(DeleteWords(1.0), batch)
    assert {len(words) for words in left} == {1}
    places = [w.index(d[0]) for w, d in zip(sentences_of(batch), left, strict=True) if len(w) == 6]
    assert np.bincount(places, minlength=6) / len(places) == pytest.approx(np.full(6, 1 / 6), abs=0.06)


def test_masking_has_its_shares():
    batch = make_batch(1000, longest=60)
    masked = MaskTokens(0.15)(batch, KEY, TEMPLATE)
    chosen = masked.targets != IGNORED
    assert masked.targets[chosen].tolist() == batch.ids[chosen].tolist()
    assert masked.ids[~chosen].tolist() == batch.ids[~chosen].tolist()
    is_mask, same_id = masked.ids[chosen] == TEMPLATE.mask, masked.ids[chosen] == batch.ids[chosen]
    shares = chosen.mean(), is_mask.mean(), same_id.mean()
    assert shares == (pytest.approx(0.15, abs=0.01), pytest.approx(0.8, abs=0.02), pytest.approx(0.1, abs=0.02))
    others = masked.ids[chosen][~is_mask & ~same_id]
    assert ORDINARY[others].all()
    assert len(set(others.tolist())) > 150
    assert np.add.reduceat(chosen, batch.starts).min() == 1


@each_noise
def test_noise_depends_on_nothing_but_key_and_row(noise):
    batch = make_batch(100)
    before = batch.ids.copy(), batch.lengths.copy()
    everything = noise(batch, KEY, TEMPLATE)
    assert batch.ids.tolist() == before[0].tolist()
    assert batch.lengths.tolist() == before[1].tolist()
    order = np.random.default_rng(1).permutation(100)[:37]
    alone = noise(batch.select(order), KEY, TEMPLATE)
    assert alone.ids.tolist() == everything.select(order).ids.tolist()
    assert alone.lengths.tolist() == everything.lengths[order].tolist()
    keys = [make_key(*parts) for parts in ((0, 0, 1), (1, 0, 1), (0, 1, 1), (0, 0, 2))]
    assert len({tuple(noise(batch, key, TEMPLATE).ids.tolist()) for key in keys}) == 4


@each_noise
def test_edges(noise):
    lengths = np.array([0, 2, 0, 1, 3, 0])
    batch = Tokens(np.arange(50, 56), lengths, np.array([True, False, True, True, True, True]), np.arange(6))
    assert (noise(batch, KEY, TEMPLATE).lengths == 0).tolist() == (lengths == 0).tolist()
    nothing = Tokens(np.empty(0, np.int64), np.zeros(2, np.int64), np.empty(0, bool), np.arange(2))
    assert noise(nothing, KEY, TEMPLATE).lengths.tolist() == [0, 0]
    if not isinstance(noise, PickWords | MaskTokens):
        assert type(noise)(0.0)(batch, KEY, TEMPLATE) is batch


@pytest.mark.parametrize(("noise", "said"), [(MaskWords(), "choose another `noise`"), (MaskTokens(), "needs a mask")])
def test_masking_needs_a_mask(noise, said):
    with pytest.raises(SettingsError, match=said):
        noise(make_batch(3), KEY, Template((), (), None, ORDINARY))


def test_random_numbers_are_even_and_unrelated():
    rows, places = np.repeat(np.arange(300), 300), np.tile(np.arange(300), 300)
    draws = (KEY, 0), (KEY, 1), (make_key(1, 0, 1), 0)
    grids = [uniforms(key, rows, places, draw) for key, draw in draws]
    for grid in grids:
        assert 0 <= grid.min() <= grid.max() < 1
        assert np.histogram(grid, 10, (0, 1))[0] / len(grid) == pytest.approx(np.full(10, 0.1), abs=0.005)
        square = grid.reshape(300, 300)
        for a, b in [(square[:-1], square[1:]), (square[:, :-1], square[:, 1:])]:
            assert abs(np.corrcoef(a.ravel(), b.ravel())[0, 1]) < 0.015
    assert abs(np.corrcoef(grids)[np.triu_indices(3, 1)]).max() < 0.015


@pytest.mark.parametrize("kind", ["word pieces", "byte pairs", "pieces"])
def test_words_of_real_tokenizers_stay_whole(kind):
    tokenizer = tiny.make_tokenizer(kind)
    sentence = tiny.make_sentences(1, seed=3, words=(10, 10))[0]
    encoded = tokenizer(sentence, add_special_tokens=False)
    starts = np.diff(encoded.word_ids(), prepend=-1) != 0
    ids = np.array(encoded["input_ids"])
    assert len(ids) > starts.sum() == 10
    batch = Tokens(ids, np.array([len(ids)]), starts, np.zeros(1, np.int64))
    left = DeleteWords(0.5)(batch, KEY, Template.of(tokenizer, len(tokenizer)))
    assert is_subsequence(tokenizer.decode(left.ids).split(), sentence.split())
