"""The vocabulary of an encoder that is trained from scratch: WordPiece as in BERT, or Unigram as in XLM-R."""

from __future__ import annotations

import dataclasses
import itertools
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from selfsent.data.corpus import Corpus, read_corpus
from selfsent.errors import SettingsError
from selfsent.models.bases import resolve
from selfsent.models.new_bases import POSITIONS, SPECIAL, load_tokenizer
from selfsent.pretraining.options import VocabularyKind, VocabularyOptions
from selfsent.progress import SILENT, Progress

_TATWEEL, _DOTLESS = "\u0640", "\u0131"
_SENTENCES, _FOR_ALPHABET = 1_000_000, 50_000
"""Sentences read at most for the words, and for the characters."""
_LONGEST_WORD = 100
"""Characters of a word that are learned from as one; WordPiece takes none longer, and to learn from one of a million
characters takes minutes."""
_COVERED = 0.9999
"""Share of the characters of the text covered by the alphabet."""
_TOO_LONG = re.compile(rf"\S{{{_LONGEST_WORD}}}(?=\S)")
_ACCENTS = (
    r"[\u0300-\u036f\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f\u0591-\u05bd\u05bf\u05c1-\u05c2\u05c4-\u05c5\u05c7"
    r"\u0610-\u061a\u064b-\u065f\u0670\u06d6-\u06dc\u06df-\u06e4\u06e7-\u06e8\u06ea-\u06ed]"
)
"""Combining accents, and the signs of Hebrew and Arabic that readers do without; those of Japanese, Thai and
Indic scripts make another word."""
_UNSPACED_PART = rf"[\p{{Thai}}\p{{Lao}}\p{{Myanmar}}\p{{Khmer}}\p{{Hiragana}}\p{{Katakana}}]{{1,{_LONGEST_WORD}}}"
"""Words where no spaces divide them: WordPiece takes a whole sentence for an unknown word."""


Text = Corpus | str | Path | Sequence[str] | Callable[[], Corpus]
"""A corpus, anything `read_corpus` reads, or a function that is called for one."""
_SPECIAL: dict[VocabularyKind, tuple[dict[str, str], str, str]] = {
    "wordpiece": (
        {"pad": "[PAD]", "unk": "[UNK]", "cls": "[CLS]", "sep": "[SEP]", "mask": "[MASK]"},
        *("[CLS] $A [SEP]", "[CLS] $A [SEP] $B:1 [SEP]:1"),
    ),
    "unigram": (
        {"cls": "<s>", "pad": "<pad>", "sep": "</s>", "unk": "<unk>", "mask": "<mask>"},
        *("<s> $A </s>", "<s> $A </s> </s> $B </s>"),
    ),
}
"""Special tokens in the order of their numbers, by the names of transformers; templates of one text and of two."""


def text_of(corpus: Text) -> Corpus:
    """The corpus that is given, read or made by the function that is given."""
    return corpus if isinstance(corpus, Corpus) else corpus() if callable(corpus) else read_corpus(corpus)


def given_tokenizer(name: str | Path, changes: Collection[str], special: Sequence[str] = SPECIAL) -> Any:
    """The tokenizer of another encoder, instead of a new vocabulary.

    Args:
        name: of the encoder.
        changes: names of the options that were given.
        special: the special tokens it must have.

    Raises:
        SettingsError: options of a vocabulary are among them, and would go unread.
        BaseEncoderError: it has no suitable tokenizer.
    """
    tokenizer = load_tokenizer(resolve(name), special)
    if unread := {item.name for item in dataclasses.fields(VocabularyOptions)}.intersection(changes):
        raise SettingsError(f"`tokenizer` brings a vocabulary of its own: leave out `{min(unread)}`")
    return tokenizer


