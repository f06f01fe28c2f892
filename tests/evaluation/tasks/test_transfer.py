import numpy as np
import pytest
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.metrics import f1_score
from sklearn.preprocessing import normalize

import tiny
from naive import logistic as naive
from selfsent.errors import SettingsError
from selfsent.evaluation.datasets.declared import Rows
from selfsent.evaluation.suites import evaluate
from selfsent.evaluation.tasks import transfer
from selfsent.scorers.load_scorer import load_scorer
from selfsent.stats.logistic import STEPS, fit_predict

WORDS = np.array([f"word{number}" for number in range(60)])


@pytest.fixture
def words():
    """Sentences of different lengths whose class shows in their words, some of them empty."""
    rng = np.random.default_rng(0)

    def make(n, classes=2):
        labels = rng.integers(0, classes, n).tolist()
        vocabulary = [f"w{k}" for k in range(20)]
        texts = [" ".join(rng.choice([f"c{label}"] * 8 + vocabulary, rng.integers(1, 7))) for label in labels]
        texts[3] = ""
        return texts, labels

    return make


def features_of(model, texts, labels):
    """Features and labels of rows sorted as SentEval does."""
    ordered = sorted(zip(texts, labels, strict=True), key=lambda pair: (len(pair[0].split()), pair[1]))
    texts = [text or "." for text, _ in ordered]
    return np.asarray(model.encode(texts), np.float32), np.array([label for _, label in ordered])


def test_nested_folds_agree_with_one_fit_after_the_other(write, words, model):
    model.size = 12
    texts, labels = words(150)
    root = write("SentEval/CR/all.parquet", text=texts, label=labels)
    exact, early = (evaluate(model, task="cr", data=root, classifier=c).scores["cr"] for c in ("exact", "senteval"))
    expected = 100 * naive.nested(*features_of(model, texts, labels))
    assert exact.score == pytest.approx(expected, abs=0.7)  # one sentence of 150, on the border
    assert (exact.n, len(exact.details["l2"])) == (150, 10)
    assert "cr has 150 rows here, 3775 as published" in exact.warnings
    assert "accuracy|logreg|nested" in exact.signature
    assert "accuracy|senteval|nested" in early.signature
    assert 50 < early.score < exact.score + 6
    with pytest.raises(SettingsError, match="there is no classifier 'svm'; there are exact, senteval"):
        evaluate(model, task="cr", data=root, classifier="svm")


def test_one_penalty_for_all_folds_agrees_with_one_fit_after_the_other(words, model):
    model.size = 12
    texts, labels = words(150, 3)
    rows, done = Rows("mine", {"text": texts, "label": labels}, ""), []
    encoder = load_scorer(model)
    progress = tiny.heard(count=lambda what, steps, total: done.append((steps, total)))
    found = transfer.score_classification("mine", "quick", rows, scorer=encoder, progress=progress)
    assert found.score == pytest.approx(100 * naive.quick(*features_of(model, texts, labels)), abs=0.7)
    assert len(set(found.details["l2"])) == 1
    assert "|logreg|quick|" in found.signature
    assert {total for _, total in done} == {4 * 10 * STEPS}
    assert sum(steps for steps, _ in done) <= 4 * 10 * STEPS


def test_folds_of_the_training_set_choose_for_the_test_set(write, words, model):
    model.size = 12
    train, test = words(200, 3), words(80, 3)
    write("SentEval/TREC/train.parquet", text=train[0], label=train[1])
    root = write("SentEval/TREC/test.parquet", text=test[0], label=test[1])
    score = evaluate(model, task="trec", data=root).scores["trec"]
    features, goal = features_of(model, *train)
    penalty = naive.best_penalty(features, goal, naive.folds(goal))
    test_features, test_goal = features_of(model, *test)
    expected = naive.fit(features, goal, penalty).score(naive.extended(test_features), test_goal)
    assert score.details["l2"] == [penalty]
    assert score.score == pytest.approx(100 * expected, abs=1.3)
    assert score.n == 80


def test_validation_set_chooses_where_there_is_one(write, words, model):
    for split, count in (("train", 120), ("validation", 40), ("test", 50)):
        texts, labels = words(count)
        root = write(f"SentEval/SST2/{split}.parquet", text=texts, label=labels)
    score = evaluate(model, task="sst2", data=root).scores["sst2"]
    assert score.n == 50
    assert score.score > 60
    assert "|split|" in score.signature


