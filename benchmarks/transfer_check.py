"""The suite `transfer` against two independent checks: scikit-learn, and SentEval's own classifier written again.

    python benchmarks/transfer_check.py MODEL --data DIR --output docs/results/transfer_check.json

MODEL is a sentence-transformers directory, or a `.parquet` file of texts and vectors (`selfsent evaluate --vectors`).

* scikit-learn: its logistic regression, folds and grid search, one fit after the other. SentEval penalises the mean
  loss by l/2 |w|^2, so C is 1 / (n l). Rows stay in the order of the files, so folds are other ones than SentEval's.
* SentEval's classifier (Conneau and Kiela, 2018; `default` settings of the papers): one linear layer trained with Adam
  (rate 1e-3) in batches of 64, the L2 penalty as weight decay. A validation set is looked at after every 4 epochs;
  training stops when it was no better a sixth time, or after 200 epochs, and the best weights count. While penalties
  are chosen, that is the fold tested on; in the last fit, 5 % of the training rows. Rows are sorted by length first.

Nothing is shared with selfsent but the data.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_score

import selfsent

PENALTIES = (1e-5, 1e-4, 1e-3, 1e-2)
SEED = 1111
BATCH, RATE, EPOCHS, EPOCH_SIZE, TENACITY = 64, 1e-3, 200, 4, 5
Set = tuple[np.ndarray, np.ndarray]
"""Features (n, d) and labels (n,)."""


def folds() -> StratifiedKFold:
    """SentEval's folds."""
    return StratifiedKFold(10, shuffle=True, random_state=SEED)


# scikit-learn


def search(rows: float) -> GridSearchCV:
    """Logistic regression that chooses its penalty by folds; `rows` are those it is fitted on."""
    grid = {"C": [1 / (rows * penalty) for penalty in PENALTIES]}
    return GridSearchCV(LogisticRegression(max_iter=2000), grid, cv=folds())


def scikit_learn(train: Set, test: Set | None) -> float:
    """Accuracy on the test set, or without one over nested folds."""
    x, y = train
    if test is None:
        return float(cross_val_score(search(0.81 * len(y)), x, y, cv=folds()).mean())
    return float(search(0.9 * len(y)).fit(x, y).score(*test))


# SentEval's classifier


