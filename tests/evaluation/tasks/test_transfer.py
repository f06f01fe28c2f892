import numpy as np
import pytest
from sklearn.metrics import f1_score

from naive import logistic as naive
from selfsent.errors import SettingsError
from selfsent.evaluation.datasets.declared import Store
from selfsent.evaluation.encoders import as_encoder
from selfsent.evaluation.stats import logistic
from selfsent.evaluation.stats.logistic import fit_predict
from selfsent.evaluation.suites import evaluate
from selfsent.evaluation.tasks import senteval
from selfsent.evaluation.tasks.transfer import PENALTIES, TRANSFER, score_transfer

TASKS = {task.name: task for task in TRANSFER}


def cloud(n, size, classes, seed, noise=1.0):
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, classes, n)
    features = rng.normal(size=(classes, size))[labels] * np.linspace(1, 0.01, size) + rng.normal(0, noise, (n, size))
    return features.astype(np.float32), labels


@pytest.fixture
def words():
    """Sentences of different lengths whose class shows in their words, some of them empty."""
    rng = np.random.default_rng(0)

    def make(n, classes=2):
        labels = rng.integers(0, classes, n).tolist()
        texts = [
            " ".join(rng.choice([f"c{label}"] * 8 + [f"w{k}" for k in range(20)], rng.integers(1, 7)))
            for label in labels
        ]
        texts[3] = ""
        return texts, labels

    return make


def sorted_as_senteval(texts, labels):
    return sorted(zip(texts, labels, strict=True), key=lambda pair: (len(pair[0].split()), pair[1]))


@pytest.mark.parametrize("classes", [2, 5])
@pytest.mark.parametrize("penalty", [1e-5, 1e-2])
def test_fits_agree_with_scikit_learn(classes, penalty):
    features, labels = cloud(600, 20, classes, 1)
    masks = np.random.default_rng(2).random((3, 600)) < 0.7
    found = fit_predict(features, labels, masks, np.full(3, penalty), classes)
    for mask, guess in zip(masks, found, strict=True):
        expected = naive.fit(features[mask], labels[mask], penalty).predict(naive.extended(features))
        assert np.mean(guess == expected) > 0.995


@pytest.mark.parametrize("scale", [1e-2, 20])
@pytest.mark.parametrize("penalty", [1e-5, 1e-2])
def test_problems_far_from_what_they_share_reach_their_own_minima(scale, penalty):
    features, labels = cloud(400, 30, 2, 5, noise=0.3)
    features *= scale
    masks = np.zeros((4, 400), np.bool_)
    for number, mask in enumerate(masks):  # a tenth each, no row in two of them, and one of nearly one class
        mask[100 * number : 100 * number + 40] = True
    masks[3] &= (labels == 0) | (np.arange(400) < 310)
    found = fit_predict(features, labels, masks, np.full(4, penalty), 2)
    for mask, guess in zip(masks, found, strict=True):
        expected = naive.fit(features[mask], labels[mask], penalty).predict(naive.extended(features))
        assert np.mean(guess == expected) > 0.995


def test_wide_features_and_many_blocks_change_nothing(monkeypatch):
    features, labels = cloud(200, 20, 2, 6)
    masks = np.random.default_rng(7).random((12, 200)) < 0.6
    penalty = np.repeat(PENALTIES, 3)
    found = fit_predict(features, labels, masks, penalty, 2)
    monkeypatch.setattr(logistic, "BLOCK", 400)
    assert np.mean(fit_predict(features, labels, masks, penalty, 2) == found) > 0.999
    monkeypatch.setattr(logistic, "WIDEST", 19)
    assert np.mean(fit_predict(features, labels, masks, penalty, 2) == found) > 0.995


def test_problems_do_not_influence_each_other():
    features, labels = cloud(200, 10, 2, 3)
    masks = np.random.default_rng(4).random((4, 200)) < 0.6
    together = fit_predict(features, labels, masks, PENALTIES, 2)
    alone = [fit_predict(features, labels, m[None], PENALTIES[k : k + 1], 2)[0] for k, m in enumerate(masks)]
    assert np.mean(together == np.array(alone)) > 0.99


@pytest.mark.parametrize("penalty", [1e-3, 1.0])
@pytest.mark.parametrize("classes", [2, 4])
def test_early_stopping_of_one_problem_is_that_of_torch(classes, penalty):
    features, labels = cloud(300, 8, classes, 8)
    train, valid = np.arange(300) < 200, np.arange(300) >= 200
    found = senteval.fit_predict(features, labels, train[None], np.array([penalty]), classes, valid[None], seed=5)
    expected = naive.stopped_early(features[train], labels[train], features[valid], labels[valid], penalty, seed=5)
    assert np.mean(found[0] == expected(features)) > 0.99


