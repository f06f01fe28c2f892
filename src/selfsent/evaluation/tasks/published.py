"""Published tasks without a classifier: load the data sets, encode the texts, and compute the protocol's metric.

***Pairs.** The score is the correlation with human judgements. `all` is that of STS: one Spearman over all pairs of a
year, as in SBERT, SimCSE and later papers. SentEval's `mean` and `wmean` (one correlation per sub-set, averaged
equally or by size) are further metrics if sub-sets are known. Argument similarity (AFS, UKP Aspect) averages
over topics, as cosines are not comparable between topics; supervised models are scored by cross-validation over pairs
(10-fold; optimistic, because sentences recur in several pairs) or over topics.

**USEB** (Wang, Reimers and Gurevych, 2021): titles and single sentences. Ties, skipped queries and denominators follow
the authors' evaluators (github.com/UKPLab/useb), as mean average precision is undefined without them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from selfsent.data.vector_files import inner
from selfsent.errors import DataError
from selfsent.evaluation.datasets.declared import DataSet, Rows, Store
from selfsent.evaluation.results import Score, bounds, measure, signature
from selfsent.scorers.load_scorer import Scorer, load_scorer
from selfsent.stats.metrics import average, average_precision, mean, parts_of, pearson, spearman
from selfsent.stats.resampling import Floats, Statistic, point

FOLDS, SEED = 10, 1
DEPTH = 100  # posts retrieved for a CQADupStack query
NEGATIVE, POSITIVE = 2, 4
"""TwitterPara's votes: up to 2 is no paraphrase, 4 or more is one, 3 is debatable and dropped."""
BLOCK = 1 << 24  # similarities held at once

Split = Literal["10-fold", "cross-topic"]
Trainer = Callable[[list[tuple[str, str]], list[float]], Any]
"""Pairs and scores -> a model, anything `load_scorer` takes."""
Parts = Mapping[str, NDArray[np.int64]]  # the item numbers of each part of a task


@dataclass(frozen=True)
class Task:
    """A published task.

    Args:
        datasets: to load.
        score: rows of each data set, and a scorer -> the score.
    """

    datasets: tuple[DataSet, ...]
    score: Callable[..., Score]

    def __call__(self, scorer: Scorer, store: Store, **options: Any) -> Score:
        """The score of a scorer; options as for `score`.

        Raises:
            DataError: a data set is absent or damaged.
        """
        return self.score(*map(store.load, self.datasets), scorer=scorer, **options)


def score_pairs(rows: Rows, scorer: Scorer, how: str = "all") -> Score:
    """Spearman of the similarity over all pairs, with Pearson and the averages over sub-sets.

    Args:
        rows: sentence1, sentence2, score and, if known, subset.
        scorer: the model.
        how: for the signature.
    """
    similarity, gold = _similarity(rows, scorer), np.asarray(rows["score"], np.float64)
    parts = list(parts_of(rows["subset"]).values()) if "subset" in rows else []
    each = [spearman(similarity[part], gold[part]) for part in parts]
    means = {"mean": average(each, parts), "wmean": average(each, parts, sized=True)} if len(parts) > 1 else {}
    return _scored(
        *(rows, scorer, "spearman", how, spearman(similarity, gold), len(rows)),
        metrics={"pearson": pearson(similarity, gold), **means},
        intervals={key: bounds(rows.name, statistic, len(rows), parts) for key, statistic in means.items()},
    )


def score_translated_pairs(name: str, first: Rows, second: Rows, scorer: Scorer) -> Score:
    """As `score_pairs`, with first sentences from one data set, second ones from its translation.

    Raises:
        DataError: different pairs.
    """
    if first["score"] != second["score"]:
        raise DataError(f"{second.name} does not hold the pairs of {first.name} in the same order: fetch both again")
    columns = {"sentence1": first["sentence1"], "sentence2": second["sentence2"], "score": first["score"]}
    both = Rows(name, columns, f"{first.fingerprint}+{second.fingerprint}", (*first.warnings, *second.warnings))
    return score_pairs(both, scorer, "sentence1 in English")


def score_translations(rows: Rows, scorer: Scorer) -> Score:
    """Accuracy of the nearest neighbour by cosine as translation, the mean of both directions."""
    english, other, language = rows["english"], rows["other"], rows.name.removeprefix("tatoeba-")
    there = finds_its_row(*scorer.query_document_vectors(english, other))
    back = finds_its_row(*scorer.query_document_vectors(other, english))
    return _scored(
        *(rows, scorer, "accuracy", "mean of both directions", mean((there + back) / 2), len(rows)),
        metrics={f"en to {language}": mean(there), f"{language} to en": mean(back)},
    )


