import numpy as np
import pytest
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.preprocessing import normalize

from selfsent.evaluation import evaluate
from selfsent.evaluation.stats.logistic import fit_predict
from selfsent.evaluation.tasks.word_probe import WordProblem

WORDS = np.array([f"word{number}" for number in range(60)])


def drawn(count, classes, seed):
    """Texts whose words lean to their class."""
    draw = np.random.default_rng(seed)
    labels = draw.integers(0, classes, count)
    leaning = [draw.dirichlet(np.full(len(WORDS), 0.3)) for _ in range(classes)]
    return [" ".join(draw.choice(WORDS, 6, p=leaning[label])) for label in labels], labels


def dense(kind, sides, rows):
    """Features by scikit-learn's vectoriser, fitted on some rows alone."""
    maker = TfidfVectorizer() if kind == "tfidf" else CountVectorizer()
    maker.fit([side[row] for side in sides for row in rows])
    parts = [normalize(maker.transform(side)).toarray() for side in sides]
    return parts[0] if len(parts) == 1 else np.hstack([abs(parts[0] - parts[1]), parts[0] * parts[1]])


@pytest.mark.parametrize("kind", ["tfidf", "counts"])
@pytest.mark.parametrize("classes", [2, 4])
@pytest.mark.parametrize("pairs", [False, True])
def test_it_predicts_what_the_dense_classifier_does_on_features_of_training_rows(kind, classes, pairs):
    texts, labels = drawn(240, classes, 1)
    sides = [texts, drawn(240, classes, 2)[0]] if pairs else [texts]
    rows, penalties = np.arange(0, 160), np.array([1e-3, 1e-2])
    found = WordProblem(kind, sides, labels, 1).fit([rows, rows], penalties)
    features = dense(kind, sides, rows).astype(np.float32)
    mask = np.zeros((2, 240), bool)
    mask[:, rows] = True
    expected = fit_predict(features, labels, mask, penalties, classes)
    assert np.mean(found == expected) > 0.99
    assert np.mean(found[0] == labels) > 0.5


def test_rows_that_are_not_trained_on_change_nothing(monkeypatch):
    texts, labels = drawn(120, 2, 3)
    rows = np.arange(80)
    first = WordProblem("tfidf", [texts], labels, 1)
    other = WordProblem("tfidf", [[*texts[:80], *(f"{text} word1 word1 unseen" for text in texts[80:])]], labels, 1)
    np.testing.assert_array_equal(first._features(rows)[rows].toarray(), other._features(rows)[rows].toarray())
    one, two = (each.fit([rows], np.array([1e-3])) for each in (first, other))
    np.testing.assert_array_equal(one[0][rows], two[0][rows])


@pytest.mark.parametrize("kind", ["tfidf", "counts"])
@pytest.mark.parametrize("classifier", ["exact", "senteval"])
def test_a_file_of_labels_has_an_accuracy(kind, classifier, tmp_path):
    texts, labels = drawn(80, 2, 4)
    (tmp_path / "labels.tsv").write_text("".join(f"{t}\tclass{c}\n" for t, c in zip(texts, labels, strict=True)))
    score = evaluate(kind, labels=tmp_path / "labels.tsv", classifier=classifier).scores["labels"]
    assert score.score > 70
    assert not score.metrics
    assert "|logreg|nested|n:80|" in score.signature
    assert f"|pool:{kind}|" in score.signature


def test_texts_without_words_are_one_class(tmp_path):
    labels = np.array([0, 1] * 10)
    assert WordProblem("tfidf", [["!"] * 20], labels, 1).fit([np.arange(20)], np.array([1e-2])).shape == (1, 20)
