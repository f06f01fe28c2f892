"""SentEval's classification tasks (Conneau and Kiela, 2018): logistic regression on frozen embeddings.

The L2 penalty is chosen on training data alone: by inner folds, by folds of the training set, or on the validation
set, as SentEval does for each task; folds, order of rows and grid are SentEval's. So is the classifier `senteval`,
which stops Adam early; the classifier `exact` converges. Penalties are per mean loss, as under PyTorch
0.4.1 and newer; older versions summed the loss over a batch of 64 and so penalised 64 times less.

TF-IDF is classified as sparse rows. Test rows do not leak: vocabulary and frequencies are those of the
training rows of each fit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Literal

import numpy as np

from selfsent.evaluation.datasets.catalogue import Protocol
from selfsent.evaluation.datasets.declared import Rows, fingerprint
from selfsent.evaluation.results import Score, measure, signature
from selfsent.progress import SILENT, Counter, Progress
from selfsent.scorers.lexical import LexicalScorer
from selfsent.scorers.load_scorer import Scorer
from selfsent.stats import logistic, senteval
from selfsent.stats.logistic import Features, Labels
from selfsent.stats.metrics import average, f1, mean
from selfsent.stats.resampling import Floats

PENALTIES = np.array([1e-5, 1e-4, 1e-3, 1e-2])
FOLDS = 10
SEED = 1111
STEPS, TOLERANCE = 1000, 1e-4  # of the classifier for sparse rows

Classifier = Literal["exact", "senteval"]
CLASSIFIERS: dict[Classifier, str] = {"exact": "logreg", "senteval": "senteval"}
"""Classifiers and their names in signatures."""
RowSets = Sequence[Labels]


def score_classification(
    name: str,
    protocol: Protocol | Literal["quick"],
    *parts: Rows,
    scorer: Scorer,
    classifier: Classifier = "exact",
    progress: Progress = SILENT,
) -> Score:
    """Accuracy of a logistic regression on frozen embeddings.

    Args:
        name: of the task.
        protocol: `nested`: 10 folds, the penalty chosen by inner folds; `folds`: chosen by folds of the training set;
            `split`: chosen on the validation set; `quick`: 10 folds, with one penalty for all, the best over them: a
            tenth of the work of `nested`.
        parts: rows of text, label and, for pairs, text2 (with features |u - v| and u * v): train, validation, test, as
            far as the protocol needs them; a single one for `nested` and `quick`.
        scorer: the model; `tfidf` has sparse rows.
        classifier: `exact`: converged; `senteval`: trained and stopped as in SentEval. `tfidf` always has the exact
            one.
        progress: receives the work done, in steps of the classifiers.
    """
    parts = tuple(map(_senteval_order, parts))
    labels = np.concatenate([np.asarray(part["label"], np.int64) for part in parts])
    columns = [column for column in ("text", "text2") if column in parts[0]]
    sides = [[text for part in parts for text in part[column]] for column in columns]
    rows = np.split(np.arange(len(labels)), np.cumsum([len(part) for part in parts])[:-1])
    tested, trains, stops = [rows[-1]], [rows[0]], [rows[1]] if protocol == "split" else None
    if protocol in ("nested", "quick"):
        tested = _folds(rows[0], labels)
        trains = [np.setdiff1d(rows[0], test) for test in tested]
    folds_of = [stops] if stops else [_folds(train, labels) for train in trains if protocol != "quick"]
    fits = len(PENALTIES) * (sum(map(len, folds_of)) or len(trains)) + len(trains) * bool(folds_of)
    advance = progress.counting("classifying", fits * logistic.STEPS)
    if isinstance(scorer, LexicalScorer) and scorer.kind == "tfidf":
        classifier, fit = "exact", partial(fit_words, word_counts(sides), labels, advance)
    else:
        scorer.remember(text for side in sides for text in side)
        features = _pair_features([scorer(side) for side in sides])
        tolerance = logistic.COARSE if protocol == "quick" else logistic.TOLERANCE
        fit = partial(_fit, features, labels, classifier, tolerance, advance)
    if protocol == "quick":
        chosen, found = _best_penalty(fit, labels, trains, tested)
    else:
        chosen = _best_penalties(fit, labels, trains, folds_of)
        found = fit(trains, chosen, stops)
    predicted = np.concatenate([g[test] for g, test in zip(found, tested, strict=True)])
    truth = labels[np.concatenate(tested)]
    folds = np.split(np.arange(len(truth)), np.cumsum([len(test) for test in tested])[:-1])
    data = parts[0].fingerprint if len(parts) == 1 else fingerprint({"part": [part.fingerprint for part in parts]})
    size = {"n": len(truth), "data": data, "pool": scorer.pooling, "seed": SEED, "v": 1}
    return measure(
        name,
        average([mean(predicted[fold] == truth[fold]) for fold in folds], folds),
        len(truth),
        signature=signature(name, "accuracy", CLASSIFIERS[classifier], protocol, **size),
        strata=folds,
        metrics={"f1": f1(truth, predicted)} if "text2" in columns else {},
        details={"l2": chosen.tolist(), "seed": SEED},
        warnings=tuple(line for part in parts for line in part.warnings),
    )


def _best_penalties(
    fit: Callable[..., Labels], labels: Labels, trains: Sequence[Labels], folds_of: Sequence[Sequence[Labels]]
) -> Floats:
    """For each training set, the penalty with the best mean accuracy over its folds; fitted jointly.

    Ties, after SentEval's rounding, go to the smaller penalty.
    """
    pairs = [(np.setdiff1d(train, fold), fold) for train, folds in zip(trains, folds_of, strict=True) for fold in folds]
    fits, folds = ([pair[part] for pair in pairs] * len(PENALTIES) for part in (0, 1))
    right = fit(fits, np.repeat(PENALTIES, len(pairs)), folds) == labels
    accuracy = np.array([row[fold].mean() for row, fold in zip(right, folds, strict=True)])
    over_folds = accuracy.reshape(len(PENALTIES), len(trains), -1).mean(2)
    return np.asarray(PENALTIES[np.round(100 * over_folds, 2).argmax(0)])


def _best_penalty(
    fit: Callable[..., Labels], labels: Labels, trains: Sequence[Labels], folds: Sequence[Labels]
) -> tuple[Floats, Labels]:
    """The one penalty with the best mean accuracy over all folds, for each of them, and its predictions.

    Penalties are tried from the largest, whose fits are the soonest done, until the accuracy falls.
    """
    best, chosen, kept = -1.0, np.empty(0), np.empty(0, np.int64)
    for penalties in (np.full(len(trains), penalty) for penalty in PENALTIES[::-1]):
        found = fit(trains, penalties, None)
        accuracy = float(np.mean([np.mean(row[fold] == labels[fold]) for row, fold in zip(found, folds, strict=True)]))
        if accuracy < best:
            break
        best, chosen, kept = accuracy, penalties, found
    return chosen, kept


def _folds(rows: Labels, labels: Labels) -> list[Labels]:
    """The test rows of SentEval's stratified folds."""
    from sklearn.model_selection import StratifiedKFold

    split = StratifiedKFold(FOLDS, shuffle=True, random_state=SEED).split(np.zeros(len(rows)), labels[rows])
    return [rows[test] for _, test in split]