def finds_its_row(queries: Any, answers: Any) -> Floats:
    """1 if the answer of the same row has the highest inner product, else 0: (n,).

    Args:
        queries: (n, d), from `Scorer.query_document_vectors`.
        answers: (n, d).
    """
    nearest = inner(queries, answers).argmax(1)
    return np.asarray(nearest == np.arange(len(nearest)), np.float64)


def score_topics(rows: Rows, scorer: Scorer) -> Score:
    """Spearman of the similarity per topic, averaged, with Pearson and each topic.

    Args:
        rows: sentence1, sentence2, score, and as subset the topic.
        scorer: the model.
    """
    return _correlation_of_parts(rows, scorer, "topic", _similarity(rows, scorer), parts_of(rows["subset"]))


def cross_validate(rows: Rows, trainer: Trainer, split: Split) -> Score:
    """Train and test a supervised model on folds of pairs or on rotations of topics; the mean over the folds.

    Args:
        rows: as for `score_topics`.
        trainer: trains a model on pairs and their scores.
        split: `10-fold` over pairs, or `cross-topic`: all topics but one for training.

    Raises:
        DataError: too few pairs or topics.
    """
    parts, similarity, scorer = folds(rows, split), np.zeros(len(rows)), None
    pairs = list(zip(rows["sentence1"], rows["sentence2"], strict=True))
    for test in parts.values():
        train = np.setdiff1d(np.arange(len(rows)), test)
        scorer = load_scorer(trainer([pairs[row] for row in train], [float(rows["score"][row]) for row in train]))
        similarity[test] = scorer.similarity(*zip(*(pairs[row] for row in test), strict=True))
    assert scorer is not None  # there are at least two folds
    return _correlation_of_parts(rows, scorer, split, similarity, parts)


def folds(rows: Rows, split: Split) -> dict[str, NDArray[np.int64]]:
    """The test rows of each fold, by name.

    Raises:
        DataError: too few pairs or topics.
    """
    if split == "cross-topic":
        topics = parts_of(rows["subset"])
        if len(topics) < 2:
            raise DataError(f"{rows.name} has {len(topics)} topic; cross-topic evaluation needs two or more")
        return topics
    if len(rows) < 3 * FOLDS:
        raise DataError(f"{rows.name} has {len(rows)} pairs; {FOLDS} folds need {3 * FOLDS}")
    order = np.random.default_rng(SEED).permutation(len(rows))
    return {f"fold {number + 1}": np.sort(order[number::FOLDS]) for number in range(FOLDS)}


def score_twitterpara(rows: Rows, scorer: Scorer) -> Score:
    """Average precision of the cosine, the mean of Twitter-URL and PIT-2015; debatable pairs are dropped."""
    similarity, votes = _similarity(rows, scorer), np.asarray(rows["score"])
    clear = np.flatnonzero((votes <= NEGATIVE) | (votes >= POSITIVE))
    parts = parts_of([rows["subset"][row] for row in clear])
    labels, found = votes[clear] >= POSITIVE, similarity[clear]
    each = {name: average_precision(labels[part], found[part]) for name, part in parts.items()}
    return _mean_of_parts(rows, scorer, "ap", "mean", each, parts, metrics=_by_part(each, parts))


def score_askubuntu(rows: Rows, scorer: Scorer) -> Score:
    """Mean average precision over the 20 candidates of each query; ties keep their BM25 order."""
    similarity, relevant = _similarity(rows, scorer), np.asarray(rows["relevant"])
    ranked = [part[np.argsort(-similarity[part], kind="stable")] for part in parts_of(rows["query"]).values()]
    precisions = [precision_of_ranking(relevant[part], int(relevant[part].sum())) for part in ranked]
    return _scored(rows, scorer, "map", "mean", mean(precisions), len(precisions))


def score_scidocs(rows: Rows, scorer: Scorer) -> Score:
    """Mean average precision, the mean of cite, cocite, coview and coread.

    As in trec_eval, ties are ranked by descending id, and the denominator counts all relevant candidates, including
    untitled ones, which are not ranked.
    """
    titled = np.array([bool(text) for text in rows["sentence2"]])
    similarity = np.zeros(len(rows), np.float32)
    left, right = ([rows[name][row] for row in np.flatnonzero(titled)] for name in ("sentence1", "sentence2"))
    similarity[titled] = scorer.similarity(left, right)
    relevant, names = np.asarray(rows["relevant"]), np.asarray(rows["id"])
    precisions, subsets = list[float](), list[str]()
    for part in parts_of([f"{a}\t{b}" for a, b in zip(rows["subset"], rows["query"], strict=True)]).values():
        ranked = part[titled[part]]
        ranked = ranked[np.lexsort((names[ranked], similarity[ranked]))[::-1]]
        precisions.append(precision_of_ranking(relevant[ranked], int(relevant[part].sum())))
        subsets.append(rows["subset"][part[0]])
    return _mean_of_queries(rows, scorer, "map", precisions, subsets)


