"""SentEval's classification protocol, one scikit-learn fit after the other; and its own classifier, by torch."""

import numpy as np
import torch
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold

PENALTIES = (1e-5, 1e-4, 1e-3, 1e-2)


def fit(features, labels, penalty):
    """Mean softmax cross-entropy plus penalty / 2 times all squared weights and biases."""
    # A constant feature in place of the intercept is penalised like the weights. With two classes, scikit-learn has one
    # logit where a softmax layer has two opposite ones, whose squares sum to half of it.
    factor = 2 if len(set(labels)) == 2 else 1
    solver = {"solver": "newton-cholesky", "max_iter": 10_000, "tol": 1e-8}  # few features: the quickest exact one
    model = LogisticRegression(C=factor / (penalty * len(labels)), fit_intercept=False, **solver)
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


def quick(features, labels):
    """Ten folds with one penalty, the best over them."""
    splits = folds(labels)
    return max(
        np.mean([accuracy(features, labels, train, test, penalty) for train, test in splits]) for penalty in PENALTIES
    )


def stopped_early(features, labels, valid, valid_labels, penalty, seed):
    """A linear layer trained by Adam in batches of 64; the state that was best on other rows, looked at every 4 epochs.

    It stops when a look is no better for the sixth time, or after 51 looks.
    """
    draw = np.random.default_rng(seed)
    size, classes, bound = features.shape[1], int(labels.max()) + 1, features.shape[1] ** -0.5
    start = draw.uniform(-bound, bound, (size + 1, classes))
    layer = torch.nn.Linear(size, classes)
    with torch.no_grad():
        layer.weight[:] = torch.tensor(start[:-1].T)
        layer.bias[:] = torch.tensor(start[-1])
    x, y, valid = torch.tensor(features), torch.tensor(labels), torch.tensor(valid)
    adam = torch.optim.Adam(layer.parameters(), weight_decay=penalty)
    best, best_layer, worse = -1.0, None, 0
    for _ in range(51):
        for _ in range(4):
            for rows in torch.tensor(draw.permutation(len(y))).split(64):
                adam.zero_grad()
                torch.nn.functional.cross_entropy(layer(x[rows]), y[rows]).backward()
                adam.step()
        right = np.mean(layer(valid).argmax(1).numpy() == valid_labels)
        if right > best:
            best, best_layer = right, {name: value.clone() for name, value in layer.state_dict().items()}
        elif worse == 5:
            break
        else:
            worse += 1
    layer.load_state_dict(best_layer)
    return lambda features: layer(torch.tensor(features)).argmax(1).numpy()