def _senteval_order(rows: Rows) -> Rows:
    """Rows as SentEval feeds them: single blanks, a full stop for empty texts, sorted by length and label."""
    clean = {name: [" ".join(text.split()) or "." for text in rows[name]] for name in ("text", "text2") if name in rows}
    lengths = [[0 if text == "." else len(text.split()) for text in texts] for texts in clean.values()]
    order = np.lexsort([rows["label"], *lengths[::-1]])
    columns = {name: [values[row] for row in order] for name, values in {**clean, "label": rows["label"]}.items()}
    return Rows(rows.name, columns, rows.fingerprint, rows.warnings)


def _pair_features(sides: Sequence[Features]) -> Features:
    return sides[0] if len(sides) == 1 else np.concatenate([np.abs(sides[0] - sides[1]), sides[0] * sides[1]], axis=1)


def _fit(
    features: Features,
    labels: Labels,
    classifier: Classifier,
    tolerance: float,
    advance: Counter,
    trains: RowSets,
    penalties: Floats,
    stops: RowSets | None,
) -> Labels:
    """Train a classifier on each set of rows, and predict all rows: (classifiers, n).

    Args:
        features: (n, d).
        labels: (n,) classes from 0.
        classifier: one of `CLASSIFIERS`.
        tolerance: of `exact`.
        advance: called with the steps done since the last call.
        trains: rows of each classifier.
        penalties: (classifiers,).
        stops: rows for early stopping; by default some of the training rows.
    """
    everything, classes = np.arange(len(labels)), int(labels.max()) + 1
    masks = np.array([np.isin(everything, rows) for rows in trains])
    if classifier == "exact":
        return logistic.fit_predict(features, labels, masks, penalties, classes, tolerance, advance)
    valid = None if stops is None else np.array([np.isin(everything, rows) for rows in stops])
    found = senteval.fit_predict(features, labels, masks, penalties, classes, valid, SEED)
    advance(logistic.STEPS * len(masks))
    return found


