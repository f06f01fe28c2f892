"""Makers and noise on scripts without spaces, from right to left, with combining characters, and on emoji."""

import unicodedata

import numpy as np
import pytest

import tiny
from selfsent.augment.make import augment
from selfsent.augment.mlm import MaskAndRefill
from selfsent.augment.synonym import Synonym
from selfsent.data.views.noise import DeleteWords, MaskTokens, PickWords
from selfsent.data.views.tokens import Template
from selfsent.errors import AugmenterError, SettingsError
from selfsent.training.checks import reject_wordless

ARABIC = [f"اشترت سلمى {n} كتب من السوق صباح اليوم" for n in range(25)]
VOWELLED = [f"كَتَبَ الوَلَدُ الدَّرْسَ {n} مَرَّات" for n in range(25)]
CHINESE = [f"今天早上我买了{n}本书。" for n in range(25)]
THAI = [f"เช้านี้ฉันซื้อหนังสือที่ตลาด{number}" for number in "กขคงจฉชซญดตถทธนบปผฝพฟภมยร"]
TURKISH = [f"İnci ılık sütü {n} kez içti, Işıl ise hiç içmedi." for n in range(25)]
EMOJI = [f"A day {n} with 👩‍👩‍👧 and 🇹🇷 and big ❤️ dogs" for n in range(25)]
ALL = {"ar": ARABIC, "ar vowels": VOWELLED, "zh": CHINESE, "th": THAI, "tr": TURKISH, "emoji": EMOJI}


@pytest.fixture(scope="module")
def polyglot(tmp_path_factory):
    """A tiny masked language model for all of these texts, its pieces learnt from them."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
    from transformers import BertConfig, BertForMaskedLM, PreTrainedTokenizerFast

    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.pre_tokenizer, tokenizer.decoder = pre_tokenizers.Metaspace(), decoders.Metaspace()
    trainer = trainers.UnigramTrainer(vocab_size=350, special_tokens=special, unk_token="[UNK]", show_progress=False)
    tokenizer.train_from_iterator([text for texts in ALL.values() for text in texts], trainer)
    ids = [(token, tokenizer.token_to_id(token)) for token in ("[CLS]", "[SEP]")]
    tokenizer.post_processor = processors.TemplateProcessing("[CLS] $A [SEP]", "[CLS] $A [SEP] $B [SEP]", ids)
    names = dict(zip(("pad_token", "unk_token", "cls_token", "sep_token", "mask_token"), special, strict=True))
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, model_max_length=128, **names)
    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
    directory = tmp_path_factory.mktemp("polyglot")
    BertForMaskedLM(BertConfig(vocab_size=len(fast), max_position_embeddings=128, **sizes)).save_pretrained(directory)
    fast.save_pretrained(directory)
    return directory


def test_a_model_that_knows_the_script_makes_views_of_it(polyglot, views):
    texts = [text for one in ALL.values() for text in one]
    made = views(MaskAndRefill(ratio=0.3, model=str(polyglot)), texts)
    changed = [text != view for text, view in zip(texts, made, strict=True)]
    assert sum(changed) > 0.9 * len(texts)
    for text, view in zip(texts, made, strict=True):
        assert "\ufffd" not in view
        assert "[" not in view
        # What is no word stays: digits, emoji with their joiners, punctuation.
        kept = [[c for c in one if unicodedata.category(c)[0] in "NSP" or c == "\u200d"] for one in (text, view)]
        assert kept[0] == kept[1]


@pytest.mark.parametrize("language", ["ar", "zh", "th"])
def test_a_model_that_does_not_is_refused_with_the_reason(language, base_of, tmp_path):
    from selfsent.data.corpus import read_corpus

    corpus = read_corpus(ALL[language], cache=tmp_path)
    with pytest.raises(AugmenterError, match="changed none of the first 25 texts: the model's tokenizer does not know"):
        augment(corpus, [[MaskAndRefill(model=str(base_of("bert")))]], tmp_path / "views.parquet")


def test_synonyms_are_english_alone(wordnet, views, tmp_path):
    everything = Synonym(ratio=1.0, wordnet=str(wordnet))
    for language in ("ar", "ar vowels", "zh", "th", "tr"):
        assert views(everything, ALL[language]) == ALL[language]
    assert views(everything, EMOJI)[3] == "A day 3 with 👩‍👩‍👧 and 🇹🇷 and large ❤️ dogs"
    assert views(everything, ["BİG dog", "BIG DOG, ılık"]) == ["BİG hound", "BIG DOG, ılık"]


def noisy(tokenizer, noise, texts):
    table = tiny.Table(tokenizer, texts)
    before = table[np.arange(len(texts))]
    template = Template.of(tokenizer, len(tokenizer))
    return before, noise(before, 11, template)


@pytest.mark.parametrize("language", ["ar", "ar vowels", "tr", "emoji"])
@pytest.mark.parametrize("noise", [DeleteWords(0.5), PickWords(2)])
def test_noise_on_words_between_spaces(language, noise, polyglot):
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(polyglot)
    reject_wordless(tokenizer, noise, ALL[language])
    before, after = noisy(tokenizer, noise, ALL[language])
    assert np.mean(before.lengths != after.lengths) > 0.8
    ends = np.cumsum(after.lengths)
    for text, end, length in zip(ALL[language], ends, after.lengths, strict=True):
        words = tokenizer.decode(after.ids[end - length : end]).split()
        assert set(words) <= set(tokenizer.decode(tokenizer(text, add_special_tokens=False)["input_ids"]).split())


def test_noise_on_words_where_none_can_be_told_apart(polyglot):
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(polyglot)
    with pytest.raises(SettingsError, match="noise on words can do nothing: 25 of 25 texts are one word"):
        reject_wordless(tokenizer, DeleteWords(0.5), THAI)
    reject_wordless(tokenizer, MaskTokens(), THAI)
    before, after = noisy(tokenizer, DeleteWords(0.9), THAI)
    assert np.array_equal(before.ids, after.ids)
    # BERT's tokenizer makes every Chinese character a word, so that there noise works.
    pieces = tiny.make_tokenizer("word pieces")
    reject_wordless(pieces, DeleteWords(0.5), CHINESE)
    before, after = noisy(pieces, DeleteWords(0.5), CHINESE)
    assert np.mean(before.lengths != after.lengths) > 0.9
