import numpy as np
import pytest

import tiny
from naive.noise import delete, is_subsequence, pick, words_of
from selfsent.data.packed import IGNORED
from selfsent.data.random import make_key, uniforms
from selfsent.data.views.noise import DeleteWords, MaskTokens, PickWords
from selfsent.data.views.tokens import Template, Tokens
from selfsent.errors import SettingsError

KEY = make_key(0, 0, 1)


def make_batch(count=1000, seed=0, longest=20):
    """Random sentences; every token id says which sentence, word and piece it is."""
    rng = np.random.default_rng(seed)
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


def chances_of(tokens, key, draw=0):
    return [
        uniforms(key, np.full(len(words), row), np.arange(len(words)), draw).tolist()
        for words, row in zip(sentences_of(tokens), tokens.rows, strict=True)
    ]


def some(tokens, chosen):
    """The sentences at `chosen`, in that order."""
    ends = np.cumsum(tokens.lengths)
    index = np.concatenate([np.arange(ends[i] - tokens.lengths[i], ends[i]) for i in chosen])
    return Tokens(tokens.ids[index], tokens.lengths[chosen], tokens.word_starts[index], tokens.rows[chosen])


@pytest.fixture(scope="module")
def template():
    ordinary = np.ones(200, dtype=bool)
    ordinary[:7] = False
    return Template((1,), (2,), 3, ordinary)


NOISES = [DeleteWords(0.6), PickWords(4), MaskTokens(), MaskTokens(whole_words=True)]


def same(a, b):
    assert a.ids.tolist() == b.ids.tolist()
    assert a.lengths.tolist() == b.lengths.tolist()
    assert (a.targets is None) == (b.targets is None)
    assert a.targets is None or a.targets.tolist() == b.targets.tolist()


def test_deletion_equals_lists_of_words(template):
    batch = make_batch(200)
    expected = [delete(w, c, 0.6) for w, c in zip(sentences_of(batch), chances_of(batch, KEY), strict=True)]
    assert sentences_of(DeleteWords(0.6)(batch, KEY, template)) == expected


@pytest.mark.parametrize("ratio", [0.1, 0.6, 0.9])
def test_deletion_has_its_share_and_leaves_whole_words(ratio, template):
    batch = make_batch()
    whole, damaged = sentences_of(batch), sentences_of(DeleteWords(ratio)(batch, KEY, template))
    assert sum(map(len, whole)) > 10_000
    kept = sum(len(words) for words in damaged) / sum(map(len, whole))
    # What the rule that one word stays adds to 1 - ratio: ratio**n of the sentences of n words keep one more.
    rescued = sum(ratio ** len(words) for words in whole) / sum(map(len, whole))
    assert kept - rescued == pytest.approx(1 - ratio, abs=0.02)
    assert min(map(len, damaged)) == 1
    assert all(is_subsequence(part, words) for part, words in zip(damaged, whole, strict=True))


def test_six_words_of_ten_go_where_sentences_are_long(template):
    batch = make_batch(300, longest=80)
    whole, damaged = sentences_of(batch), sentences_of(DeleteWords()(batch, KEY, template))
    assert sum(map(len, whole)) > 10_000
    deleted = 1 - sum(map(len, damaged)) / sum(map(len, whole))
    assert deleted == pytest.approx(0.6, abs=0.02)


def test_everything_deleted_leaves_one_random_word(template):
    batch = make_batch(3000, longest=6)
    damaged = sentences_of(DeleteWords(1.0)(batch, KEY, template))
    assert {len(words) for words in damaged} == {1}
    places = [w.index(d[0]) for w, d in zip(sentences_of(batch), damaged, strict=True) if len(w) == 6]
    counts = np.bincount(places, minlength=6) / len(places)
    assert counts == pytest.approx(np.full(6, 1 / 6), abs=0.06)


@pytest.mark.parametrize("whole_words", [False, True])
def test_masking_has_its_shares(whole_words, template):
    batch = make_batch(longest=60)
    masked = MaskTokens(0.15, whole_words)(batch, KEY, template)
    chosen = masked.targets != IGNORED
    assert masked.targets[chosen].tolist() == batch.ids[chosen].tolist()
    assert masked.ids[~chosen].tolist() == batch.ids[~chosen].tolist()
    assert chosen.mean() == pytest.approx(0.15, abs=0.01)
    is_mask, same_id = masked.ids[chosen] == template.mask, masked.ids[chosen] == batch.ids[chosen]
    assert is_mask.mean() == pytest.approx(0.8, abs=0.02)
    assert same_id.mean() == pytest.approx(0.1, abs=0.02)
    others = masked.ids[chosen][~is_mask & ~same_id]
    assert template.ordinary[others].all()
    assert len(set(others.tolist())) > 150
    per_sentence = np.add.reduceat(chosen, np.cumsum(batch.lengths) - batch.lengths)
    assert per_sentence.min() == 1
    if whole_words:
        word, _, _ = batch.words()
        assert all(len(set(chosen[word == number])) == 1 for number in range(100))


