"""The suite `transfer` against scikit-learn: three tasks, one for each of SentEval's protocols.

    python benchmarks/transfer_check.py MODEL --data DIR

The check shares nothing with selfsent but the data: vectors from sentence-transformers, scikit-learn's logistic
regression, its folds and its grid search. SentEval penalises the mean loss by l/2 |w|^2, so C is 1 / (n l).
Folds differ (SentEval sorts the rows first), so scores agree within a few tenths, not exactly.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from sentence_transformers import SentenceTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, PredefinedSplit, StratifiedKFold, cross_val_score

import selfsent

PENALTIES = np.array([1e-5, 1e-4, 1e-3, 1e-2])


def search(folds: object, rows: float) -> GridSearchCV:
    """Logistic regression that chooses its penalty by folds; `rows` are those it is fitted on."""
    return GridSearchCV(LogisticRegression(max_iter=2000), {"C": 1 / (rows * PENALTIES)}, cv=folds)


def folds() -> StratifiedKFold:
    """SentEval's folds."""
    return StratifiedKFold(10, shuffle=True, random_state=1111)


def features(model: SentenceTransformer, table: pa.Table) -> np.ndarray:
    """Vectors of texts, or |u - v| and u * v of pairs."""
    left = model.encode(table["text"].to_pylist())
    if "text2" not in table.column_names:
        return left
    right = model.encode(table["text2"].to_pylist())
    return np.concatenate([np.abs(left - right), left * right], axis=1)


def main() -> None:
    """Print both scores of each task, and their difference."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("model", help="a sentence-transformers directory")
    parser.add_argument("--data", type=Path, required=True, help="mirror of the data sets")
    options = parser.parse_args()
    model = SentenceTransformer(options.model, device="cpu")

    def load(task: str, split: str) -> tuple[np.ndarray, np.ndarray]:
        table = pq.read_table(options.data / "SentEval" / task / f"{split}.parquet")
        return features(model, table), np.array(table["label"])

    x, y = load("CR", "all")
    theirs = {"cr": cross_val_score(search(folds(), 0.81 * len(y)), x, y, cv=folds()).mean()}
    (x, y), test = load("MRPC", "train"), load("MRPC", "test")
    theirs["mrpc"] = search(folds(), 0.9 * len(y)).fit(x, y).score(*test)
    (x, y), (x_dev, y_dev), test = load("SST2", "train"), load("SST2", "validation"), load("SST2", "test")
    fold = np.r_[np.full(len(y), -1), np.zeros(len(y_dev))]
    chosen = search(PredefinedSplit(fold), len(y)).set_params(refit=False)
    chosen.fit(np.concatenate([x, x_dev]), np.r_[y, y_dev])
    theirs["sst2"] = LogisticRegression(max_iter=2000, **chosen.best_params_).fit(x, y).score(*test)

    ours = selfsent.evaluate(options.model, task=list(theirs), data=options.data).scores
    print(f"{'task':6} {'selfsent':>9} {'scikit-learn':>13} {'difference':>11}")
    for task, accuracy in theirs.items():
        print(f"{task:6} {ours[task].score:9.2f} {100 * accuracy:13.2f} {ours[task].score - 100 * accuracy:+11.2f}")


if __name__ == "__main__":
    main()
