"""WordPiece: the vocabulary of an encoder that is trained from scratch."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from selfsent.corpus import Corpus
from selfsent.errors import SettingsError
from selfsent.pretraining.options import POSITIONS

SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
_SENTENCES, _FOR_ALPHABET = 1_000_000, 50_000
"""Sentences read at most for the words, and for the characters."""
_COVERED = 0.9999
"""Share of the characters of the text that have a place in the alphabet."""


def train_vocabulary(corpus: Corpus, size: int, cased: bool = False) -> Any:
    """A BERT tokenizer trained on the corpus, or on an even sample of it where it is huge.

    Args:
        corpus: the sentences, in any language; characters that are all but absent become unknown.
        size: entries, special ones included; a small corpus may give fewer.
        cased: whether upper case and accents are kept.

    Raises:
        SettingsError: the alphabet alone fills the vocabulary.
    """
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=not cased)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    alphabet = _alphabet(map(tokenizer.normalizer.normalize_str, _sample(corpus, _FOR_ALPHABET)))
    # Each character stands twice in the alphabet: at the beginning of a word, and within it.
    if len(SPECIAL) + 2 * len(alphabet) > size:
        raise SettingsError(
            f"--vocabulary-size is {size}; the text has {len(alphabet):,} characters, which alone need"
            f" {len(SPECIAL) + 2 * len(alphabet):,} entries"
        )
    trainer = trainers.WordPieceTrainer(
        vocab_size=size,
        min_frequency=2,
        special_tokens=list(SPECIAL),
        limit_alphabet=len(alphabet),
        initial_alphabet=alphabet,
        show_progress=False,
    )
    tokenizer.train_from_iterator(_sample(corpus, _SENTENCES), trainer)
    return _wrapped(tokenizer.get_vocab(), cased)


def _wrapped(vocabulary: dict[str, int], cased: bool) -> Any:
    """The transformers tokenizer, entries in the order of their numbers."""
    from transformers import BertTokenizer

    ordered = dict(sorted(vocabulary.items(), key=lambda entry: entry[1]))
    return BertTokenizer(vocab=ordered, do_lower_case=not cased, model_max_length=POSITIONS)


def _alphabet(texts: Iterable[str]) -> list[str]:
    """The most frequent characters that together make up nearly all of the texts."""
    counts = Counter(itertools.chain.from_iterable(texts))
    del counts[" "]
    ordered = sorted(counts.items(), key=lambda entry: (-entry[1], entry[0]))
    wanted = _COVERED * counts.total()
    before = itertools.accumulate((count for _, count in ordered), initial=0)
    return [character for (character, _), seen in zip(ordered, before, strict=False) if seen < wanted]


def _sample(corpus: Corpus, most: int) -> Iterator[str]:
    """About `most` sentences, evenly spaced, or all of them."""
    every = -(-len(corpus) // most)
    return itertools.islice(itertools.chain.from_iterable(corpus.batches()), 0, None, every)