@pytest.mark.parametrize("noise", NOISES, ids=str)
def test_noise_depends_on_nothing_but_key_and_row(noise, template):
    batch = make_batch(100)
    everything = noise(batch, KEY, template)
    same(everything, noise(batch, KEY, template))
    order = np.random.default_rng(1).permutation(100)[:37]
    inside = Tokens(everything.ids, everything.lengths, everything.word_starts, everything.rows, None)
    alone = noise(some(batch, order), KEY, template)
    assert alone.ids.tolist() == some(inside, order).ids.tolist()
    assert alone.lengths.tolist() == everything.lengths[order].tolist()


@pytest.mark.parametrize("noise", NOISES, ids=str)
def test_noise_is_fresh_with_every_seed_epoch_and_view(noise, template):
    batch = make_batch(50)
    looks = [
        noise(batch, make_key(*parts), template).ids.tolist() for parts in [(0, 0, 1), (1, 0, 1), (0, 1, 1), (0, 0, 2)]
    ]
    assert len({tuple(look) for look in looks}) == 4


@pytest.mark.parametrize("noise", NOISES, ids=str)
def test_noise_leaves_its_input_alone(noise, template):
    batch = make_batch(50)
    ids, lengths = batch.ids.copy(), batch.lengths.copy()
    noise(batch, KEY, template)
    assert (batch.ids.tolist(), batch.lengths.tolist()) == (ids.tolist(), lengths.tolist())


@pytest.mark.parametrize("noise", NOISES, ids=str)
def test_empty_sentences_stay_empty(noise, template):
    lengths = np.array([0, 2, 0, 0, 3, 0])
    batch = Tokens(np.arange(50, 55), lengths, np.array([True, False, True, True, True]), np.arange(6))
    damaged = noise(batch, KEY, template)
    assert (damaged.lengths == 0).tolist() == (lengths == 0).tolist()
    nothing = Tokens(np.empty(0, np.int64), np.zeros(2, np.int64), np.empty(0, bool), np.arange(2))
    assert noise(nothing, KEY, template).lengths.tolist() == [0, 0]


def test_a_noise_of_nothing_changes_nothing(template):
    batch = make_batch(20)
    assert DeleteWords(0.0)(batch, KEY, template) is batch


def test_masking_needs_a_mask(template):
    with pytest.raises(SettingsError, match="needs a mask token"):
        MaskTokens()(make_batch(3), KEY, Template((), (), None, template.ordinary))


def test_random_numbers_are_even_and_unrelated():
    rows, places = np.repeat(np.arange(300), 300), np.tile(np.arange(300), 300)
    grids = [
        uniforms(KEY, rows, places),
        uniforms(KEY, rows, places, draw=1),
        uniforms(make_key(1, 0, 1), rows, places),
    ]
    for grid in grids:
        assert 0 <= grid.min() <= grid.max() < 1
        assert np.histogram(grid, 10, (0, 1))[0] / len(grid) == pytest.approx(np.full(10, 0.1), abs=0.005)
        square = grid.reshape(300, 300)
        for a, b in [(square[:-1], square[1:]), (square[:, :-1], square[:, 1:])]:
            assert abs(np.corrcoef(a.ravel(), b.ravel())[0, 1]) < 0.015
    assert abs(np.corrcoef(grids)[np.triu_indices(3, 1)]).max() < 0.015


def test_real_tokenizers_tell_where_words_begin():
    """Words of one to four tokens stay whole, whatever the tokenizer's way of marking where a word begins."""
    for kind in ("word pieces", "byte pairs", "pieces"):
        tokenizer = tiny.make_tokenizer(kind)
        sentence = tiny.make_sentences(1, seed=3, words=(10, 10))[0]
        encoded = tokenizer(sentence, add_special_tokens=False)
        starts = np.diff(encoded.word_ids(), prepend=-1) != 0
        ids = np.array(encoded["input_ids"])
        assert len(ids) > starts.sum() == 10
        batch = Tokens(ids, np.array([len(ids)]), starts, np.zeros(1, np.int64))
        left = DeleteWords(0.5)(batch, KEY, Template.of(tokenizer, len(tokenizer)))
        assert is_subsequence(tokenizer.decode(left.ids).split(), sentence.split())


def test_picking_equals_lists_of_words(template):
    batch = make_batch(200)
    counts = 1 + (4 * uniforms(KEY, batch.rows, np.zeros(200, dtype=np.int64), draw=1)).astype(int)
    expected = [pick(w, c, n) for w, c, n in zip(sentences_of(batch), chances_of(batch, KEY), counts, strict=True)]
    assert sentences_of(PickWords(4)(batch, KEY, template)) == expected
    assert sorted(set(map(len, expected))) == [1, 2, 3, 4]
