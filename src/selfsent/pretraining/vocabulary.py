"""The vocabulary of an encoder that is trained from scratch: WordPiece as in BERT, or Unigram as in XLM-R."""

from __future__ import annotations

import dataclasses
import itertools
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from selfsent.data.corpus import Corpus, read_corpus
from selfsent.errors import SettingsError
from selfsent.models.bases import resolve
from selfsent.models.new_bases import POSITIONS, SPECIAL, load_tokenizer
from selfsent.pretraining.options import VocabularyKind, VocabularyOptions

_TATWEEL, _DOTLESS = "\u0640", "\u0131"
_SENTENCES, _FOR_ALPHABET = 1_000_000, 50_000
"""Sentences read at most for the words, and for the characters."""
_LONGEST_WORD = 100
"""Characters of a word that are learned from as one; WordPiece takes none longer, and to learn from one of a million
characters takes minutes."""
_COVERED = 0.9999
"""Share of the characters of the text that have a place in the alphabet."""
_TOO_LONG = re.compile(rf"\S{{{_LONGEST_WORD}}}(?=\S)")


Text = Corpus | str | Path | Sequence[str] | Callable[[], Corpus]
"""A corpus, anything `read_corpus` reads, or a function that is called for one."""


@dataclass(frozen=True)
class _Special:
    """The special tokens of a kind of vocabulary, and how it joins two texts.

    Args:
        names: what transformers calls each, in the order of their numbers.
        single: the template of a text.
        pair: that of two.
    """

    names: dict[str, str]
    single: str
    pair: str


_SPECIAL: dict[VocabularyKind, _Special] = {
    "wordpiece": _Special(
        {"pad": "[PAD]", "unk": "[UNK]", "cls": "[CLS]", "sep": "[SEP]", "mask": "[MASK]"},
        "[CLS] $A [SEP]",
        "[CLS] $A [SEP] $B:1 [SEP]:1",
    ),
    "unigram": _Special(
        {"cls": "<s>", "pad": "<pad>", "sep": "</s>", "unk": "<unk>", "mask": "<mask>"},
        "<s> $A </s>",
        "<s> $A </s> </s> $B </s>",
    ),
}


def text_of(corpus: Text) -> Corpus:
    """The corpus that is given, read or made by the function that is given."""
    return corpus if isinstance(corpus, Corpus) else corpus() if callable(corpus) else read_corpus(corpus)


def given_tokenizer(name: str | Path, changes: Collection[str], special: Sequence[str] = SPECIAL) -> Any:
    """The tokenizer of another encoder, in place of a vocabulary of its own.

    Args:
        name: of the encoder.
        changes: names of the options that were given.
        special: the special tokens it must have.

    Raises:
        SettingsError: options of a vocabulary are among them, and would go unread.
        BaseEncoderError: it has no tokenizer that will do.
    """
    tokenizer = load_tokenizer(resolve(name), special)
    if unread := {item.name for item in dataclasses.fields(VocabularyOptions)}.intersection(changes):
        flag = min(unread).replace("_", "-")
        raise SettingsError(f"--tokenizer brings a vocabulary of its own: leave out --{flag}")
    return tokenizer


def train_vocabulary(corpus: Corpus, options: VocabularyOptions, notice: Callable[[str], None]) -> Any:
    """A tokenizer trained on the corpus, or on an even sample of it where it is huge; WordPiece is the same every time.

    All text is brought into Unicode NFKC, and the Arabic tatweel, which only stretches words, is dropped. An uncased
    vocabulary lowers letters and drops accents and Arabic vowel signs; I, İ, i and ı become one letter, since lowering
    alone would spell a Turkish word differently at the beginning of a sentence and within it.

    Args:
        corpus: the sentences, in any language or several; characters that are all but absent become unknown.
        options: size, special entries included (a small corpus may give fewer); whether upper case, accents and vowel
            signs are kept; `wordpiece` (words split at spaces and punctuation, then into pieces) or `unigram` (pieces
            of a language model, a space being part of the piece behind it).
        notice: is told what is made.

    Raises:
        SettingsError: the alphabet alone fills the vocabulary.
    """
    size, kind = options.vocabulary_size, options.vocabulary_kind
    notice(f"vocabulary: at most {size:,} pieces of {corpus.report.counted(len(corpus))}")
    tokenizer = _empty(options.cased, kind)
    alphabet = _alphabet(map(tokenizer.normalizer.normalize_str, _sample(corpus, _FOR_ALPHABET)))
    # In word pieces each character stands twice: at the beginning of a word, and within it.
    least = len(_SPECIAL[kind].names) + len(alphabet) * (2 if kind == "wordpiece" else 1)
    if least > size:
        raise SettingsError(
            f"--vocabulary-size is {size}; the text has {len(alphabet):,} characters, which alone need"
            f" {least:,} entries"
        )
    learn = _learn_wordpiece if kind == "wordpiece" else _learn_unigram
    tokenizer.model = learn(tokenizer, _sample(corpus, _SENTENCES), size, alphabet)
    return _wrapped(tokenizer, _SPECIAL[kind])


