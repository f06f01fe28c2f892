import numpy as np
import pytest
from transformers import AutoTokenizer

from selfsent.data.corpus import read_corpus
from selfsent.pretraining import vocabulary
from selfsent.pretraining.options import VocabularyOptions
from selfsent.pretraining.vocabulary import train_vocabulary

SENTENCES = [
    "Der Bäcker bringt früh am Morgen das Brot",
    "Die Straße führt über die alte Brücke",
    "İstanbul'da yağmur yağıyor, çocuklar evde",
    "Öğretmen sınıfta güzel bir hikâye okuyor",
    "يقرأ الولد كتابا قديما في البيت",
    "تشرب القطة الحليب كل صباح",
    "Мальчик читает старую книгу у окна",
    "犬が公園を走る",
]


def learned(corpus, size, cased=False, kind="wordpiece"):
    options = VocabularyOptions(vocabulary_size=size, cased=cased, vocabulary_kind=kind)
    return train_vocabulary(corpus, options, lambda line: None)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """Sentences in six scripts and languages, in many copies that differ by a number."""
    lines = [f"{sentence} {number}" for number in range(30) for sentence in SENTENCES]
    return read_corpus(lines, cache=tmp_path_factory.mktemp("corpora"))


@pytest.mark.parametrize("cased", [False, True])
def test_every_script_comes_back_from_a_saved_tokenizer(corpus, tmp_path, cased):
    made = learned(corpus, 700, cased)
    made.save_pretrained(tmp_path)
    tokenizer = AutoTokenizer.from_pretrained(tmp_path)
    assert [tokenizer.convert_ids_to_tokens(number) for number in range(5)] == [
        "[PAD]",
        "[UNK]",
        "[CLS]",
        "[SEP]",
        "[MASK]",
    ]
    for sentence in SENTENCES:
        ids = tokenizer(sentence).input_ids
        assert (ids[0], ids[-1]) == (tokenizer.cls_token_id, tokenizer.sep_token_id)
        assert tokenizer.unk_token_id not in ids
        assert ids == made(sentence).input_ids
        back = "".join(token.removeprefix("##") for token in tokenizer.convert_ids_to_tokens(ids[1:-1]))
        normal = made.backend_tokenizer.normalizer.normalize_str(sentence)
        assert back == "".join(normal.split())
    same = tokenizer.tokenize("BRINGT") == tokenizer.tokenize("bringt")
    assert same is not cased


def test_a_vocabulary_is_no_larger_than_asked_and_the_same_again(corpus):
    made = [learned(corpus, 200).get_vocab() for _ in range(5)]
    assert len(made[0]) == 200
    assert all(vocabulary == made[0] for vocabulary in made)


def test_a_character_that_hardly_occurs_gets_no_place(tmp_path):
    lines = [f"the cat sat on mat number {number} and then it slept for a while" for number in range(2000)]
    corpus = read_corpus([*lines, "one ☃ only"], cache=tmp_path)
    tokenizer = learned(corpus, 200)
    assert tokenizer.tokenize("☃") == ["[UNK]"]


@pytest.mark.parametrize("kind", ["wordpiece", "unigram"])
def test_what_has_no_space_in_it_is_learned_from_in_parts(kind, corpus, tmp_path):
    letters = "".join(np.random.default_rng(0).choice(list("abcdefghijklmnopqrstuvwxyz"), 200_050))
    long = read_corpus([*corpus.texts()[:50], letters], cache=tmp_path)
    parts = list(vocabulary._sample(long, 100))[-1].split(" ")
    assert "".join(parts) == letters
    assert {len(part) for part in parts} == {50, 100}
    assert len(learned(long, 400, kind=kind)) <= 400  # as a whole, Unigram crashes
