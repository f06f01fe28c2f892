"""SentEval's classification tasks (Conneau and Kiela, 2018): logistic regression on frozen embeddings.

The L2 penalty is chosen on training data alone: by inner folds, by folds of the training set, or on the validation
set, as SentEval does for each task; folds, order of rows and grid are SentEval's. So is the classifier `senteval`,
which stops Adam early; the classifier `exact` goes on to the minimum. Penalties are per mean loss, as under PyTorch
0.4.1 and newer; older versions summed the loss over a batch of 64 and so penalised 64 times less.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np

from selfsent.evaluation.datasets.declared import DataSet, PublisherReader, Rows, Store, fingerprint
from selfsent.evaluation.datasets.publishers import read_trec
from selfsent.evaluation.encoders import Encoder
from selfsent.evaluation.lexical import LexicalEncoder
from selfsent.evaluation.results import Score, measure, signature
from selfsent.evaluation.stats.logistic import Features, Labels, Masks, fit_predict
from selfsent.evaluation.stats.metrics import average, f1, mean
from selfsent.evaluation.stats.resampling import Floats, Statistic
from selfsent.evaluation.tasks import senteval
from selfsent.evaluation.tasks.word_probe import PROBED, WordProblem

VERSION = 1
PENALTIES = np.array([1e-5, 1e-4, 1e-3, 1e-2])
FOLDS = 10
SEED = 1111
SENTEVAL = "Conneau and Kiela, 2018. arXiv:1803.05449"

Protocol = Literal["nested", "folds", "split"]
Classifier = Literal["exact", "senteval"]
CLASSIFIERS: dict[Classifier, str] = {"exact": "logreg", "senteval": "senteval"}
"""What they are called in signatures."""


@dataclass(frozen=True)
class Transfer:
    """A classification task.

    Args:
        name: of the task.
        protocol: `nested`: 10 folds, the penalty chosen by inner folds; `folds`: chosen by folds of the training set;
            `split`: chosen on the validation set.
        parts: its data sets, in the order train, validation, test; one alone for `nested`.
        pairs: whether a row is two texts; features are then |u - v| and u * v.
    """

    name: str
    protocol: Protocol
    parts: tuple[DataSet, ...]
    pairs: bool = False


def _part(
    name: str, split: str, rows: int, *hashes: str, pairs: bool = False, publisher: PublisherReader | None = None
) -> DataSet:
    return DataSet(
        name.lower() if split == "all" else f"{name.lower()}-{split}",
        f"SentEval/{name}",
        rows,
        split=split,
        columns={"text": "text", "label": "label"} | ({"text2": "text2"} if pairs else {}),
        hub=False,
        publisher=publisher,
        hashes=hashes,
        citation=SENTEVAL,
    )


_SST2 = (
    _part("SST2", "train", 67349, "699300"),
    _part("SST2", "validation", 872, "b51e20"),
    _part("SST2", "test", 1821, "26b013"),
)
_TREC = (
    _part("TREC", "train", 5452, publisher=partial(read_trec, name="train_5500.label")),
    _part("TREC", "test", 500, publisher=partial(read_trec, name="TREC_10.label")),
)
_MRPC = (
    _part("MRPC", "train", 4076, "867068", pairs=True),
    _part("MRPC", "test", 1725, "0300a8", pairs=True),
)

TRANSFER = (
    Transfer("mr", "nested", (_part("MR", "all", 10662, "e68636"),)),
    Transfer("cr", "nested", (_part("CR", "all", 3775, "e90b3d"),)),
    Transfer("subj", "nested", (_part("SUBJ", "all", 10000, "6e41b7"),)),
    Transfer("mpqa", "nested", (_part("MPQA", "all", 10606, "9d3df0"),)),
    Transfer("sst2", "split", _SST2),
    Transfer("trec", "folds", _TREC),
    Transfer("mrpc", "folds", _MRPC, pairs=True),
)


def score_transfer(
    task: Transfer, encoder: Encoder, store: Store, seed: int = SEED, classifier: Classifier = "exact"
) -> Score:
    """Accuracy of a logistic regression on frozen embeddings.

    Args:
        task: one of `TRANSFER`.
        encoder: the model. Of `tfidf` and `counts` the sparse rows are used, see `WordProblem`.
        store: where data sets come from.
        seed: of the folds, and of `senteval`.
        classifier: `exact`: the minimum; `senteval`: trained and stopped as SentEval does. `tfidf` and `counts` always
            have the exact one.
    """
    return score_rows(task, encoder, [store.load(part) for part in task.parts], seed, classifier)


def score_rows(
    task: Transfer,
    encoder: Encoder,
    rows_of_parts: Sequence[Rows],
    seed: int = SEED,
    classifier: Classifier = "exact",
) -> Score:
    """Like `score_transfer`, on rows at hand.

    Args:
        task: its protocol is followed; its data sets are not read.
        encoder: the model.
        rows_of_parts: text, label and, for pairs, text2: train, validation, test, as the protocol wants them.
        seed: of the folds, and of `senteval`.
        classifier: see `score_transfer`.
    """
    parts = [_senteval_order(rows) for rows in rows_of_parts]
    problem = _problem(parts, encoder, seed, classifier)
    ends = np.cumsum([len(part) for part in parts])
    rows = [np.arange(end - len(part), end) for part, end in zip(parts, ends, strict=True)]
    if task.protocol == "nested":
        tested, predicted, chosen = _nested(problem)
    else:
        split = task.protocol == "split"
        folds = [rows[1]] if split else _folds(rows[0], problem.labels, seed)
        tested = [rows[-1]]
        chosen = _best_penalties(problem, [rows[0]], [folds])
        predicted = problem.fit([rows[0]], chosen, [rows[1]] if split else None)[0]
    details = {"l2": chosen.tolist(), "seed": seed}
    return _score(task, encoder, parts, problem, predicted, tested, details)


@dataclass(frozen=True)
class _Problem:
    """Features (n, d) and labels (n,) of all rows, and how classifiers are trained on some of them."""

    features: Features
    labels: Labels
    seed: int
    classifier: Classifier

    def fit(self, trains: Sequence[Labels], penalties: Floats, stops: Sequence[Labels] | None) -> Labels:
        """Train a classifier on each set of rows, and predict all rows: (classifiers, n).

        Args:
            trains: rows of each classifier.
            penalties: (classifiers,).
            stops: the rows that say when to stop, where that is early; without them, some of the training rows.
        """
        masks, classes = _masks(len(self.labels), trains), int(self.labels.max()) + 1
        if self.classifier == "exact":
            return fit_predict(self.features, self.labels, masks, penalties, classes)
        valid = None if stops is None else _masks(len(self.labels), stops)
        return senteval.fit_predict(self.features, self.labels, masks, penalties, classes, valid, self.seed)


def _problem(parts: Sequence[Rows], encoder: Encoder, seed: int, classifier: Classifier) -> _Problem | WordProblem:
    labels = np.concatenate([np.asarray(part["label"], np.int64) for part in parts])
    columns = [name for name in ("text", "text2") if name in parts[0]]
    if isinstance(encoder, LexicalEncoder) and encoder.kind in PROBED:
        sides = [[text for part in parts for text in part[name]] for name in columns]
        return WordProblem(encoder.kind, sides, labels, seed)
    encoder.remember(text for part in parts for name in columns for text in part[name])
    return _Problem(np.concatenate([_features(part, encoder) for part in parts]), labels, seed, classifier)


def _nested(problem: _Problem | WordProblem) -> tuple[list[Labels], Labels, Floats]:
    everything = np.arange(len(problem.labels))
    tested = _folds(everything, problem.labels, problem.seed)
    trained = [np.setdiff1d(everything, test) for test in tested]
    chosen = _best_penalties(problem, trained, [_folds(train, problem.labels, problem.seed) for train in trained])
    predicted = np.zeros_like(problem.labels)
    for test, guess in zip(tested, problem.fit(trained, chosen, None), strict=True):
        predicted[test] = guess[test]
    return tested, predicted, chosen


def _best_penalties(
    problem: _Problem | WordProblem, trains: Sequence[Labels], folds_of: Sequence[Sequence[Labels]]
) -> Floats:
    """For each training set, the penalty with the best mean accuracy over its folds; all are fitted together.

    Of equals, after SentEval's rounding, the smaller penalty.
    """
    pairs = [(np.setdiff1d(train, fold), fold) for train, folds in zip(trains, folds_of, strict=True) for fold in folds]
    fits, folds = ([pair[part] for pair in pairs] * len(PENALTIES) for part in (0, 1))
    right = problem.fit(fits, np.repeat(PENALTIES, len(pairs)), folds) == problem.labels
    accuracy = np.array([row[fold].mean() for row, fold in zip(right, folds, strict=True)])
    counts = [len(folds) for folds in folds_of]
    starts = np.cumsum([0, *counts])[:-1]
    over_folds = np.add.reduceat(accuracy.reshape(len(PENALTIES), -1), starts, axis=1) / counts
    return np.asarray(PENALTIES[np.round(100 * over_folds, 2).argmax(0)])


def _folds(rows: Labels, labels: Labels, seed: int) -> list[Labels]:
    """The test rows of SentEval's stratified folds."""
    from sklearn.model_selection import StratifiedKFold

    split = StratifiedKFold(FOLDS, shuffle=True, random_state=seed).split(np.zeros(len(rows)), labels[rows])
    return [rows[test] for _, test in split]


