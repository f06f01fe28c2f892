import numpy as np
import pytest
from transformers import AutoTokenizer

from selfsent.data.corpus import read_corpus
from selfsent.errors import SettingsError
from selfsent.pretraining import vocabulary
from selfsent.pretraining.options import VocabularyOptions
from selfsent.pretraining.vocabulary import train_vocabulary

TURKISH = [
    "Işık Isparta'da İstanbul'dan erken yanıyor",
    "ışık ısparta'da istanbul'dan erken yanıyor",
    "IŞIK ISPARTA'DA İSTANBUL'DAN ERKEN YANIYOR",
]
SENTENCES = [
    *TURKISH,
    "أحمد يقرأ كتابا جميلا في المدرسة",
    "Die Katze schläft über dem großen Ofen",
    "El niño comió después en el jardín",
    "한국어 문장도 읽을 수 있다",
    "Мальчик читает старую книгу у окна",
    "犬が公園を走る",
]
KINDS = ["wordpiece", "unigram"]


def learned(corpus, size, cased=False, kind="wordpiece"):
    options = VocabularyOptions(vocabulary_size=size, cased=cased, vocabulary_kind=kind)
    return train_vocabulary(corpus, options)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """Sentences in six scripts, in many copies that differ by a number."""
    lines = [f"{sentence} {number}" for number in range(40) for sentence in SENTENCES]
    return read_corpus(lines, cache=tmp_path_factory.mktemp("corpora"))


@pytest.fixture(scope="module")
def tokenizer_of(corpus, tmp_path_factory):
    made = {}

    def of(kind, cased):
        if (kind, cased) not in made:
            place = tmp_path_factory.mktemp(kind)
            learned(corpus, 700, cased, kind).save_pretrained(place)
            made[kind, cased] = AutoTokenizer.from_pretrained(place)
        return made[kind, cased]

    return of


@pytest.mark.parametrize("cased", [False, True])
def test_every_script_comes_back_from_a_saved_tokenizer(tokenizer_of, cased):
    tokenizer = tokenizer_of("wordpiece", cased)
    assert tokenizer.convert_ids_to_tokens(range(5)) == ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    for sentence in SENTENCES:
        ids = tokenizer(sentence).input_ids
        assert (ids[0], ids[-1]) == (tokenizer.cls_token_id, tokenizer.sep_token_id)
        assert tokenizer.unk_token_id not in ids
        back = "".join(token.removeprefix("##") for token in tokenizer.convert_ids_to_tokens(ids[1:-1]))
        assert back == "".join(tokenizer.backend_tokenizer.normalizer.normalize_str(sentence).split())
    assert (tokenizer.tokenize("KATZE") == tokenizer.tokenize("katze")) is not cased


@pytest.mark.parametrize("kind", KINDS)
def test_turkish_words_are_spelt_alike_wherever_they_stand(tokenizer_of, kind):
    tokenizer = tokenizer_of(kind, False)
    first, *others = (tokenizer.tokenize(sentence) for sentence in TURKISH)
    assert all(pieces == first for pieces in others)
    assert tokenizer.unk_token not in first
    cased = tokenizer_of(kind, True)
    assert len({tuple(cased.tokenize(sentence)) for sentence in TURKISH}) == 3


NORMAL = [
    # A dot over the i that lowering İ leaves behind would be a character of its own.
    ("İIiı", "iiii", "İIiı"),
    ("şğç É", "sgc e", "şğç É"),
    ("كتـــاب", "كتاب", "كتاب"),
    ("ﻛﺘﺎﺏ ﻻ", "كتاب لا", "كتاب لا"),  # presentation forms, as old files have them
    ("كِتَاب", "كتاب", "كِتَاب"),
    ("한국어", "한국어", "한국어"),
    # Glass and crow, dad and mother; what BERT's normalizer drops makes them one.
    ("ガラス パパ", "ガラス パパ", "ガラス パパ"),
    ("हिन्दी เรียน", "हिन्दी เรียน", "हिन्दी เรียน"),
    ("Й שָׁלוֹם", "и שלום", "Й שָׁלוֹם"),
    ("ｆｉ ﬁ ½", "fi fi 1⁄2", "fi fi 1⁄2"),
]


