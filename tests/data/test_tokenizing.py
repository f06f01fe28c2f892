"""Texts cut at their spaces give the tokens of whole ones, or are not cut."""

from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import assume, example, given, settings, strategies
from tokenizers import AddedToken, Regex, Tokenizer, models, normalizers, pre_tokenizers, trainers

import tiny
from selfsent.data import tokenizing
from selfsent.data.tokenizing import CachedTokenizer, equal_tokens, seam

TEXTS = [
    *("", " ", "  ", " a", "a ", "  a   b ", "a", "bidi gafo, ka-te!  two  spaces "),
    *("\tbidi\ngafo\x00 ka\u0301 \u2603 \u4f60\u597d", "[MASK] <mask> and x[MASK]y <mask> .", "over " * 50, "x" * 300),
    *tiny.make_sentences(60, seed=5),
    " ".join(f"ba{number}" for number in range(600)),  # more pieces than are read together
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
    tokenizer = kind() if callable(kind) else tiny.make_tokenizer(kind).backend_tokenizer
    reader, without_words = CachedTokenizer(tokenizer), CachedTokenizer(tokenizer, words=False)
    assert (reader.space is None) == (without_words.space is None) == (kind is spanning_spaces)
    for texts in (TEXTS, TEXTS, []):  # the second time from memory
        read, light = reader(texts), without_words(texts)
        assert np.array_equal(light.ids, read.ids)
        assert np.array_equal(light.lengths, read.lengths)
        assert not light.word_starts.any()
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


def test_memory_is_bounded_and_what_is_forgotten_is_read_again(reader):
    reader = CachedTokenizer(reader.tokenizer, max_cached=20)
    for _ in range(2):
        assert reader(TEXTS).ids.tolist() == wordwise(reader.tokenizer, TEXTS)[0]
        assert len(reader.cached) == 20
    assert max(map(len, reader.cached)) <= 100, "a piece of 300 characters was remembered"


def test_texts_are_selected_and_cut(reader):
    read = reader(["bidi gafo kate", "", "mu"])
    twice = read.select(np.array([2, 0, 0, 1]), longest=2)
    assert twice.lengths.tolist() == [min(2, length) for length in read.lengths[[2, 0, 0, 1]]]
    assert twice.ids[twice.starts[1] : twice.starts[1] + 2].tolist() == read.ids[:2].tolist()


def test_threads_and_interrupts_do_no_harm(reader, monkeypatch):
    with monkeypatch.context() as broken:
        broken.setattr(tokenizing, "read_whole", lambda *given: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            reader(TEXTS)
    parts = [tiny.make_sentences(200, seed=seed, words=(3, 9)) for seed in range(8)]
    with ThreadPoolExecutor(8) as threads:
        for texts, read in zip(parts * 3, threads.map(reader, parts * 3), strict=True):
            assert read.ids.tolist() == wordwise(reader.tokenizer, texts)[0]


WORDS = [
    "hard",
    "disk",
    "Hard",
    "a",
    "ban",
    "nana",
    "bidi",
    "gafo",
    "é",
    "e\u0301",
    "\u0301x",
    "´x",
    "ﬁ",
    "▁ka",
    "[MASK]",
    "<mask>",
]
SPACES = [*" " * 5, "", "  ", "\t", "\n", " \n", "\u00a0", "\u200b", "\u3000"]
NORMALIZERS = {
    "none": None,
    "lower": normalizers.Lowercase(),
    "BERT": normalizers.BertNormalizer(lowercase=True),
    "compatibility": normalizers.NFKC(),
    "one space": normalizers.Sequence([normalizers.NFKC(), normalizers.Replace(Regex(" {2,}"), " ")]),
    "bars": normalizers.Replace(" ", "▁"),
}
PRE_TOKENIZERS = {
    "word pieces": [pre_tokenizers.BertPreTokenizer()],
    "byte pairs": [pre_tokenizers.ByteLevel(add_prefix_space=before) for before in (True, False)],
    "pieces": [pre_tokenizers.Metaspace(prepend_scheme=scheme) for scheme in ("always", "first", "never")],
}
TOKENIZERS = {kind: tiny.make_tokenizer(kind).backend_tokenizer.to_str() for kind in PRE_TOKENIZERS}
words = strategies.sampled_from(WORDS)
added_tokens = strategies.builds(
    AddedToken,
    strategies.lists(words, min_size=1, max_size=3).map(" ".join) | strategies.lists(words, max_size=2).map("x".join),
    **{name: strategies.sampled_from([False, False, True]) for name in ("single_word", "lstrip", "rstrip", "special")},
    normalized=strategies.booleans(),
).filter(lambda token: token.content)


def with_tokens(kind, normal, before, filler, added):
    tokenizer = Tokenizer.from_str(TOKENIZERS[kind])
    tokenizer.normalizer = NORMALIZERS[normal]
    tokenizer.pre_tokenizer = PRE_TOKENIZERS[kind][before % len(PRE_TOKENIZERS[kind])]
    tokenizer.add_tokens([f"<{number}>" for number in range(filler)])
    tokenizer.add_tokens(added)
    assume(not equal_tokens(tokenizer))  # of which copies of the tokenizer read different ones
    return tokenizer


KINDS = {
    "kind": strategies.sampled_from(sorted(TOKENIZERS)),
    "normal": strategies.sampled_from(sorted(NORMALIZERS)),
    "before": strategies.integers(0, 2),
    "filler": strategies.sampled_from([0, 70]),
    "added": strategies.lists(added_tokens, max_size=3),
}
HARD_DISK = {"kind": "word pieces", "normal": "none", "before": 0, "filler": 70}


@settings(max_examples=100, deadline=None)
@given(draw=strategies.randoms(use_true_random=False), **KINDS)
@example(draw=None, added=[AddedToken("hard disk", normalized=False)], **HARD_DISK)
@example(draw=None, added=[AddedToken("Hard disk")], **HARD_DISK | {"normal": "lower"})
@example(draw=None, added=[AddedToken("hard", lstrip=True)], **HARD_DISK | {"kind": "byte pairs"})
@example(draw=None, added=[AddedToken("hard", rstrip=True)], **HARD_DISK | {"kind": "byte pairs"})
@example(draw=None, added=[], **HARD_DISK | {"kind": "pieces", "normal": "one space"})
@example(
    draw=None,
    added=[AddedToken("a", rstrip=True, normalized=False)],
    kind="byte pairs",
    normal="compatibility",
    before=0,
    filler=0,
)
def test_added_tokens_are_found_wherever_the_tokenizer_finds_them(draw, **how):
    tokenizer = with_tokens(**how)
    known = [*WORDS, *(token.content for token in how["added"])]
    texts = ["a hard disk, HARD DISK", "a\t hard disk", "a hard\n disk", "a\u200b b", "bidi\u3000 gafo", "é ´x"]
    for _ in range(20 if draw else 0):
        texts.append("".join(draw.choice(known) + draw.choice(SPACES) for _ in range(draw.randint(1, 7))))
    read, light = CachedTokenizer(tokenizer)(texts), CachedTokenizer(tokenizer, words=False)(texts)
    assert (read.ids.tolist(), read.lengths.tolist(), read.word_starts.tolist()) == wordwise(tokenizer, texts)
    assert (light.ids.tolist(), light.lengths.tolist()) == (read.ids.tolist(), read.lengths.tolist())


@settings(max_examples=30, deadline=None)
@given(draw=strategies.randoms(use_true_random=False), **KINDS)
@example(draw=None, added=[AddedToken("hard disk", normalized=False)], **HARD_DISK)
@example(draw=None, added=[AddedToken("hard disk")], **HARD_DISK | {"normal": "lower"})
def test_a_prompt_and_a_text_may_share_an_added_token(draw, **how):
    tokenizer = with_tokens(**how)
    known = [token.content for token in how["added"]]
    prompts = ["a hard ", "A HARD", *(content[:end] for content in known for end in (1, len(content) // 2))]
    texts = ["disk", "disk drive", " disk".strip(), *(content[len(content) // 2 :].strip() for content in known)]
    for _ in range(10 if draw else 0):
        texts.append(" ".join(draw.choice([*WORDS, *known]) for _ in range(draw.randint(1, 4))))
    for prompt in prompts:
        ids, end = seam(tokenizer, prompt)
        for text in filter(None, texts):
            expected = tokenizer.encode(prompt + text, add_special_tokens=False).ids
            assert ids.tolist() + tokenizer.encode(end + text, add_special_tokens=False).ids == expected


def test_a_tokenizer_is_cut_at_spaces_in_spite_of_tokens_that_span_them():
    tokenizer = with_tokens("word pieces", "none", 0, 100, [AddedToken("hard disk", normalized=False)])
    reader = CachedTokenizer(tokenizer)
    reader(["bidi gafo", "a hard disk"])
    assert reader.cached == {"bidi", "gafo", "a hard disk"}
