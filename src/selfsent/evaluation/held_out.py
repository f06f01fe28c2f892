"""Scores on held-out text before and after training, paired differences, and nearest neighbours."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from selfsent.data.corpus import Corpus
from selfsent.data.corpus.table import rows_digest
from selfsent.display import shortened
from selfsent.errors import DataError
from selfsent.evaluation.hold_out import HoldOut, by_document, limited
from selfsent.evaluation.results import Score
from selfsent.evaluation.tasks.context import ContextTask
from selfsent.evaluation.tasks.retrieval import KnownItemTask, first_finds_rest, text_finds_partner
from selfsent.models.base_info import BaseInfo
from selfsent.models.loading import load_encoder
from selfsent.models.prompts import Prompts
from selfsent.scorers.lexical import LEXICAL, Hybrid
from selfsent.scorers.load_scorer import Scorer, scorer_of

DIFFERENCES = {
    "words_over_bm25": ("with_words", "bm25"),
    "words_over_base": ("with_words", "base_with_words"),
    "difference": ("trained", "base"),
    **{f"over_{kind}": ("trained", kind) for kind in LEXICAL},
}
"""Paired differences by key: minuend and subtrahend."""
_SHOWN = 300
"""Maximum number of characters of a neighbour."""


@dataclass(frozen=True)
class Before:
    """The score of an untrained base on a task, with its vectors.

    Args:
        task: search or next sentence.
        texts: its queries, and the texts to search.
        score: of the base.
        with_words: score of its hybrid search; None for the next sentence.
        sides: vectors of queries and of texts.
    """

    task: ContextTask | KnownItemTask
    texts: tuple[list[str], list[str]]
    score: Score
    with_words: Score | None
    sides: tuple[np.ndarray, np.ndarray]


_SCORED: dict[tuple[str, ...], dict[str, Before]] = {}
"""Cache of scored bases, as all runs of a comparison or of several seeds share them."""
_KEPT = 4


def score_base(
    corpus: Corpus,
    hold_out: HoldOut,
    base: BaseInfo,
    prompts: Prompts,
    titles_find_texts: Callable[[Corpus, HoldOut], KnownItemTask],
) -> dict[str, Before]:
    """Scores of a base with these prompts on the held-out text, by task; cached per process.

    `titles_find_texts` makes the task of texts that are scored by their titles.

    Raises:
        DataError: no score.
    """
    rows = hold_out.test
    assert rows is not None
    key = (
        base.name,
        base.digest,
        corpus.fingerprint,
        rows_digest(rows),
        f"{hold_out.pairs} {hold_out.title} {prompts!r}",
    )
    if key not in _SCORED:
        tasks: list[ContextTask | KnownItemTask]
        if hold_out.pairs:
            tasks = [text_finds_partner(corpus, rows)]
        elif hold_out.title:
            tasks = [titles_find_texts(corpus, hold_out)]
        else:
            tasks = [ContextTask(corpus, rows)]
            with suppress(DataError):
                tasks.append(first_finds_rest([*by_document(corpus, limited(corpus, rows)).values()]))
        encoder, found = scorer_of(load_encoder(base.name, prompts=prompts), "base"), {}
        for task in tasks:
            with_words = None
            if isinstance(task, KnownItemTask):
                texts, with_words = (task.queries, list(task.documents)), task.score(Hybrid(encoder))
            else:
                texts = [task.texts[query] for query in task.queries], task.texts
            sides = encoder.query_document_vectors(*texts, search=with_words is not None)
            found[task.name] = Before(task, texts, task.score(encoder), with_words, sides)
        for old in [*_SCORED][: 1 - _KEPT]:
            del _SCORED[old]
        _SCORED[key] = found
    return _SCORED[key]


def score_trained(
    before: Mapping[str, Before], model: Path, sizes: Sequence[int] = ()
) -> tuple[dict[str, dict[str, Any]], list[dict[str, Any]]]:
    """Scores of a trained model beside its base by task, as JSON, and the neighbours of a few queries.

    Args:
        before: the base, from `score_base`.
        model: directory of the trained model.
        sizes: of its truncated vectors, each scored as well.
    """
    after = scorer_of(load_encoder(model), "trained")
    scores = {name: paired(each, after, sizes) for name, each in before.items()}
    first = next(iter(before.values()))
    vectors = after.query_document_vectors(*first.texts, search=first.with_words is not None)
    return scores, neighbours_of(*first.texts, first.sides, vectors)


def paired(before: Before, after: Scorer, sizes: Sequence[int] = ()) -> dict[str, Any]:
    """Scores of base, trained model and lexical search on a task, with paired differences.

    Args:
        before: the base.
        after: the trained model.
        sizes: of its vectors, cut, each of which has a score, too.
    """
    task = before.task
    scores = {"base": before.score, "trained": task.score(after), "with_words": task.score(Hybrid(after))}
    scores |= task.lexical
    if before.with_words is not None:
        scores["base_with_words"] = before.with_words
    found: dict[str, Any] = {name: score.to_json() for name, score in scores.items()}
    for name, (one, other) in DIFFERENCES.items():
        if name.startswith("words") and before.with_words is None:
            continue
        less = scores[one].minus(scores[other])
        found[name] = {"score": less.difference, "low": less.low, "high": less.high, "p": less.p}
    for size in sizes:
        found.setdefault("sizes", {})[str(size)] = task.score(after.cut(size)).to_json()
    return found | ({"asked": task.summary} if isinstance(task, KnownItemTask) else {})


def neighbours_of(queries: list[str], texts: list[str], *sides: tuple[np.ndarray, np.ndarray]) -> list[dict[str, Any]]:
    """The texts nearest to three queries, before and after training."""
    medium = [row for row, text in enumerate(queries) if 40 <= len(text) <= 100] or list(range(len(queries)))
    found = []
    for index in np.linspace(0, len(medium) - 1, min(5, len(medium) + 2)).astype(int)[1:-1]:
        query = medium[index]
        entry: dict[str, Any] = {"sentence": queries[query]}
        for name, (wanted, searched) in zip(("before", "after"), sides, strict=True):
            cosines = searched @ wanted[query]
            nearest = [i for i in np.argsort(-cosines, kind="stable") if texts[i] != queries[query]][:3]
            entry[name] = [
                {"sentence": shortened(texts[i], _SHOWN), "cosine": round(float(cosines[i]), 4)} for i in nearest
            ]
        found.append(entry)
    return found