@pytest.mark.parametrize("kind", KINDS)
def test_text_is_brought_into_one_form(tokenizer_of, kind):
    for text, *wanted in NORMAL:
        for cased in (False, True):
            normalizer = tokenizer_of(kind, cased).backend_tokenizer.normalizer
            assert normalizer.normalize_str(text) == wanted[cased], (text, cased)


@pytest.mark.parametrize("kind", KINDS)
def test_a_sentence_without_spaces_is_no_unknown_word(kind, tmp_path):
    letters = "".join(chr(code) for code in range(0x0E01, 0x0E2F))
    tokenizer = learned(read_corpus([f"{letters} {number} x" for number in range(100)], cache=tmp_path), 300, kind=kind)
    pieces = tokenizer.tokenize(letters * 3 + "x" + letters)
    assert "".join(pieces).replace("##", "").strip("▁") == letters * 3 + "x" + letters
    unknown = tokenizer.tokenize("x" * 101)  # long and of letters with spaces: no sentence
    assert (unknown == ["[UNK]"]) is (kind == "wordpiece")


def test_unigram_is_shaped_as_in_xlm_r(tokenizer_of):
    tokenizer = tokenizer_of("unigram", False)
    assert tokenizer.convert_ids_to_tokens(range(5)) == ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    one, other = (tokenizer(text, add_special_tokens=False).input_ids for text in ("die katze", "dem ofen"))
    assert tokenizer("die katze").input_ids == [0, *one, 2]
    assert tokenizer("die katze", "dem ofen").input_ids == [0, *one, 2, 2, *other, 2]
    assert tokenizer.decode(one) == "die katze"
    assert tokenizer.convert_ids_to_tokens(one)[0].startswith("▁")
    words = tokenizer.backend_tokenizer.encode("die katze", add_special_tokens=False).word_ids
    assert words == sorted(words)
    assert set(words) == {0, 1}  # what noise takes for words


def test_a_vocabulary_is_no_larger_than_set_and_the_same_again(corpus):
    made = [learned(corpus, 300).get_vocab() for _ in range(3)]
    assert len(made[0]) == 300
    assert all(vocabulary == made[0] for vocabulary in made)
    # An alphabet fits a unigram vocabulary where word pieces need twice the room.
    with pytest.raises(SettingsError, match="vocabulary_size is 190; the text has 1"):
        learned(corpus, 190, True)
    assert len(learned(corpus, 190, True, "unigram")) <= 190


@pytest.mark.parametrize("kind", KINDS)
def test_a_character_that_hardly_occurs_gets_no_place(kind, tmp_path):
    lines = [f"the cat sat on mat number {number} and then it slept for a while" for number in range(2000)]
    tokenizer = learned(read_corpus([*lines, "one ☃ only"], cache=tmp_path), 200, kind=kind)
    assert tokenizer.unk_token_id in tokenizer("☃").input_ids
    assert not any("☃" in piece for piece in tokenizer.get_vocab())


@pytest.mark.parametrize("kind", ["unigram", pytest.param("wordpiece", marks=pytest.mark.full)])
def test_what_has_no_space_in_it_is_learned_from_in_parts(kind, corpus, tmp_path):
    letters = "".join(np.random.default_rng(0).choice(list("abcdefghijklmnopqrstuvwxyz"), 50_050))
    long = read_corpus([*corpus.texts()[:50], letters], cache=tmp_path)
    parts = list(vocabulary.training_texts(long, 100))[-1].split(" ")
    assert "".join(parts) == letters
    assert {len(part) for part in parts} == {50, 100}
    assert len(learned(long, 400, kind=kind)) <= 400  # as a whole, Unigram crashes