def _masks(n: int, groups: Sequence[Labels]) -> Masks:
    masks = np.zeros((len(groups), n), np.bool_)
    for mask, rows in zip(masks, groups, strict=True):
        mask[rows] = True
    return masks


def _senteval_order(rows: Rows) -> Rows:
    """Rows as SentEval feeds them: blanks made single, empty texts a full stop, sorted by length and label."""
    clean = {name: [" ".join(text.split()) or "." for text in rows[name]] for name in ("text", "text2") if name in rows}
    lengths = [[0 if text == "." else len(text.split()) for text in texts] for texts in clean.values()]
    order = np.lexsort([rows["label"], *lengths[::-1]])
    columns = {name: [values[row] for row in order] for name, values in {**clean, "label": rows["label"]}.items()}
    return Rows(rows.name, columns, rows.fingerprint, rows.warnings)


def _features(rows: Rows, encoder: Encoder) -> Features:
    if "text2" not in rows:
        return encoder(rows["text"])
    left, right = encoder(rows["text"]), encoder(rows["text2"])
    return np.concatenate([np.abs(left - right), left * right], axis=1)


def _score(
    task: Transfer,
    encoder: Encoder,
    parts: Sequence[Rows],
    problem: _Problem | WordProblem,
    predicted: Labels,
    tested: Sequence[Labels],
    details: dict[str, object],
) -> Score:
    items = np.concatenate(tested)
    folds = np.split(np.arange(len(items)), np.cumsum([len(rows) for rows in tested])[:-1])
    labels = problem.labels
    right = (predicted == labels)[items]
    beside: dict[str, Statistic] = {"f1": f1(labels[items], predicted[items])} if task.pairs else {}
    data = parts[0].fingerprint if len(parts) == 1 else fingerprint({"part": [part.fingerprint for part in parts]})
    size = {"n": len(items), "data": data, "pool": encoder.pooling, "seed": details["seed"], "v": VERSION}
    return measure(
        task.name,
        average([mean(right[fold]) for fold in folds], folds),
        len(items),
        signature=signature(task.name, "accuracy", CLASSIFIERS[problem.classifier], task.protocol, **size),
        strata=folds,
        metrics=beside,
        details=details,
        warnings=tuple(line for part in parts for line in part.warnings),
    )
