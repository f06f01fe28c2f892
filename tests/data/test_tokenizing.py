"""Texts cut at their spaces give the tokens of whole ones, or are not cut."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from tokenizers import Tokenizer, models, pre_tokenizers, trainers

import tiny
from selfsent.data import tokenizing
from selfsent.data.tokenizing import CachedTokenizer

TEXTS = [
    "",
    " ",
    "  ",
    " a",
    "a ",
    "  a   b ",
    "a",
    "bidi gafo, ka-te!  two  spaces ",
    "\tbidi\ngafo\x00 ka\u0301 \u2603 \u4f60\u597d",
    "[MASK] <mask> and x[MASK]y <mask> .",
    "over " * 50,
    "x" * 300,
    *tiny.make_sentences(60, seed=5),
]


def wordwise(tokenizer, texts):
    """Ids, lengths and word starts, text by text and token by token."""
    ids, lengths, starts = [], [], []
    for text in texts:
        encoded = tokenizer.encode(text, add_special_tokens=False)
        before = object()
        for token, word in zip(encoded.ids, encoded.word_ids, strict=True):
            ids.append(token)
            starts.append(word != before)
            before = word
        lengths.append(len(encoded.ids))
    return ids, lengths, starts


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
    letters = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=320, initial_alphabet=letters, special_tokens=["<mask>"], show_progress=False
    )
    tokenizer.train_from_iterator(tiny.make_sentences(100), trainer)
    return tokenizer


KINDS = {
    **{
        kind: lambda kind=kind: tiny.make_tokenizer(kind).backend_tokenizer
        for kind in ("word pieces", "byte pairs", "pieces")
    },
    "without prefix": without_prefix,
    "spanning spaces": spanning_spaces,
}


@pytest.mark.parametrize("kind", KINDS)
def test_tokens_are_those_of_whole_texts(kind):
    tokenizer = KINDS[kind]()
    reader = CachedTokenizer(tokenizer)
    assert (reader.space is None) == (kind == "spanning spaces")
    for _ in range(2):  # the second time from memory
        read = reader(TEXTS)
        ids, lengths, starts = wordwise(reader.tokenizer, TEXTS)
        assert read.ids.tolist() == ids
        assert read.lengths.tolist() == lengths
        assert read.word_starts.tolist() == starts


def test_truncation_and_padding_of_the_tokenizer_are_left_out_and_stay():
    tokenizer = tiny.make_tokenizer().backend_tokenizer
    tokenizer.enable_truncation(4)
    tokenizer.enable_padding(length=50)
    assert CachedTokenizer(tokenizer)(["bidi gafo kate bidi gafo kate"]).lengths[0] > 4
    assert len(tokenizer.encode("bidi").ids) == 50


def test_memory_is_bounded_and_what_is_forgotten_is_read_again(monkeypatch):
    reader = CachedTokenizer(tiny.make_tokenizer().backend_tokenizer)
    monkeypatch.setattr(tokenizing, "KNOWN", 20)
    for _ in range(2):
        read = reader(TEXTS)
        assert read.ids.tolist() == wordwise(reader.tokenizer, TEXTS)[0]
        assert len(reader._numbers) == len(reader._pieces.lengths) == 20
    assert max(map(len, reader._numbers)) <= 100, "a piece of 300 characters was remembered"


def test_nothing_to_read():
    read = CachedTokenizer(tiny.make_tokenizer().backend_tokenizer)([])
    assert len(read.ids) == len(read.lengths) == len(read.word_starts) == 0


def test_parts_are_cut_and_may_come_twice():
    read = CachedTokenizer(tiny.make_tokenizer().backend_tokenizer)(["bidi gafo kate", "", "mu"])
    twice = read.select(np.array([2, 0, 0, 1]), longest=2)
    assert twice.lengths.tolist() == [min(2, length) for length in read.lengths[[2, 0, 0, 1]]]
    assert twice.ids[twice.starts[1] : twice.starts[1] + 2].tolist() == read.ids[:2].tolist()


def test_threads_do_not_disturb_each_other():
    reader = CachedTokenizer(tiny.make_tokenizer().backend_tokenizer)
    parts = [tiny.make_sentences(200, seed=seed, words=(3, 9)) for seed in range(8)]
    with ThreadPoolExecutor(8) as threads:
        for _ in range(5):
            for texts, read in zip(parts, threads.map(reader, parts), strict=True):
                assert read.ids.tolist() == wordwise(reader.tokenizer, texts)[0]


def test_a_reader_that_was_interrupted_still_reads(monkeypatch):
    reader = CachedTokenizer(tiny.make_tokenizer().backend_tokenizer)
    with monkeypatch.context() as broken:
        broken.setattr(reader, "_whole", lambda texts: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            reader(TEXTS)
    assert reader(TEXTS).ids.tolist() == wordwise(reader.tokenizer, TEXTS)[0]
