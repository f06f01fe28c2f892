import numpy as np
import pytest

import tiny
from selfsent.data.targets import IGNORED
from selfsent.data.views.tokens import Template, Tokens


def tokens_of(tokenizer, sentences):
    encoded = [tokenizer(s, add_special_tokens=False)["input_ids"] for s in sentences]
    ids = np.array([token for one in encoded for token in one], dtype=np.int64)
    return Tokens(ids, np.array([len(one) for one in encoded]), np.ones(len(ids), bool), np.arange(len(encoded)))


@pytest.mark.parametrize("wrap", [True, False])
@pytest.mark.parametrize("kind", ["word pieces", "byte pairs", "pieces"])
def test_packing_equals_the_tokenizer(kind, wrap):
    tokenizer = tiny.make_tokenizer(kind, wrap)
    sentences = [*tiny.make_sentences(20, seed=4), *([""] if wrap else [])]
    template = Template.of(tokenizer, len(tokenizer))
    for longest in (tiny.LONGEST, 9):
        packed = template.pack(tokens_of(tokenizer, sentences), longest)
        expected = tokenizer(sentences, truncation=True, max_length=longest)["input_ids"]
        ends = np.cumsum(packed.given_lengths)[:-1]
        assert [ids.tolist() for ids in np.split(packed.given_ids, ends)] == expected
    assert np.flatnonzero(~template.ordinary).tolist() == sorted(tokenizer.all_special_ids)


def test_special_tokens_are_never_targets():
    template = Template((101,), (102, 103), None, np.ones(5, bool))
    targets = np.array([7, IGNORED, 8, 9, IGNORED])
    tokens = Tokens(np.arange(5), np.array([2, 3]), np.ones(5, bool), np.arange(2), targets)
    packed = template.pack(tokens, 5)
    assert packed.given_ids.tolist() == [101, 0, 1, 102, 103, 101, 2, 3, 102, 103]
    assert packed.given_targets.tolist() == [-1, 7, -1, -1, -1, -1, 8, 9, -1, -1]


def test_words_are_numbered_within_their_sentence():
    # A sentence begins a word, whatever its first token says.
    starts = np.array([False, False, True, True, True, False])
    tokens = Tokens(np.arange(6), np.array([0, 3, 0, 3]), starts, np.arange(4))
    word, sentence, place = tokens.words()
    assert word.tolist() == [0, 0, 1, 2, 3, 3]
    assert sentence.tolist() == [1, 1, 3, 3]
    assert place.tolist() == [0, 1, 0, 1]
    assert tokens.take(np.array([0, 2, 2, 4])).lengths.tolist() == [0, 3, 0, 1]