def train_vocabulary(corpus: Corpus, options: VocabularyOptions, progress: Progress = SILENT) -> Any:
    """A tokenizer trained on the corpus, or on an even sample of it where it is huge; WordPiece is the same every time.

    All text is brought into Unicode NFKC, and the Arabic tatweel, which only stretches words, is dropped. An uncased
    vocabulary lowers letters and drops accents and the vowel signs of Arabic and Hebrew; I, İ, i and ı become one
    letter, since lowering alone would spell a Turkish word differently at the beginning of a sentence and within it.

    Args:
        corpus: the sentences, in any language or several; characters that are all but absent become unknown.
        options: size, special entries included (a small corpus may give fewer); whether upper case, accents and vowel
            signs are kept; `wordpiece` (words split at spaces and punctuation, then into pieces) or `unigram` (pieces
            of a language model, a space being part of the piece after it).
        progress: receives a line on the vocabulary.

    Raises:
        SettingsError: the alphabet alone fills the vocabulary.
    """
    from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
    from transformers import PreTrainedTokenizerFast

    size, words = options.vocabulary_size, options.vocabulary_kind == "wordpiece"
    special, single, pair = _SPECIAL[options.vocabulary_kind]
    progress.notice(f"vocabulary: at most {size:,} pieces of {corpus.report.counted(len(corpus))}")
    tokenizer = Tokenizer(models.WordPiece(unk_token=special["unk"]) if words else models.Unigram())
    parts = [pre_tokenizers.BertPreTokenizer(), pre_tokenizers.Split(Regex(_UNSPACED_PART), "isolated")]
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(parts) if words else pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.WordPiece() if words else decoders.Metaspace()
    steps = [normalizers.NFKC(), normalizers.Replace(_TATWEEL, "")]
    steps += [] if options.cased else [normalizers.Replace(_DOTLESS, "i")]
    steps += [normalizers.BertNormalizer(lowercase=not options.cased, strip_accents=False, handle_chinese_chars=words)]
    # Accents are dropped from decomposed text; the rest is composed again for Korean.
    steps += [] if options.cased else [normalizers.NFD(), normalizers.Replace(Regex(_ACCENTS), "")]
    tokenizer.normalizer = normalizers.Sequence([*steps, normalizers.NFC()])
    normal = tokenizer.normalizer.normalize_str
    alphabet = _alphabet(map(normal, training_texts(corpus, _FOR_ALPHABET)))
    # WordPiece has each character twice: at the beginning of a word, and within it.
    least = len(special) + len(alphabet) * (2 if words else 1)
    if least > size:
        needed = f"{len(alphabet):,} characters, which alone need {least:,} entries"
        raise SettingsError(f"vocabulary_size is {size}; the text has {needed}")
    texts = training_texts(corpus, _SENTENCES)
    common: dict[str, Any] = {"vocab_size": size, "initial_alphabet": alphabet, "show_progress": False}
    if words:
        # Pairs that are equally frequent are merged in the order of their numbers, and what is not listed here gets its
        # number from the order of a hash table, another one in every process.
        listed = [*special.values(), *(f"##{character}" for character in alphabet)]
        trainer: Any = trainers.WordPieceTrainer(
            min_frequency=2, special_tokens=listed, limit_alphabet=len(alphabet), **common
        )
    else:
        known = frozenset(alphabet)  # Unigram has a piece for each character that it sees
        texts = ("".join(each if each in known else " " for each in text) for text in map(normal, texts))
        trainer = trainers.UnigramTrainer(special_tokens=list(special.values()), unk_token=special["unk"], **common)
    learner = Tokenizer.from_str(tokenizer.to_str())  # the trainer leaves marks in it that would be saved
    learner.train_from_iterator(texts, trainer)
    ordered = dict(sorted(learner.get_vocab().items(), key=lambda entry: entry[1]))
    tokenizer.model = models.WordPiece(ordered, unk_token=special["unk"]) if words else learner.model
    tokenizer.post_processor = processors.TemplateProcessing(
        single=single,
        pair=pair,
        special_tokens=[(special[name], tokenizer.token_to_id(special[name])) for name in ("cls", "sep")],
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        model_max_length=POSITIONS,
        model_input_names=["input_ids", "token_type_ids", "attention_mask"],
        **{f"{name}_token": token for name, token in special.items()},
    )


def _alphabet(texts: Iterable[str]) -> list[str]:
    """The most frequent characters that together make up nearly all of the texts."""
    counts = Counter(itertools.chain.from_iterable(texts))
    del counts[" "]
    ordered = sorted(counts.items(), key=lambda entry: (-entry[1], entry[0]))
    wanted = _COVERED * counts.total()
    before = itertools.accumulate((count for _, count in ordered), initial=0)
    return [character for (character, _), seen in zip(ordered, before, strict=False) if seen < wanted]


def training_texts(corpus: Corpus, most: int) -> Iterator[str]:
    """About `most` sentences, evenly spaced, or all of them; what has no space in it for too long is cut."""
    every = -(-len(corpus) // most)
    texts = itertools.islice(itertools.chain.from_iterable(corpus.batches()), 0, None, every)
    return (_TOO_LONG.sub(r"\g<0> ", text) for text in texts)
