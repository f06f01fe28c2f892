"""Long texts in passages."""

import random

import pytest

from selfsent import read_corpus
from selfsent.data.corpus.passages import split_passages
from selfsent.errors import SettingsError


def words(text):
    return len(text.split())


def test_a_passage_ends_where_a_sentence_does_and_repeats_a_sixth_of_its_words():
    sentences = [f"One two three four five six seven eight nine s{number}." for number in range(40)]
    found = split_passages(" ".join(sentences), 60)
    assert all(words(passage) <= 60 for passage in found)
    assert found[0] == " ".join(sentences[:6])
    assert found[1] == " ".join(sentences[5:11])
    assert {sentence for passage in found for sentence in sentences if sentence in passage} == {*sentences}


@pytest.mark.parametrize("seed", range(5))
def test_nothing_is_lost_and_nothing_is_too_long(seed):
    rng = random.Random(seed)
    text = " ".join(rng.choice(["word", "Word.", "end!\n\n", "über", "x" * 50]) + str(n) for n in range(2000))
    found = split_passages(text, 25)
    assert max(map(words, found)) <= 25
    kept = iter(text.split())
    wanted = next(kept)
    for word in " ".join(found).split():
        if word == wanted:
            wanted = next(kept, None)
    assert wanted is None


@pytest.mark.parametrize("heading", ["## Second part", "Second part\n-----------"])
def test_a_heading_stands_with_what_follows(heading):
    text = f"# First\n\nAlpha beta gamma delta. Epsilon zeta eta.\n\n{heading}\n\nTheta iota kappa lambda mu. Nu xi."
    sign = "##" if heading.startswith("##") else "#"
    assert split_passages(text, 12) == [
        "# First Alpha beta gamma delta. Epsilon zeta eta.",
        f"{sign} Second part Theta iota kappa lambda mu. Nu xi.",
    ]


def test_scripts_without_spaces_count_two_signs_as_a_word():
    found = split_passages("これは長い文章です。" * 10, 20)
    assert [len(passage.replace(" ", "")) for passage in found] == [30, 30, 30, 10]  # a mark is a word
    assert split_passages("長" * 100, 20) == ["長" * 40, "長" * 40, "長" * 20]


def test_odd_texts():
    assert split_passages("", 20) == split_passages(" \n\n ", 20) == []
    assert split_passages("# Only a heading", 20) == ["# Only a heading"]
    assert split_passages("a " * 50, 20) == [" ".join("a" * 20)] * 2 + [" ".join("a" * 10)]
    assert max(map(words, split_passages("# h\n" * 1000, 20))) <= 22


def test_a_corpus_of_passages_knows_their_row_and_place():
    long = " ".join(f"This is sentence number {number} of many." for number in range(20))
    corpus = read_corpus({"text": ["Short.", "", long], "id": ["a", "b", "c"]}, passages=30, metadata_columns="id")
    assert corpus.report.unit == corpus.input_rows.unit == "passage"
    cells = corpus.input_rows.describe(corpus.input_rows.first)
    assert cells["row"] == [0] + [2] * (len(corpus) - 1)
    assert cells["passage"] == [0, *range(len(corpus) - 1)]
    assert cells["id"] == ["a"] + ["c"] * (len(corpus) - 1)
    assert corpus.texts([1]) == [" ".join(f"This is sentence number {number} of many." for number in range(4))]


def test_what_cannot_be():
    with pytest.raises(SettingsError, match="passages is 3; it must be at least 10"):
        read_corpus(["a text"], passages=3)
    with pytest.raises(SettingsError, match="either split_sentences or passages"):
        read_corpus(["a text"], passages=30, split_sentences=True)
    with pytest.raises(SettingsError, match="passages works on one text column"):
        read_corpus({"a": ["x"], "b": ["y"]}, text_columns=("a", "b"), passages=30)
