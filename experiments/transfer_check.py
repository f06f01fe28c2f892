"""The suite `transfer` against two independent checks: scikit-learn, and SentEval's own classifier written again.

    python experiments/transfer_check.py MODEL --data DIR --output docs/results/quality/transfer_check.json

MODEL is a sentence-transformers directory, or a `.parquet` file of texts and vectors (`selfsent evaluate --vectors`).
`exact` stands beside scikit-learn, `senteval` beside SentEval's classifier; the last two are means over seeds, of which
hang folds, first weights, batches and rows held out.

* scikit-learn: its logistic regression, folds and grid search, one fit after the other. SentEval penalises the mean
  loss by l/2 |w|^2, so C is 1 / (n l). Rows stay in the order of the files, so folds are other ones than SentEval's.
* SentEval's classifier (Conneau and Kiela, 2018; `default` settings of the papers), one fit after the other: a linear
  layer trained with Adam (rate 1e-3) in batches of 64, the L2 penalty as weight decay. A validation set is looked at
  after every 4 epochs; training stops when it was no better a sixth time, or after 200 epochs, and the best weights
  count. While penalties are chosen, that is the fold tested on; in the last fit, 5 % of the training rows; or the
  validation set, where the task has one. Rows are sorted by length first.

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
from sklearn.model_selection import GridSearchCV, PredefinedSplit, StratifiedKFold, cross_val_score

from selfsent.evaluation.datasets.declared import Store
from selfsent.evaluation.encoders import as_encoder
from selfsent.evaluation.tasks.transfer import TRANSFER, score_transfer
from selfsent.files import write_json
from selfsent.training.run_directory import versions

PENALTIES = (1e-5, 1e-4, 1e-3, 1e-2)
SEED = 1111
BATCH, RATE, EPOCHS, EPOCH_SIZE, TENACITY = 64, 1e-3, 200, 4, 5
Set = tuple[np.ndarray, np.ndarray]
"""Features (n, d) and labels (n,)."""


def folds(seed: int = SEED) -> StratifiedKFold:
    """SentEval's folds."""
    return StratifiedKFold(10, shuffle=True, random_state=seed)


# scikit-learn


def search(rows: float, by: Any = None, refit: bool = True) -> GridSearchCV:
    """Logistic regression that chooses its penalty by folds; `rows` are those it is fitted on."""
    grid = {"C": [1 / (rows * penalty) for penalty in PENALTIES]}
    return GridSearchCV(LogisticRegression(max_iter=2000), grid, cv=by or folds(), refit=refit)


def scikit_learn(train: Set, test: Set | None, valid: Set | None) -> float:
    """Accuracy on the test set, or without one over nested folds."""
    x, y = train
    if test is None:
        return float(cross_val_score(search(0.81 * len(y)), x, y, cv=folds()).mean())
    if valid is None:
        return float(search(0.9 * len(y)).fit(x, y).score(*test))
    both = np.concatenate([x, valid[0]]), np.concatenate([y, valid[1]])
    beside = PredefinedSplit(np.repeat([-1, 0], [len(y), len(valid[1])]))
    chosen = search(len(y), beside, refit=False).fit(*both).best_params_
    return float(LogisticRegression(max_iter=2000, **chosen).fit(x, y).score(*test))


# SentEval's classifier


def classifier(train: Set, penalty: float, seed: int, valid: Set | None = None) -> np.ndarray:
    """Weights (d + 1, classes) of SentEval's `MLP` without a hidden layer, trained by Adam and stopped early."""
    draw = np.random.default_rng(seed)
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


def best_penalty(train: Set, seed: int, valid: Set | None = None) -> float:
    """The penalty with the best accuracy, beside or over 10 folds; what is tested on also stops the training."""
    x, y = train
    means = []
    for penalty in PENALTIES:
        inner = [((x[a], y[a]), (x[b], y[b])) for a, b in folds(seed).split(x, y)]
        tested = inner if valid is None else [(train, valid)]
        means.append(np.mean([accuracy(classifier(fit, penalty, seed, test), test) for fit, test in tested]))
    return PENALTIES[int(np.argmax(np.round(100 * np.array(means), 2)))]


def senteval(train: Set, test: Set | None, valid: Set | None, seed: int) -> float:
    """Accuracy on the test set, or without one over nested folds."""
    if test is not None:
        return accuracy(classifier(train, best_penalty(train, seed, valid), seed, valid), test)
    x, y = train
    parts = [((x[a], y[a]), (x[b], y[b])) for a, b in folds(seed).split(x, y)]
    return float(np.mean([accuracy(classifier(fit, best_penalty(fit, seed), seed), held) for fit, held in parts]))


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


def sets(folder: Path, encode: Callable[[list[str]], np.ndarray], by_length: bool) -> list[Set | None]:
    """Training, test and validation set of a task, as far as it has them."""
    paths = [folder / f"{name}.parquet" for name in ("train", "test", "validation")]
    if not paths[0].exists():
        return [load(folder / "all.parquet", encode, by_length), None, None]
    return [load(path, encode, by_length) if path.exists() else None for path in paths]


def check(task: str, options: argparse.Namespace, encode: Any, ours: Any) -> dict[str, Any]:
    """All scores of one task, and what each took."""
    seeds = [SEED, *range(1, options.seeds)]
    protocol = next(each for each in TRANSFER if each.name == task)
    store, folder = Store(options.data), options.data / "SentEval" / task.upper()
    any_order, by_length = (sets(folder, encode, sort) for sort in (False, True))
    sides: dict[str, Callable[[int], float]] = {
        "exact": lambda seed: score_transfer(protocol, ours, store, seed).score,
        "scikit-learn": lambda seed: 100 * scikit_learn(*any_order),
        "senteval": lambda seed: score_transfer(protocol, ours, store, seed, "senteval").score,
        "SentEval": lambda seed: 100 * senteval(*by_length, seed),
    }
    found: dict[str, Any] = {"seeds": seeds, "scores": {}, "by_seed": {}, "cpu_seconds": {}}
    for name, score in sides.items():
        start = time.process_time()
        found["by_seed"][name] = [score(seed) for seed in (seeds if name.lower() == "senteval" else seeds[:1])]
        found["scores"][name] = float(np.mean(found["by_seed"][name]))
        found["cpu_seconds"][name] = (time.process_time() - start) / len(found["by_seed"][name])
    return found


def main() -> None:
    """Print the scores of each task, and write them."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("model")
    parser.add_argument("--data", type=Path, required=True, help="mirror of the data sets")
    parser.add_argument("--tasks", default="mrpc,sst2,cr", help="of cr, mr, subj, mpqa, sst2, mrpc and trec")
    parser.add_argument("--seeds", type=int, default=3, help="of the classifiers that are stopped early (default: 3)")
    parser.add_argument("--output", type=Path, help="write everything as JSON; tasks of an earlier call stay")
    options = parser.parse_args()
    encode, ours = encoder(options.model), as_encoder(options.model)
    report: dict[str, Any] = {"model": Path(options.model).stem, "versions": versions(), "tasks": {}}
    if options.output and options.output.is_file():
        report["tasks"] |= json.loads(options.output.read_text(encoding="utf-8"))["tasks"]
    for task in options.tasks.split(","):
        found = report["tasks"][task] = check(task, options, encode, ours)
        seconds = ", ".join(f"{value:.0f}" for value in found["cpu_seconds"].values())
        print(f"{task}: " + ", ".join(f"{k} {v:.2f}" for k, v in found["scores"].items()) + f"; seconds {seconds}")
        if options.output:
            write_json(options.output, report)


if __name__ == "__main__":
    main()
