"""Which kinds of words similarities hang on: TSDAE's figures 4 and 7."""

import json
import sys
from types import SimpleNamespace

import numpy as np
import pytest

from selfsent.errors import DataError, OutputError, SettingsError
from selfsent.scorers.scorer import Scorer
from selfsent_papers import words
from selfsent_papers.words import WordImportance, draw_words, relevant_pairs, tag, word_importance, words_table

KINDS = {"the": "determiners", "a": "determiners", "cat": "nouns", "dog": "nouns", "sat": "verbs", "ran": "verbs"}


def by_table(texts):
    """A vector for each text: how often each word is in it, nouns three times as long, determiners nearly nothing."""
    weight = {"nouns": 3.0, "verbs": 1.0, "determiners": 0.01}
    return np.array([[text.split().count(word) * weight[KINDS[word]] for word in KINDS] for text in texts], np.float32)


def tagged(given):
    return [KINDS[word] for word in given]


def test_the_kind_that_lowers_the_cosine_most_is_counted():
    left = ["the cat sat", "a dog ran", "the ran"]
    found = word_importance(Scorer(by_table, "counts"), left, left, tagged)
    assert found.decisive == pytest.approx({"nouns": 2 / 3, "verbs": 1 / 3})
    assert found.present == pytest.approx({"determiners": 3 / 8, "verbs": 3 / 8, "nouns": 2 / 8})
    assert found.sentences == 3


def test_it_equals_a_loop_over_words():
    rng = np.random.default_rng(0)
    left = [" ".join(rng.choice(list(KINDS), rng.integers(1, 6))) for _ in range(30)]
    right = [" ".join(rng.choice(list(KINDS), 3)) for _ in range(30)]
    counts = {}
    for text, other in zip(left, right, strict=True):
        tokens = text.split()
        if len(tokens) < 2:
            continue
        cosines = []
        for at in range(len(tokens)):
            a, b = by_table([" ".join(tokens[:at] + tokens[at + 1 :]), other]).astype(float)
            cosines.append(a @ b / np.sqrt((a @ a) * (b @ b)))
        kind = KINDS[tokens[int(np.argmin(np.round(cosines, 6)))]]
        counts[kind] = counts.get(kind, 0) + 1
    found = word_importance(Scorer(by_table, "counts"), left, right, tagged)
    assert found.sentences == sum(counts.values())
    assert found.decisive == pytest.approx({kind: count / found.sentences for kind, count in counts.items()}, abs=0.07)


def test_pairs_with_four_fifths_of_the_highest_score_are_relevant(tmp_path, monkeypatch):
    (tmp_path / "pairs.tsv").write_text("sentence1\tsentence2\tscore\na b\tc d\t5\ne f\tg h\t4\ni j\tk l\t3.9\n")
    assert relevant_pairs(str(tmp_path / "pairs.tsv")) == (["a b", "e f"], ["c d", "g h"])
    monkeypatch.setattr(words.Store, "load", lambda self, data: SimpleNamespace(columns={"text": []}))
    with pytest.raises(DataError, match="mr has no pairs of sentences"):
        relevant_pairs("mr")
    with pytest.raises(DataError, match="no sentence has two words or more"):
        word_importance(Scorer(by_table, "counts"), ["cat"], ["dog"], tagged)


def test_a_table_and_a_drawing_that_is_always_the_same(tmp_path):
    found = {"cost $5": WordImportance({"nouns": 0.75, "verbs": 0.25}, {"nouns": 0.5, "determiners": 0.5}, 8)}
    table = words_table(found)
    assert [list(map(str, column.cells)) for column in table.columns] == [
        *(["nouns", "determiners"], ["75.0", "0.0"], ["50.0", "50.0"])
    ]
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    for name in ("x.svg", "y.svg"):
        draw_words(found, tmp_path / name)
    assert (tmp_path / "x.svg").read_bytes() == (tmp_path / "y.svg").read_bytes()
    assert "cost $5" in (tmp_path / "x.svg").read_text()
    with pytest.raises(OutputError, match=r"must end in \.png or \.svg"):
        draw_words(found, tmp_path / "x.pdf")


def test_the_command(selfsent, tmp_path):
    pytest.importorskip("HanTa", reason="HanTa is not installed")
    assert tag(["The", "dogs", "sleep", "in", "Berlin", "."]) == [
        *("determiners", "nouns", "verbs", "prepositions", "names", "punctuation")
    ]
    (tmp_path / "pairs.tsv").write_text(
        "sentence1\tsentence2\tscore\nThe dog sleeps\tA dog is asleep\t5\nTea\tCoffee\t0\n"
    )
    given = ("recipes", "words", "bundled", "--pairs", tmp_path / "pairs.tsv")
    plain = json.loads(selfsent(*given, "--json").out)
    assert plain["bundled"]["decisive"] == {"nouns": 1.0}
    assert "nouns" in selfsent(*given, "--plot", tmp_path / "words.png").out
    assert (tmp_path / "words.png").stat().st_size > 1000


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (("words", "bundled"), "words needs models and pairs"),
        (("tsdae_words", "--pairs", "x.tsv"), "--pairs and --plot go with words"),
        (("words", "bundled", "--pairs", "x.tsv", "--plot", "x.pdf"), "must end in .png or .svg"),
        (("words", "bundled", "--pairs", "nowhere.tsv"), "nowhere.tsv cannot be read"),
    ],
)
def test_what_is_refused(given, said, selfsent):
    assert said in selfsent("recipes", *given).complaint


def test_without_a_tagger(monkeypatch):
    words.tagger.cache_clear()
    monkeypatch.setitem(sys.modules, "HanTa.HanoverTagger", None)
    with pytest.raises(SettingsError, match=r"pip install 'selfsent-papers\[words\]'"):
        tag(["a"])