def test_problems_that_share_batches_score_as_if_each_had_its_own():
    features, labels = cloud(1000, 16, 2, 9, noise=2.0)
    valid, test = (np.arange(1000) // 250 == part for part in (0, 1))
    masks = (np.random.default_rng(3).random((4, 1000)) < 0.7) & ~valid & ~test
    penalties = np.tile([1e-5, 1e-2], 2)
    found = senteval.fit_predict(features, labels, masks, penalties, 2, np.tile(valid, (4, 1)), seed=1)
    alone = [
        naive.stopped_early(features[mask], labels[mask], features[valid], labels[valid], penalty, seed)(features)
        for seed, (mask, penalty) in enumerate(zip(masks, penalties, strict=True))
    ]
    together, apart = ((np.array(guess)[:, test] == labels[test]).mean() for guess in (found, alone))
    assert together == pytest.approx(apart, abs=0.02)  # 4 x 250 rows
    assert 0.6 < together < 0.98


def test_early_stopping_holds_rows_back_where_none_are_given():
    features, labels = cloud(600, 8, 2, 10, noise=0.3)
    train = np.ones((2, 600), np.bool_)
    found = senteval.fit_predict(features, labels, train, np.full(2, 1e-4), 2, None, seed=0)
    assert train.all()
    assert (found == labels).mean() > 0.8
    again = senteval.fit_predict(features, labels, train, np.full(2, 1e-4), 2, None, seed=0)
    assert np.array_equal(found, again)


def test_the_classifier_is_in_the_signature(write, words, model):
    model.size = 12
    texts, labels = words(150)
    store = Store(write("SentEval/CR/all.parquet", text=texts, label=labels))
    exact, early = (evaluate(model, task="cr", data=store, classifier=c).scores["cr"] for c in ("exact", "senteval"))
    assert "accuracy|logreg|nested" in exact.signature
    assert "accuracy|senteval|nested" in early.signature
    assert 50 < early.score < exact.score + 6
    with pytest.raises(SettingsError, match="there is no classifier 'svm'; there are exact, senteval"):
        evaluate(model, task="cr", data=store, classifier="svm")


def test_nested_folds_agree_with_one_fit_after_the_other(write, words, model):
    model.size = 12
    texts, labels = words(150)
    store = Store(write("SentEval/CR/all.parquet", text=texts, label=labels))
    score = score_transfer(TASKS["cr"], as_encoder(model), store)
    ordered = sorted_as_senteval(texts, labels)
    features = np.asarray(model.encode([text or "." for text, _ in ordered]), np.float32)
    expected = 100 * naive.nested(features, np.array([label for _, label in ordered]))
    assert score.score == pytest.approx(expected, abs=0.7)  # one sentence of 150, on the border
    assert score.n == 150
    assert len(score.details["l2"]) == 10
    assert "cr has 150 rows here, 3775 as published" in score.warnings
    assert "accuracy|logreg|nested" in score.signature


def test_folds_of_the_training_set_choose_for_the_test_set(write, words, model):
    model.size = 12
    train, test = words(200, 3), words(80, 3)
    write("SentEval/TREC/train.parquet", text=train[0], label=train[1])
    root = write("SentEval/TREC/test.parquet", text=test[0], label=test[1])
    score = evaluate(model, task="trec", data=root).scores["trec"]
    (texts, labels), (test_texts, test_labels) = (
        zip(*sorted_as_senteval(*part), strict=True) for part in (train, test)
    )
    features, goal = np.asarray(model.encode([t or "." for t in texts]), np.float32), np.array(labels)
    penalty = naive.best_penalty(features, goal, naive.folds(goal))
    fitted = naive.fit(features, goal, penalty)
    test_features = np.asarray(model.encode([t or "." for t in test_texts]), np.float32)
    assert score.details["l2"] == [penalty]
    assert score.score == pytest.approx(100 * fitted.score(naive.extended(test_features), test_labels), abs=1.3)
    assert score.n == 80


def test_validation_set_chooses_where_there_is_one(write, words, model):
    for split, count in (("train", 120), ("validation", 40), ("test", 50)):
        texts, labels = words(count)
        root = write(f"SentEval/SST2/{split}.parquet", text=texts, label=labels)
    score = evaluate(model, task="sst2", data=root).scores["sst2"]
    assert score.n == 50
    assert score.score > 60
    assert "|split|" in score.signature


def test_pairs_use_difference_and_product_and_report_f1(write, model):
    rng = np.random.default_rng(7)

    def make(n):
        left = [" ".join(rng.choice([f"w{k}" for k in range(8)], 3)) for _ in range(n)]
        labels = rng.integers(0, 2, n).tolist()
        right = [text if label else " ".join(rng.choice(["x", "y", "z"], 3)) for text, label in zip(left, labels)]
        return {"text": left, "text2": right, "label": labels}

    write("SentEval/MRPC/train.parquet", **make(150))
    root = write("SentEval/MRPC/test.parquet", **make(60))
    score = evaluate(model, task="mrpc", data=root).scores["mrpc"]
    assert score.score > 95
    assert score.metrics["f1"] > 95


def test_f1_is_that_of_the_predictions(write, words, model, monkeypatch):
    from selfsent.evaluation.tasks import transfer

    texts, labels = words(60)
    for split in ("train", "test"):
        root = write(f"SentEval/MRPC/{split}.parquet", text=texts, text2=texts[::-1], label=labels)
    guess = np.random.default_rng(0).integers(0, 2, 120)
    monkeypatch.setattr(transfer, "fit_predict", lambda f, y, masks, *rest: np.tile(guess[: len(y)], (len(masks), 1)))
    score = score_transfer(TASKS["mrpc"], as_encoder(model), Store(root))
    ordered = [
        label
        for _, _, label in sorted(
            zip(texts, texts[::-1], labels, strict=True), key=lambda r: (len(r[0].split()), len(r[1].split()), r[2])
        )
    ]
    assert score.metrics["f1"] == pytest.approx(100 * f1_score(ordered, guess[60:]))


def test_the_suite_names_the_papers_tasks():
    assert list(TASKS) == ["mr", "cr", "subj", "mpqa", "sst2", "trec", "mrpc"]