def _empty(cased: bool, kind: VocabularyKind) -> Any:
    """A tokenizer that normalises and splits texts, and knows no pieces yet."""
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers

    words = kind == "wordpiece"
    tokenizer = Tokenizer(models.WordPiece(unk_token=_SPECIAL[kind].names["unk"]) if words else models.Unigram())
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer() if words else pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.WordPiece() if words else decoders.Metaspace()
    steps = [normalizers.NFKC(), normalizers.Replace(_TATWEEL, "")]
    steps += [] if cased else [normalizers.Replace(_DOTLESS, "i")]
    steps += [normalizers.BertNormalizer(lowercase=not cased, handle_chinese_chars=words)]
    # Accents are dropped from decomposed text: what is left is composed again, for the sake of Korean.
    tokenizer.normalizer = normalizers.Sequence([*steps, normalizers.NFC()])
    return tokenizer


def _learn_wordpiece(tokenizer: Any, texts: Iterator[str], size: int, alphabet: list[str]) -> Any:
    from tokenizers import models, trainers

    special = _SPECIAL["wordpiece"].names
    trainer = trainers.WordPieceTrainer(
        vocab_size=size,
        min_frequency=2,
        # Pairs that are equally frequent are merged in the order of their numbers, and what is not listed here gets its
        # number from the order of a hash table, another one in every process.
        special_tokens=[*special.values(), *(f"##{character}" for character in alphabet)],
        limit_alphabet=len(alphabet),
        initial_alphabet=alphabet,
        show_progress=False,
    )
    learner = _copy(tokenizer)
    learner.train_from_iterator(texts, trainer)
    ordered = dict(sorted(learner.get_vocab().items(), key=lambda entry: entry[1]))
    return models.WordPiece(ordered, unk_token=special["unk"])


def _learn_unigram(tokenizer: Any, texts: Iterator[str], size: int, alphabet: list[str]) -> Any:
    from tokenizers import trainers

    special = _SPECIAL["unigram"].names
    trainer = trainers.UnigramTrainer(
        vocab_size=size,
        special_tokens=list(special.values()),
        initial_alphabet=alphabet,
        unk_token=special["unk"],
        show_progress=False,
    )
    learner = _copy(tokenizer)
    learner.train_from_iterator(_without_rare(map(tokenizer.normalizer.normalize_str, texts), alphabet), trainer)
    return learner.model


def _copy(tokenizer: Any) -> Any:
    """A tokenizer to learn with: the trainer leaves marks in it that would be saved."""
    from tokenizers import Tokenizer

    return Tokenizer.from_str(tokenizer.to_str())


def _without_rare(texts: Iterable[str], alphabet: list[str]) -> Iterator[str]:
    """Texts whose characters all are in the alphabet: Unigram has a piece for each that it sees."""
    known = frozenset(alphabet)
    return ("".join(character if character in known else " " for character in text) for text in texts)


def _wrapped(tokenizer: Any, special: _Special) -> Any:
    """The transformers tokenizer."""
    from tokenizers import processors
    from transformers import PreTrainedTokenizerFast

    tokenizer.post_processor = processors.TemplateProcessing(
        single=special.single,
        pair=special.pair,
        special_tokens=[(special.names[name], tokenizer.token_to_id(special.names[name])) for name in ("cls", "sep")],
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        model_max_length=POSITIONS,
        model_input_names=["input_ids", "token_type_ids", "attention_mask"],
        **{f"{name}_token": token for name, token in special.names.items()},
    )


def _alphabet(texts: Iterable[str]) -> list[str]:
    """The most frequent characters that together make up nearly all of the texts."""
    counts = Counter(itertools.chain.from_iterable(texts))
    del counts[" "]
    ordered = sorted(counts.items(), key=lambda entry: (-entry[1], entry[0]))
    wanted = _COVERED * counts.total()
    before = itertools.accumulate((count for _, count in ordered), initial=0)
    return [character for (character, _), seen in zip(ordered, before, strict=False) if seen < wanted]


def _sample(corpus: Corpus, most: int) -> Iterator[str]:
    """About `most` sentences, evenly spaced, or all of them; what has no space in it for too long is cut."""
    every = -(-len(corpus) // most)
    texts = itertools.islice(itertools.chain.from_iterable(corpus.batches()), 0, None, every)
    return (_TOO_LONG.sub(r"\g<0> ", text) for text in texts)
