"""A user's own test sets: pairs with scores, queries with relevant texts, texts with labels."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from selfsent.data.vector_files import Vectors, unit
from selfsent.display import counted
from selfsent.errors import DataError
from selfsent.evaluation.datasets.declared import Rows
from selfsent.evaluation.datasets.own_files import Clean, Column, is_number, read_rows
from selfsent.evaluation.results import SCALE, Score, bounds
from selfsent.evaluation.tasks.published import score_pairs
from selfsent.evaluation.tasks.retrieval import RetrievalTask
from selfsent.evaluation.tasks.transfer import FOLDS, Classifier, score_classification
from selfsent.progress import SILENT, Progress
from selfsent.scorers.load_scorer import Scorer
from selfsent.stats.logistic import Labels
from selfsent.stats.metrics import mean
from selfsent.stats.resampling import Floats

BLOCK = 256
TIE = 1e-6
PAIRS, RELEVANCE, LABELS = ("sentence1", "sentence2", "score"), ("query", "text"), ("text", "label")
DRAWS, ROWS, BATCH, SEED = 10, 16_384, 512, 42
"""k-means: number of draws, rows per draw, batch size and seed."""


def read_pairs(path: str | Path, columns: Sequence[Column] | None = None, clean: Clean = None) -> Rows:
    """Pairs with scores; the file has text, text, score.

    Args:
        path: see `read_rows`.
        columns: their names in the file, if not sentence1, sentence2, score.
        clean: see `read_rows`.

    Raises:
        DataError: the file cannot be read, a score is no number, or all are equal.
    """
    rows = read_rows(Path(path), PAIRS, columns, clean)
    if bad := [value for value in rows["score"] if not is_number(value)]:
        raise DataError(f"{path}: the score {bad[0]!r} is no number")
    scores = list(map(float, rows["score"]))
    if len(set(scores)) < 2:
        raise DataError(f"{path}: all scores are {scores[0]:g}: they must differ")
    return replace(rows, columns={**rows.columns, "score": scores})


def read_relevance(path: str | Path, columns: Sequence[Column] | None = None, clean: Clean = None) -> Rows:
    """Queries with relevant texts; the file has query, relevant text. A query may have several lines.

    Lines with query equal to text are dropped, as queries are excluded from the texts to search.

    Args:
        path: see `read_rows`.
        columns: their names in the file, if not query, text.
        clean: see `read_rows`.

    Raises:
        DataError: the file cannot be read, or no query has another text.
    """
    rows = read_rows(Path(path), RELEVANCE, columns, clean)
    kept = [row for row, (query, text) in enumerate(zip(rows["query"], rows["text"], strict=True)) if query != text]
    if not kept:
        raise DataError(f"{path}: the text of each line is its query itself: give the texts that answer the queries")
    return replace(rows, columns={name: [values[row] for row in kept] for name, values in rows.columns.items()})


def read_labels(path: str | Path, columns: Sequence[Column] | None = None, clean: Clean = None) -> Rows:
    """Texts with labels; the file has text, label. Labels with too few lines are left out, with a warning.

    Args:
        path: see `read_rows`.
        columns: their names in the file, if not text, label.
        clean: see `read_rows`.

    Raises:
        DataError: the file cannot be read, or fewer than two labels have enough lines for the folds.
    """
    rows = read_rows(Path(path), LABELS, columns, clean)
    names, labels, count = np.unique(rows["label"], return_inverse=True, return_counts=True)
    least = FOLDS + 2  # inner folds have nine tenths of a label's lines, and need one per fold
    common = count >= least
    if common.sum() < 2:
        rare = f"{str(names[count.argmin()])!r} has {count.min()} lines"
        raise DataError(f"{path}: cross-validation needs two labels or more with {least} lines each; {rare}")
    kept, warnings = np.flatnonzero(common[labels]), rows.warnings
    if not common.all():
        rare = ", ".join(
            f"{str(name)[:40]!r} ({lines})" for name, lines in zip(names[~common][:5], count[~common][:5], strict=True)
        )
        more = f" and {int((~common).sum()) - 5} more" if (~common).sum() > 5 else ""
        left = f"{counted(len(labels) - len(kept), 'line')} of labels with fewer than {least}: {rare}{more}"
        warnings = (*warnings, f"{rows.name}: left out {left}")
    found = {
        "text": [rows["text"][row] for row in kept],
        "label": (np.cumsum(common) - 1)[labels[kept]].tolist(),
    }
    return replace(rows, columns=found, warnings=warnings)


def score_relevance(rows: Rows, scorer: Scorer) -> Score:
    """nDCG@10 of a search among the texts of the file, the query itself left out; see `RetrievalTask`."""
    index = {text: number for number, text in enumerate(dict.fromkeys(rows["text"]))}
    answers: dict[str, dict[int, float]] = {}
    for query, text in zip(rows["query"], rows["text"], strict=True):
        answers.setdefault(query, {})[index[text]] = 1.0
    itself = [index.get(query, -1) for query in answers]  # in a file of duplicates every text is also a query
    task = RetrievalTask(rows.name, [*answers], [*index], [*answers.values()], itself=itself, warnings=rows.warnings)
    return task.score(scorer)


def score_labels(
    rows: Rows,
    scorer: Scorer,
    classifier: Classifier = "exact",
    progress: Progress = SILENT,
) -> Score:
    """Accuracy of a logistic regression, converged or stopped as in SentEval, in 10-fold cross-validation.

    Metrics without a classifier: accuracy of the nearest neighbour, and V-measure of k-means by MTEB's protocol; not
    for lexical models.

    Args:
        rows: texts and labels.
        scorer: the model.
        classifier: as for `score_classification`.
        progress: receives the work done.
    """
    score = score_classification(rows.name, "quick", rows, scorer=scorer, classifier=classifier, progress=progress)
    if not scorer.has_vectors:
        return score
    texts, labels = [" ".join(text.split()) for text in rows["text"]], np.asarray(rows["label"], np.int64)
    vectors = scorer(texts)
    nearest, grouped = nearest_neighbours(vectors, labels, texts), v_measures(vectors, labels)
    return replace(
        score,
        metrics={"nearest_neighbour": SCALE * float(nearest.mean()), "v_measure": SCALE * float(np.mean(grouped))},
        intervals={"nearest_neighbour": bounds(rows.name, mean(nearest), len(nearest), [np.arange(len(nearest))])},
        details={**score.details, "v_measures": [SCALE * each for each in grouped]},
    )


def nearest_neighbours(vectors: Vectors, labels: Labels, texts: Sequence[str], block_rows: int = BLOCK) -> Floats:
    """Whether the nearest row by cosine has the same label: (n,), averaged over ties.

    Rows with the same text are excluded: they would find each other with any vectors.

    Args:
        vectors: (n, d).
        labels: (n,).
        texts: (n,).
        block_rows: rows compared at once.
    """
    rows, right = unit(vectors), np.zeros(len(vectors))
    text = np.unique(np.asarray(texts, dtype=object), return_inverse=True)[1]
    for start in range(0, len(rows), block_rows):
        block = slice(start, start + block_rows)
        cosine = np.where(text[block, None] == text, -np.inf, rows[block] @ rows.T)
        best = cosine.max(1, keepdims=True)
        nearest = (cosine >= best - TIE) & np.isfinite(best)
        same = labels[block, None] == labels
        right[block] = (nearest & same).sum(1) / np.maximum(nearest.sum(1), 1)
    return right


def v_measures(vectors: Vectors, labels: Labels, draws: int = DRAWS, drawn_rows: int = ROWS) -> list[float]:
    """The V-measure of each clustering, in 0 to 1.

    k-means follows MTEB (Muennighoff et al., 2023, arXiv:2210.07316; version 2 of its protocol): ten times, rows are
    drawn with replacement, clustered by mini-batch k-means into as many groups as labels, and compared with the labels
    by the V-measure. MTEB first samples 4 % of its large sets; here all rows may be drawn.

    Args:
        vectors: (n, d), not normalised.
        labels: (n,).
        draws: number of clusterings.
        drawn_rows: rows of each.
    """
    from sklearn.cluster import MiniBatchKMeans
    from sklearn.metrics import v_measure_score

    draw, found = random.Random(SEED), list[float]()
    for _ in range(draws):
        rows = np.array(draw.choices(range(len(labels)), k=drawn_rows))
        groups = MiniBatchKMeans(len(np.unique(labels)), batch_size=BATCH, n_init=1, random_state=SEED)
        found.append(float(v_measure_score(labels[rows], groups.fit_predict(vectors[rows]))))
    return found


OWN: dict[str, tuple[Callable[..., Rows], Callable[..., Score]]] = {
    "pairs": (read_pairs, score_pairs),
    "relevance": (read_relevance, score_relevance),
    "labels": (read_labels, score_labels),
}
"""Reader and scorer of each kind of file. Files are read first, as a model may take minutes."""