def test_pairs_use_difference_and_product(write, model):
    rng = np.random.default_rng(7)

    def make(n):
        left = [" ".join(rng.choice([f"w{k}" for k in range(8)], 3)) for _ in range(n)]
        labels = rng.integers(0, 2, n).tolist()
        right = [text if label else " ".join(rng.choice(["x", "y", "z"], 3)) for text, label in zip(left, labels)]
        return {"text": left, "text2": right, "label": labels}

    write("SentEval/MRPC/train.parquet", **make(150))
    root = write("SentEval/MRPC/test.parquet", **make(60))
    score = evaluate(model, task="mrpc", data=root).scores["mrpc"]
    assert min(score.score, score.metrics["f1"]) > 95


def test_f1_is_that_of_the_predictions(write, words, model, monkeypatch):
    texts, labels = words(60)
    for split in ("train", "test"):
        root = write(f"SentEval/MRPC/{split}.parquet", text=texts, text2=texts[::-1], label=labels)
    guess = np.random.default_rng(0).integers(0, 2, 120)
    same = lambda f, y, masks, *rest: np.tile(guess[: len(y)], (len(masks), 1))  # noqa: E731
    monkeypatch.setattr(transfer.logistic, "fit_predict", same)
    score = evaluate(model, task="mrpc", data=root).scores["mrpc"]
    rows = zip(texts, texts[::-1], labels, strict=True)
    ordered = [row[2] for row in sorted(rows, key=lambda r: (len(r[0].split()), len(r[1].split()), r[2]))]
    assert score.metrics["f1"] == pytest.approx(100 * f1_score(ordered, guess[60:]))


def drawn(count, classes, seed):
    """Texts whose words lean to their class."""
    draw = np.random.default_rng(seed)
    labels = draw.integers(0, classes, count)
    leaning = [draw.dirichlet(np.full(len(WORDS), 0.3)) for _ in range(classes)]
    return [" ".join(draw.choice(WORDS, 6, p=leaning[label])) for label in labels], labels


def fit_words(sides, labels, trains, penalties):
    counts = transfer.word_counts(sides)
    return transfer.fit_words(counts, labels, lambda steps: None, trains, np.array(penalties), None)


@pytest.mark.parametrize("classes", [2, 4])
@pytest.mark.parametrize("pairs", [False, True])
def test_words_are_classified_as_dense_features_of_training_rows_would_be(classes, pairs):
    texts, labels = drawn(240, classes, 1)
    sides = [texts, drawn(240, classes, 2)[0]] if pairs else [texts]
    rows, penalties = np.arange(160), [1e-3, 1e-2]
    found = fit_words(sides, labels, [rows, rows], penalties)
    maker = TfidfVectorizer().fit([side[row] for side in sides for row in rows])
    parts = [normalize(maker.transform(side)).toarray() for side in sides]
    features = np.hstack([abs(parts[0] - parts[1]), parts[0] * parts[1]]) if pairs else parts[0]
    mask = np.tile(np.arange(240) < 160, (2, 1))
    expected = fit_predict(features.astype(np.float32), labels, mask, np.array(penalties), classes)
    assert np.mean(found == expected) > 0.99
    assert np.mean(found[0] == labels) > 0.5


def test_rows_that_are_not_trained_on_change_nothing():
    texts, labels = drawn(120, 2, 3)
    rows, more = np.arange(80), [*texts[:80], *(f"{text} word1 word1 unseen" for text in texts[80:])]
    one, two = (fit_words([each], labels, [rows], [1e-3])[0] for each in (texts, more))
    np.testing.assert_array_equal(one[rows], two[rows])
    nothing = fit_words([["!"] * 20], labels[:20], [np.arange(20)], [1e-2])
    assert len(set(nothing[0])) == 1  # texts without words


def test_a_file_of_labels_has_an_accuracy_by_words(tmp_path):
    texts, labels = drawn(80, 2, 4)
    (tmp_path / "labels.tsv").write_text("".join(f"{t}\tclass{c}\n" for t, c in zip(texts, labels, strict=True)))
    score = evaluate("tfidf", labels=tmp_path / "labels.tsv", classifier="senteval").scores["labels"]
    assert score.score > 70
    assert not score.metrics
    assert "|logreg|quick|n:80|" in score.signature
    assert "|pool:tfidf|" in score.signature
