import numpy as np
import pytest

from selfsent.comparison.label import PairsToJudge, draw_pairs
from selfsent.errors import DataError
from selfsent.evaluation.tasks.own import read_pairs
from selfsent.scorers.load_scorer import load_scorer

PAIRS = [("a car", "an auto"), ("a\tcar", "a\ncat"), ("one", "two")]


def test_answers_are_written_at_once_and_gone_on_with(tmp_path):
    path = tmp_path / "pairs.tsv"
    first = PairsToJudge(path, PAIRS)
    first.answer("y")
    first.answer("2")
    pairs = {"sentence1": ["a car", "a car"], "sentence2": ["an auto", "a cat"]}
    assert read_pairs(path).columns == {**pairs, "score": [5.0, 2.0]}
    again = PairsToJudge(path, [("an auto", "a car"), *PAIRS])
    assert again.todo == [("one", "two")]


def test_undo_takes_back_what_was_answered_now(tmp_path):
    path = tmp_path / "pairs.tsv"
    PairsToJudge(path, PAIRS).answer("n")
    found = PairsToJudge(path, PAIRS)
    assert not found.undo()
    found.answer("5")
    assert found.undo()
    assert found.next == ("a car", "a cat")
    assert path.read_text() == "sentence1\tsentence2\tscore\na car\tan auto\t0\n"
    found.skip()
    assert found.next == ("one", "two")


@pytest.mark.parametrize("text", ["a\tb\n", "a\tb\t1\na\tc\td\n", "x", "a\tb\tc\n"])
def test_a_file_of_another_kind_is_refused(tmp_path, text):
    path = tmp_path / "pairs.tsv"
    path.write_text(text)
    with pytest.raises(DataError, match=r"line 1: expected sentence1|not (one of|written by) selfsent label"):
        PairsToJudge(path, PAIRS)
    assert path.read_text() == text


def test_pairs_are_spread_over_similarities_and_lie_where_models_disagree():
    rng = np.random.default_rng(0)
    texts = [f"text{n} word{n}" for n in range(120)]
    tables = [dict(zip(texts, rng.normal(size=(120, 6)), strict=True)) for _ in range(2)]
    models = [load_scorer(lambda given, t=table: np.stack([t[text] for text in given])) for table in tables]
    pairs = draw_pairs(texts, models, 40)
    assert len({frozenset(pair) for pair in pairs.tolist()}) == 40
    cosines = np.array([m.similarity([texts[a] for a in pairs[:, 0]], [texts[b] for b in pairs[:, 1]]) for m in models])
    assert cosines.mean(0).min() < -0.3
    assert cosines.mean(0).max() > 0.6
    assert pairs.tolist() == draw_pairs(texts, models, 40).tolist()
    everyone = rng.integers(120, size=(2000, 2))
    usual = [m.similarity([texts[a] for a in everyone[:, 0]], [texts[b] for b in everyone[:, 1]]) for m in models]
    assert np.abs(cosines[0] - cosines[1]).mean() > 1.1 * np.abs(usual[0] - usual[1]).mean()
