"""How large the data of a task is: table 1 of the TSDAE paper, counted on the files that are here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from selfsent.errors import SettingsError, guess
from selfsent.evaluation.datasets.declared import DataSet, Rows, Store
from selfsent.evaluation.stats.metrics import parts_of
from selfsent.evaluation.tasks.useb import ASKUBUNTU, CQADUPSTACK, POSITIVE, SCIDOCS, TWITTERPARA
from selfsent.papers.published import DATASETS, records

QUERIES, RELEVANT, CANDIDATES = "queries", "relevant per query", "candidates per query"
PARAPHRASES, OTHERS, LENGTH = "paraphrases", "other pairs", "words per text"
_PUBLISHED = {
    "n_queries": QUERIES,
    "avg_n_relevant": RELEVANT,
    "avg_n_candidates": CANDIDATES,
    "n_paraphrase": PARAPHRASES,
    "n_non_paraphrase": OTHERS,
    "avg_length": LENGTH,
}


def sizes(task: str, store: Store) -> dict[str, Any]:
    """Count the test data of a task of USEB (Wang, Reimers and Gurevych 2021, table 1).

    Args:
        task: `askubuntu`, `cqadupstack`, `twitterpara` or `scidocs`.
        store: of the data sets.

    Returns:
        The `task`, what is `here` by the names of this file (a word is what stands between spaces, and each text counts
        once), and the same as `published`, which is rounded to thousands at times.

    Raises:
        SettingsError: it is no task of USEB.
        DataError: its data is not here.

    Example:
        sizes("twitterpara", Store("data"))["here"]["paraphrases"]
    """
    if task not in _COUNTED:
        raise SettingsError(f"sizes are counted for tasks of USEB, and {task} is none; {guess(task, _COUNTED)}")
    data, count, columns = _COUNTED[task]
    rows = store.load(data)
    texts = dict.fromkeys(text for column in columns for text in rows[column] if text)
    here = {**count(rows), LENGTH: float(np.mean([len(text.split()) for text in texts]))}
    published = {
        _PUBLISHED[record["metric"]]: float(record["value"])
        for record in records()
        if (record["paper"], record["table"], record["dataset"]) == ("TSDAE", "1", DATASETS["useb"][task])
        and record["metric"] in _PUBLISHED
        and record.get("split", "test") == "test"
    }
    return {"task": task, "here": here, "published": published}


def _of_pairs(rows: Rows) -> dict[str, float]:
    """Debatable pairs are among the others, as in the paper, though they are not scored."""
    paraphrases = int((np.asarray(rows["score"]) >= POSITIVE).sum())
    return {PARAPHRASES: paraphrases, OTHERS: len(rows) - paraphrases}


def _of_candidates(rows: Rows) -> dict[str, float]:
    """Each row a query and a candidate; a query of two sub-sets is two."""
    subsets = rows["subset"] if "subset" in rows else [""] * len(rows)
    count = len(parts_of([f"{one}\t{query}" for one, query in zip(subsets, rows["query"], strict=True)]))
    return {QUERIES: count, RELEVANT: sum(rows["relevant"]) / count, CANDIDATES: len(rows) / count}


def _of_forums(rows: Rows) -> dict[str, float]:
    """The candidates of a query are the posts of its forum less all queries."""
    relevant = [len(names.split()) for names in rows["relevant"]]
    forums = [[relevant[row] for row in part] for part in parts_of(rows["forum"]).values()]
    asked = [(sum(map(bool, forum)), len(forum)) for forum in forums]
    count = sum(queries for queries, _ in asked)
    candidates = sum(queries * (posts - queries) for queries, posts in asked)
    return {QUERIES: count, RELEVANT: sum(relevant) / count, CANDIDATES: candidates / count}


_PAIR = ("sentence1", "sentence2")
_COUNTED: dict[str, tuple[DataSet, Callable[[Rows], dict[str, float]], tuple[str, ...]]] = {
    "askubuntu": (ASKUBUNTU, _of_candidates, _PAIR),
    "cqadupstack": (CQADUPSTACK, _of_forums, ("text",)),
    "twitterpara": (TWITTERPARA, _of_pairs, _PAIR),
    "scidocs": (SCIDOCS, _of_candidates, _PAIR),
}