def classifier(train: Set, penalty: float, valid: Set | None = None) -> np.ndarray:
    """Weights (d + 1, classes) of SentEval's `MLP` without a hidden layer, trained by Adam and stopped early."""
    draw = np.random.default_rng(SEED)
    x, y = constant_added(train[0]), np.eye(int(train[1].max()) + 1, dtype=np.float32)[train[1]]
    if valid is None:
        order = draw.permutation(len(y))
        held, used = np.split(order, [int(0.05 * len(y))])
        valid, x, y = (train[0][held], train[1][held]), x[used], y[used]
    bound = 1 / np.sqrt(x.shape[1] - 1)
    weights = draw.uniform(-bound, bound, (x.shape[1], y.shape[1])).astype(np.float32)
    first, second, steps = np.zeros_like(weights), np.zeros_like(weights), 0
    best, best_weights, stale = -1.0, weights, 0
    for _ in range(EPOCHS // EPOCH_SIZE + 1):
        for _ in range(EPOCH_SIZE):
            order = draw.permutation(len(y))
            for start in range(0, len(y), BATCH):
                rows = order[start : start + BATCH]
                logits = x[rows] @ weights
                exponent = np.exp(logits - logits.max(1, keepdims=True))
                error = exponent / exponent.sum(1, keepdims=True) - y[rows]
                gradient = x[rows].T @ error / len(rows) + penalty * weights
                steps += 1
                first = 0.9 * first + 0.1 * gradient
                second = 0.999 * second + 0.001 * gradient**2
                size = np.sqrt(second / (1 - 0.999**steps)) + 1e-8
                weights = weights - RATE * first / (1 - 0.9**steps) / size
        right = accuracy(weights, valid)
        if right > best:
            best, best_weights = right, weights
        elif stale == TENACITY:
            break
        else:
            stale += 1
    return best_weights


def constant_added(x: np.ndarray) -> np.ndarray:
    """Features and a one, whose weight is the bias."""
    return np.c_[x, np.ones(len(x), np.float32)]


def accuracy(weights: np.ndarray, data: Set) -> float:
    """The share of rows of which the class is found."""
    return float(((constant_added(data[0]) @ weights).argmax(1) == data[1]).mean())


def best_penalty(train: Set) -> float:
    """The penalty with the best mean accuracy over 10 folds; what a fold is tested on also stops its training."""
    x, y = train
    means = []
    for penalty in PENALTIES:
        tested = [((x[a], y[a]), (x[b], y[b])) for a, b in folds().split(x, y)]
        means.append(np.mean([accuracy(classifier(fit, penalty, test), test) for fit, test in tested]))
    return PENALTIES[int(np.argmax(np.round(100 * np.array(means), 2)))]


def senteval(train: Set, test: Set | None) -> float:
    """Accuracy on the test set, or without one over nested folds."""
    if test is not None:
        return accuracy(classifier(train, best_penalty(train)), test)
    x, y = train
    parts = [((x[a], y[a]), (x[b], y[b])) for a, b in folds().split(x, y)]
    return float(np.mean([accuracy(classifier(fit, best_penalty(fit)), held) for fit, held in parts]))


# The tasks


def encoder(model: str) -> Callable[[list[str]], np.ndarray]:
    """Texts to vectors: looked up in a file, or by sentence-transformers."""
    if model.endswith(".parquet"):
        table = pq.read_table(model)
        vectors = np.stack(table["embedding"].to_numpy()).astype(np.float32)
        row_of = {text: row for row, text in enumerate(table["text"].to_pylist())}
        return lambda texts: vectors[[row_of[text] for text in texts]]
    from sentence_transformers import SentenceTransformer

    loaded = SentenceTransformer(model, device="cpu")
    return lambda texts: loaded.encode(texts)


def load(path: Path, encode: Callable[[list[str]], np.ndarray], by_length: bool) -> Set:
    """Features and labels of a file of the mirror; pairs are |u - v| and u * v."""
    table = pq.read_table(path)
    columns = [name for name in ("text", "text2") if name in table.column_names]
    texts = [[" ".join(text.split()) or "." for text in table[name].to_pylist()] for name in columns]
    labels = np.array(table["label"])
    if by_length:
        keys = [[0 if text == "." else len(text.split()) for text in column] for column in texts]
        order = np.lexsort([labels, *keys[::-1]])
        texts, labels = [[column[row] for row in order] for column in texts], labels[order]
    left = encode(texts[0])
    if len(texts) == 1:
        return left, labels
    right = encode(texts[1])
    return np.concatenate([np.abs(left - right), left * right], axis=1), labels


def main() -> None:
    """Print the scores of each task, and write them."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("model")
    parser.add_argument("--data", type=Path, required=True, help="mirror of the data sets")
    parser.add_argument("--tasks", default="cr,mpqa,mrpc", help="of cr, mr, subj, mpqa, mrpc and trec")
    parser.add_argument("--output", type=Path, help="write everything as JSON")
    options = parser.parse_args()
    encode, tasks = encoder(options.model), options.tasks.split(",")
    report: dict[str, Any] = {"model": Path(options.model).stem, "tasks": {}}
    print(f"{'task':6} {'selfsent':>9} {'scikit-learn':>13} {'SentEval':>9}   seconds of each", flush=True)
    for task in tasks:
        folder = options.data / "SentEval" / task.upper()
        one = (folder / "all.parquet").exists()

        def part(name: str, by_length: bool, folder: Path = folder) -> Set:
            return load(folder / f"{name}.parquet", encode, by_length)

        scores, seconds = {}, {}
        start = time.process_time()
        result = selfsent.evaluate(options.model, task=task, data=options.data).scores[task]
        scores["selfsent"], seconds["selfsent"] = result.score, time.process_time() - start
        for name, check in (("scikit-learn", scikit_learn), ("SentEval", senteval)):
            by_length = name == "SentEval"
            train = part("all" if one else "train", by_length)
            test = None if one else part("test", by_length)
            start = time.process_time()
            scores[name], seconds[name] = 100 * check(train, test), time.process_time() - start
        report["tasks"][task] = {"scores": scores, "cpu_seconds": seconds, "selfsent": result.to_json()}
        figures = f"{scores['selfsent']:9.2f} {scores['scikit-learn']:13.2f} {scores['SentEval']:9.2f}"
        print(f"{task:6} {figures}   " + ", ".join(f"{value:.0f}" for value in seconds.values()), flush=True)
        if options.output:
            options.output.write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
