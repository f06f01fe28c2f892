import pytest
from transformers import AutoTokenizer

from selfsent.data.corpus import read_corpus
from selfsent.errors import SettingsError
from selfsent.pretraining.options import VocabularyOptions
from selfsent.pretraining.vocabulary import train_vocabulary

SENTENCES = [
    "Işık Isparta'da İstanbul'dan erken yanıyor",
    "ışık ısparta'da istanbul'dan erken yanıyor",
    "IŞIK ISPARTA'DA İSTANBUL'DAN ERKEN YANIYOR",
    "أحمد يقرأ كتابا جميلا في المدرسة",
    "Die Katze schläft über dem großen Ofen",
    "El niño comió después en el jardín",
    "한국어 문장도 읽을 수 있다",
]
KINDS = ["wordpiece", "unigram"]


def learned(corpus, size, cased=False, kind="wordpiece"):
    options = VocabularyOptions(vocabulary_size=size, cased=cased, vocabulary_kind=kind)
    return train_vocabulary(corpus, options, lambda line: None)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """Sentences of five languages, in many copies that differ by a number."""
    lines = [f"{sentence} {number}" for number in range(40) for sentence in SENTENCES]
    return read_corpus(lines, cache=tmp_path_factory.mktemp("corpora"))


@pytest.fixture(scope="module")
def tokenizer_of(corpus, tmp_path_factory):
    made = {}

    def of(kind, cased):
        if (kind, cased) not in made:
            place = tmp_path_factory.mktemp(kind)
            learned(corpus, 500, cased, kind).save_pretrained(place)
            made[kind, cased] = AutoTokenizer.from_pretrained(place)
        return made[kind, cased]

    return of


@pytest.mark.parametrize("kind", KINDS)
def test_turkish_words_are_spelt_alike_wherever_they_stand(tokenizer_of, kind):
    tokenizer = tokenizer_of(kind, False)
    first, *others = (tokenizer.tokenize(sentence) for sentence in SENTENCES[:3])
    assert all(pieces == first for pieces in others)
    assert tokenizer.unk_token not in first
    # A dot over the i that lowering İ leaves behind would be a character of its own.
    normal = tokenizer.backend_tokenizer.normalizer.normalize_str
    assert normal("İIiı") == "iiii"


@pytest.mark.parametrize("kind", KINDS)
def test_a_cased_vocabulary_keeps_the_four_letters_of_turkish_apart(tokenizer_of, kind):
    tokenizer = tokenizer_of(kind, True)
    normal = tokenizer.backend_tokenizer.normalizer.normalize_str
    assert normal("İIiı şğç É") == "İIiı şğç É"
    pieces = [tuple(tokenizer.tokenize(sentence)) for sentence in SENTENCES[:3]]
    assert len(set(pieces)) == 3


@pytest.mark.parametrize("kind", KINDS)
def test_arabic_is_read_without_stretching_and_in_its_basic_letters(tokenizer_of, kind):
    for cased in (False, True):
        normal = tokenizer_of(kind, cased).backend_tokenizer.normalizer.normalize_str
        assert normal("كتـــاب") == "كتاب"
        assert normal("ﻛﺘﺎﺏ ﻻ") == "كتاب لا"  # presentation forms, as old files have them
    tokenizer = tokenizer_of(kind, False)
    assert tokenizer.tokenize("كِتَابًا") == tokenizer.tokenize("كتابا")
    assert tokenizer_of(kind, True).backend_tokenizer.normalizer.normalize_str("كِتَاب") == "كِتَاب"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("cased", [False, True])
def test_korean_syllables_stay_whole_and_compatible_characters_become_one(tokenizer_of, kind, cased):
    normal = tokenizer_of(kind, cased).backend_tokenizer.normalizer.normalize_str
    assert normal("한국어") == "한국어"
    assert normal("ｆｉ ﬁ ½") == "fi fi 1⁄2"


def test_unigram_is_shaped_as_in_xlm_r(tokenizer_of):
    tokenizer = tokenizer_of("unigram", False)
    assert tokenizer.convert_ids_to_tokens(range(5)) == ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    one, other = (tokenizer(text, add_special_tokens=False).input_ids for text in ("die katze", "dem ofen"))
    assert tokenizer("die katze").input_ids == [0, *one, 2]
    assert tokenizer("die katze", "dem ofen").input_ids == [0, *one, 2, 2, *other, 2]
    assert tokenizer.decode(one) == "die katze"
    assert tokenizer.convert_ids_to_tokens(one)[0].startswith("▁")
    assert tokenizer.unk_token_id in tokenizer("☃").input_ids
    words = tokenizer.backend_tokenizer.encode("die katze", add_special_tokens=False).word_ids
    assert words == sorted(words)
    assert set(words) == {0, 1}  # what noise takes for words


def test_an_alphabet_fits_a_unigram_vocabulary_where_word_pieces_need_twice_the_room(corpus):
    with pytest.raises(SettingsError, match="--vocabulary-size is 150; the text has 8"):
        learned(corpus, 150, True)
    assert len(learned(corpus, 150, True, "unigram")) <= 150


def test_characters_that_hardly_occur_get_no_piece(tmp_path):
    lines = [f"the cat sat on mat number {number} and then it slept for a while" for number in range(2000)]
    tokenizer = learned(read_corpus([*lines, "one ☃ only"], cache=tmp_path), 200, kind="unigram")
    assert not any("☃" in piece for piece in tokenizer.get_vocab())
