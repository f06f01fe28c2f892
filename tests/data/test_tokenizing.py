"""Texts cut at their spaces give the tokens of whole ones, or are not cut."""

from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import numpy as np
import pytest
from tokenizers import Tokenizer, models, pre_tokenizers, trainers

import tiny
from selfsent.data import tokenizing
from selfsent.data.tokenizing import CachedTokenizer

TEXTS = [
    *("", " ", "  ", " a", "a ", "  a   b ", "a", "bidi gafo, ka-te!  two  spaces "),
    *("\tbidi\ngafo\x00 ka\u0301 \u2603 \u4f60\u597d", "[MASK] <mask> and x[MASK]y <mask> .", "over " * 50, "x" * 300),
    *tiny.make_sentences(60, seed=5),
]


def wordwise(tokenizer, texts):
    """Ids, lengths and word starts, text by text and token by token."""
    encoded = [tokenizer.encode(text, add_special_tokens=False) for text in texts]
    words = [[object(), *each.word_ids] for each in encoded]
    starts = [a != b for each in words for a, b in pairwise(each)]
    return [token for each in encoded for token in each.ids], [len(each.ids) for each in encoded], starts


def spanning_spaces():
    """A tokenizer whose tokens may lead from one word into the next."""
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(split=False)
    trainer = trainers.UnigramTrainer(vocab_size=80, unk_token="<unk>", special_tokens=["<unk>"], show_progress=False)
    tokenizer.train_from_iterator(["the cat sat on the mat", "the dog sat on the rug"] * 50, trainer)
    return tokenizer


def without_prefix():
    """Byte pairs to which the first word of a text is not the same as behind a space."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    options = {"initial_alphabet": pre_tokenizers.ByteLevel.alphabet(), "special_tokens": ["<mask>"]}
    trainer = trainers.BpeTrainer(vocab_size=320, show_progress=False, **options)
    tokenizer.train_from_iterator(tiny.make_sentences(100), trainer)
    return tokenizer


@pytest.mark.parametrize("kind", ["word pieces", "byte pairs", "pieces", without_prefix, spanning_spaces])
def test_tokens_are_those_of_whole_texts(kind):
    reader = CachedTokenizer(kind() if callable(kind) else tiny.make_tokenizer(kind).backend_tokenizer)
    assert (reader.space is None) == (kind is spanning_spaces)
    for texts in (TEXTS, TEXTS, []):  # the second time from memory
        read = reader(texts)
        found = read.ids.tolist(), read.lengths.tolist(), read.word_starts.tolist()
        assert found == wordwise(reader.tokenizer, texts)


@pytest.fixture
def reader():
    tokenizer = tiny.make_tokenizer().backend_tokenizer
    tokenizer.enable_truncation(4)
    tokenizer.enable_padding(length=50)
    made = CachedTokenizer(tokenizer)
    assert len(tokenizer.encode("bidi").ids) == 50
    return made


def test_memory_is_bounded_and_what_is_forgotten_is_read_again(reader, monkeypatch):
    monkeypatch.setattr(tokenizing, "KNOWN", 20)
    for _ in range(2):
        assert reader(TEXTS).ids.tolist() == wordwise(reader.tokenizer, TEXTS)[0]
        assert len(reader._numbers) == len(reader._pieces.lengths) == 20
    assert max(map(len, reader._numbers)) <= 100, "a piece of 300 characters was remembered"


def test_texts_are_selected_and_cut(reader):
    read = reader(["bidi gafo kate", "", "mu"])
    twice = read.select(np.array([2, 0, 0, 1]), longest=2)
    assert twice.lengths.tolist() == [min(2, length) for length in read.lengths[[2, 0, 0, 1]]]
    assert twice.ids[twice.starts[1] : twice.starts[1] + 2].tolist() == read.ids[:2].tolist()


def test_threads_and_interrupts_do_no_harm(reader, monkeypatch):
    with monkeypatch.context() as broken:
        broken.setattr(reader, "_whole", lambda texts: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            reader(TEXTS)
    parts = [tiny.make_sentences(200, seed=seed, words=(3, 9)) for seed in range(8)]
    with ThreadPoolExecutor(8) as threads:
        for texts, read in zip(parts * 3, threads.map(reader, parts * 3), strict=True):
            assert read.ids.tolist() == wordwise(reader.tokenizer, texts)[0]
