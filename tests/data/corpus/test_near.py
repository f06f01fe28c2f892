import numpy as np
import pytest

import tiny
from selfsent.data.corpus import read_corpus
from selfsent.data.corpus.duplicates import NearDuplicates
from selfsent.errors import SettingsError

LONG = "the committee approved the new budget for schools and hospitals in the northern districts after a long debate"


def test_case_and_punctuation_make_no_difference_and_order_does():
    seen = NearDuplicates()
    texts = ["Dog bites man.", "dog bites man!", "Man bites dog.", "!!!", "!!!", "???"]
    assert seen.new(texts).tolist() == [True, False, True, True, False, True]
    assert seen.new(["DOG, bites man", "a cat"]).tolist() == [False, True]
    assert seen.new([]).tolist() == []


def test_a_word_more_in_a_long_text_and_in_a_short_one():
    assert NearDuplicates().new([LONG, f"{LONG} yesterday"]).tolist() == [True, False]
    assert NearDuplicates().new(["it rains", "it rains hard"]).tolist() == [True, True]


def test_scripts_without_spaces():
    text = "今天委员会经过长时间辩论后批准了北部地区学校和医院的新预算并且决定明年继续增加投入"
    assert NearDuplicates().new([text, f"{text}了", text[::-1]]).tolist() == [True, False, True]


def test_the_more_alike_the_more_are_found():
    draw = np.random.default_rng(0)
    words = [f"w{number}" for number in range(5000)]
    found = {}
    for changed in (1, 3, 10):
        hits = 0
        for _ in range(40):
            text = draw.choice(words, 30, replace=False)
            other = text.copy()
            other[:changed] = draw.choice(words, changed)
            hits += not NearDuplicates().new([" ".join(text), " ".join(other)])[1]
        found[changed] = hits / 40
    # One word of thirty leaves 57 of 61 features alike (0.93), three at its beginning 53 of 65 (0.82), ten a half.
    assert found[1] > 0.85
    assert 0.15 < found[3] < 0.75
    assert found[10] < 0.1


def test_texts_that_have_nothing_to_do_with_each_other_stay_in_little_memory():
    seen = NearDuplicates()
    draw = np.random.default_rng(0)
    texts = [" ".join(row) for row in draw.integers(10_000, size=(20_000, 12)).astype(str)]
    assert seen.new(texts).mean() > 0.999
    held = sum(shard.keys.nbytes for band in seen._bands for shard in band._shards)
    assert held < 160 * len(texts)


@pytest.fixture
def near_file(tmp_path):
    path = tmp_path / "near.txt"
    path.write_text(f"{LONG}\nko mi\n\n{LONG} yesterday\nla nu po\nKo mi!\nko mi\n")
    return path


def test_a_corpus_keeps_the_first_and_counts_the_others(near_file, tmp_path):
    corpus = read_corpus(near_file, drop_near_duplicates=True, cache=tmp_path)
    assert corpus.texts() == [LONG, "ko mi", "la nu po"]
    assert corpus.documents.tolist() == [0, 0, 1]
    assert (len(corpus), corpus.report.near_duplicates, corpus.report.duplicates) == (3, 2, 1)
    assert corpus.report.summary() == "3 sentences in 2 documents (1 duplicate, 2 near-duplicates dropped)"
    plain = read_corpus(near_file, cache=tmp_path)
    assert (len(plain), plain.report.near_duplicates) == (5, 0)
    again = read_corpus(near_file, drop_near_duplicates=True, cache=tmp_path)
    assert again.directory == corpus.directory != plain.directory
    assert again.report == corpus.report


def test_rows_of_several_texts_are_alike_as_wholes(tmp_path):
    (tmp_path / "pairs.csv").write_text("a,b\nko mi,la nu\nKo mi,la nu!\nko mi,ri sa\n")
    corpus = read_corpus(tmp_path / "pairs.csv", text_columns=("a", "b"), drop_near_duplicates=True, cache=tmp_path)
    assert (len(corpus), corpus.report.near_duplicates) == (2, 1)


def test_it_is_refused_where_every_row_is_wanted_and_without_the_library(near_file, tmp_path, monkeypatch):
    with pytest.raises(SettingsError, match="carry wants all of them"):
        read_corpus(near_file, drop_near_duplicates=True, carry=(), cache=tmp_path)
    monkeypatch.setitem(__import__("sys").modules, "rensa", None)
    with pytest.raises(SettingsError, match=r"selfsent\[near-duplicates\]"):
        read_corpus(tiny.make_sentences(5), drop_near_duplicates=True, cache=tmp_path)
