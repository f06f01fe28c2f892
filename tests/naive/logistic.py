"""SentEval's classification protocol, one scikit-learn fit after the other."""

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold

PENALTIES = (1e-5, 1e-4, 1e-3, 1e-2)


def fit(features, labels, penalty):
    """Mean softmax cross-entropy plus penalty / 2 times all squared weights and biases."""
    # A constant feature in place of the intercept is penalised like the weights. With two classes, scikit-learn has one
    # logit where a softmax layer has two opposite ones, whose squares sum to half of it.
    factor = 2 if len(set(labels)) == 2 else 1
    model = LogisticRegression(C=factor / (penalty * len(labels)), fit_intercept=False, max_iter=10_000, tol=1e-8)
    return model.fit(extended(features), labels)


def extended(features):
    return np.c_[features, np.ones(len(features))].astype(np.float64)


def accuracy(features, labels, train, test, penalty):
    return fit(features[train], labels[train], penalty).score(extended(features[test]), labels[test])


def folds(labels, seed=1111):
    return list(StratifiedKFold(10, shuffle=True, random_state=seed).split(labels, labels))


def best_penalty(features, labels, splits):
    scores = [
        round(100 * np.mean([accuracy(features, labels, train, test, penalty) for train, test in splits]), 2)
        for penalty in PENALTIES
    ]
    return PENALTIES[int(np.argmax(scores))]


def nested(features, labels):
    scores = []
    for train, test in folds(labels):
        penalty = best_penalty(features[train], labels[train], folds(labels[train]))
        scores.append(accuracy(features, labels, train, test, penalty))
    return np.mean(scores)