def score_cqadupstack(rows: Rows, scorer: Scorer) -> Score:
    """Mean average precision at 100, the mean over forums; the candidates of a forum are its posts less all queries.

    As the authors apply scikit-learn's function to the 100 best, precision is averaged over the duplicates found, not
    over all, and ties share a threshold.
    """
    if scorer.has_vectors:
        scorer.remember(rows["text"])
    precisions, forums = list[float](), list[str]()
    for forum, part in parts_of(rows["forum"]).items():
        gold = {row: rows["relevant"][row].split() for row in part if rows["relevant"][row]}
        posts = [row for row in part if row not in gold]
        names, queries = np.array([rows["id"][row] for row in posts]), list(gold)
        texts = [[rows["text"][row] for row in each] for each in (queries, posts)]
        query_vectors, post_vectors = scorer.query_document_vectors(texts[0], texts[1])
        size = max(1, BLOCK // max(1, len(posts)))
        for start in range(0, len(queries), size):
            similarity = inner(query_vectors[start : start + size], post_vectors)
            for row, scores in zip(queries[start : start + size], similarity, strict=True):
                best = np.argsort(-scores, kind="stable")[:DEPTH]
                hits = np.isin(names[best], gold[row])
                precisions.append(point(average_precision(hits, scores[best]), len(best)))
        forums += [forum] * len(queries)
    return _mean_of_queries(rows, scorer, f"map@{DEPTH}", precisions, forums)


def precision_of_ranking(relevant: NDArray[np.int64], total: int) -> float:
    """Average precision of a ranked list: the sum of precisions at relevant items, over `total`; 0 without any.

    Args:
        relevant: (n,) 0 or 1, best first.
        total: the divisor.
    """
    hits = np.flatnonzero(relevant)
    return float(np.sum(np.arange(1, len(hits) + 1) / (hits + 1)) / total) if total else 0.0


def _similarity(rows: Rows, scorer: Scorer) -> Floats:
    return scorer.similarity(rows["sentence1"], rows["sentence2"])


def _correlation_of_parts(rows: Rows, scorer: Scorer, how: str, similarity: Floats, parts: Parts) -> Score:
    gold = np.asarray(rows["score"], np.float64)
    rank = {name: spearman(similarity[part], gold[part]) for name, part in parts.items()}
    linear = {name: pearson(similarity[part], gold[part]) for name, part in parts.items()}
    metrics = {"pearson": average(list(linear.values()), list(parts.values()))}
    if len(parts) <= FOLDS:
        metrics |= _by_part(rank, parts, "spearman ") | _by_part(linear, parts, "pearson ")
    return _mean_of_parts(rows, scorer, "spearman", f"mean over {how}", rank, parts, metrics=metrics)


def _mean_of_queries(rows: Rows, scorer: Scorer, metric: str, precisions: list[float], subsets: list[str]) -> Score:
    parts = parts_of(subsets)
    each = {name: mean(np.array(precisions)[part]) for name, part in parts.items()}
    return _mean_of_parts(rows, scorer, metric, "mean", each, parts, metrics=_by_part(each, parts))


def _mean_of_parts(
    rows: Rows, scorer: Scorer, metric: str, how: str, each: Mapping[str, Statistic], parts: Parts, **options: Any
) -> Score:
    """The unweighted mean of a metric over the parts of a task; parts are resampled independently."""
    items, n = list(parts.values()), sum(map(len, parts.values()))
    return _scored(rows, scorer, metric, how, average(list(each.values()), items), n, strata=items, **options)


def _by_part(each: Mapping[str, Statistic], parts: Parts, prefix: str = "") -> dict[str, Statistic]:
    """The value of each part as a statistic over all items."""
    return {f"{prefix}{name}": average([each[name]], [part]) for name, part in parts.items()}


def _scored(rows: Rows, scorer: Scorer, metric: str, how: str, statistic: Statistic, n: int, **options: Any) -> Score:
    fields = {"n": n, "data": rows.fingerprint, "pool": scorer.pooling, "v": 1}
    label = signature(rows.name, metric, scorer.measure, how, **fields)
    return measure(rows.name, statistic, n, signature=label, warnings=rows.warnings, **options)