def fit_words(
    counts: Sequence[Any],
    labels: Labels,
    advance: Counter,
    trains: Sequence[Labels],
    penalties: Floats,
    stops: object,
) -> Labels:
    """As `_fit`, on unit rows of TF-IDF; each set of rows has several penalties."""
    from sklearn.linear_model import LogisticRegression

    made = dict[bytes, Any]()
    predicted = np.zeros((len(trains), len(labels)), np.int64)
    for number, (rows, penalty) in enumerate(zip(trains, penalties, strict=True)):
        key = rows.tobytes()
        features = made[key] = made[key] if key in made else _word_features(counts, rows)
        # Two classes have a single logit, for two opposite ones.
        share = (1 if len(np.unique(labels[rows])) > 2 else 2) / (len(rows) * penalty)
        fitted = LogisticRegression(C=share, fit_intercept=False, max_iter=STEPS, tol=TOLERANCE)
        predicted[number] = fitted.fit(features[rows], labels[rows]).predict(features)
        advance(logistic.STEPS)
    return predicted


def word_counts(sides: Sequence[Sequence[str]]) -> list[Any]:
    """Word counts of each text, (n, words) sparse, for each side."""
    from scipy.sparse import csr_matrix
    from sklearn.feature_extraction.text import CountVectorizer

    counter = CountVectorizer(dtype=np.float64)
    try:
        counter.fit(text for side in sides for text in side)
    except ValueError:  # no words
        return [csr_matrix((len(side), 1)) for side in sides]
    return [counter.transform(side) for side in sides]


def _word_features(counts: Sequence[Any], rows: Labels) -> Any:
    """Features of all texts and a constant, (n, d + 1) sparse, with document frequencies of the given rows."""
    from scipy.sparse import csr_matrix, hstack, vstack
    from sklearn.feature_extraction.text import TfidfTransformer

    seen = vstack([side[rows] for side in counts])
    words, constant = np.flatnonzero(np.asarray(seen.sum(axis=0)).ravel()), csr_matrix(np.ones((counts[0].shape[0], 1)))
    if not len(words):
        return constant
    weigh = TfidfTransformer().fit(seen[:, words])
    sides = [weigh.transform(side[:, words]) for side in counts]
    parts = sides if len(sides) == 1 else [abs(sides[0] - sides[1]), sides[0].multiply(sides[1])]
    return hstack([*parts, constant], format="csr")
