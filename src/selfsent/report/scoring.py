"""Encoders on their way into evaluation: what a run is scored by along the way, and before against after at its end."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from selfsent.data.corpus import Corpus
from selfsent.errors import DataError
from selfsent.evaluation.dev import scored
from selfsent.evaluation.encoders import Encoder as Scored
from selfsent.evaluation.hold_out import HoldOut
from selfsent.evaluation.hybrid import Hybrid
from selfsent.evaluation.judges import Held
from selfsent.evaluation.results import Score
from selfsent.evaluation.tasks.label_free import ContextTask
from selfsent.evaluation.tasks.retrieval import KnownItemTask, first_finds_rest, text_finds_partner
from selfsent.files import remove, write_json, write_text
from selfsent.models.bases import resolve, weights_digest
from selfsent.models.cross_encoder import is_cross_encoder
from selfsent.models.loading import load_encoder
from selfsent.models.saved import needs_selfsent
from selfsent.report.card import licence_of, model_card
from selfsent.report.maps import FEW, POINTS, colours_of, grouped_by_words, map_of, sample, slowness
from selfsent.report.run_page import run_page
from selfsent.search.vectors import unit
from selfsent.training.plan import rows_digest
from selfsent.training.run_config import Notice
from selfsent.training.run_directory import RunDirectory

PAGE = "report.html"
"""The page of a run, in its directory."""
_SHOWN = 300
"""Characters of a neighbour."""


def finish(
    corpus: Corpus, hold_out: HoldOut, base: str, directory: RunDirectory, notice: Notice, points: int = POINTS
) -> None:
    """Score the base and the trained model on the held-out documents, and write scores, page and card.

    Args:
        corpus: the text.
        hold_out: which of its rows were trained on, and which are scored.
        base: the encoder as it was.
        directory: of the run.
        notice: is told what could not be scored.
        points: sentences on the map: held-out ones where there are any; 0 for no map.
    """
    scores: dict[str, dict[str, Any]] = {}
    neighbours: list[dict[str, Any]] = []
    drawn: dict[str, Any] | None = None
    joins = is_cross_encoder(directory.model)
    if hold_out.test is not None or (points and not joins):
        after = scored(load_encoder(directory.model), "trained")
    if hold_out.test is not None:
        try:
            scores, neighbours = before_and_after(score_base(corpus, hold_out, base), after)
        except DataError as error:  # near-duplicates alone: the model is there, and only its score is not
            notice(f"no label-free score: {error}")
    context, search = scores.get("context"), scores.get("search")
    write_json(directory.path / "scores.json", {"scores": context, "search": search, "neighbours": neighbours})
    if points and not joins:
        if line := slowness(min(points, len(corpus))):
            notice(line)
        drawn = map_before_and_after(corpus, hold_out, scored(load_encoder(base), "base"), after, points)
    page = run_page(directory.record, context, neighbours, directory.metrics(), corpus_map=drawn, search=search)
    write_text(directory.path / PAGE, page)
    alone = not needs_selfsent(directory.model)
    write_text(
        directory.model / "README.md",
        model_card(
            directory.record,
            corpus.report.summary("; "),
            context,
            alone=alone,
            joins=joins,
            licence=licence_of(resolve(base)),
            search=search,
        ),
    )
    directory.sweep()
    remove(directory.path / "best")  # there only where a kill came between the end of training and its removal
    directory.update(status="finished")


@dataclass(frozen=True)
class Before:
    """What a base is worth on what was held out, as it is: the task, its score (in search with words, too), vectors."""

    task: ContextTask | KnownItemTask
    score: Score
    with_words: Score | None
    sides: tuple[np.ndarray, np.ndarray]
    """Of queries and texts."""


_SCORED: dict[tuple[str, ...], dict[str, Before]] = {}
"""The bases that were scored last: each run of a comparison, or of several seeds, begins with one of them."""
_KEPT = 4


def score_base(corpus: Corpus, hold_out: HoldOut, base: str) -> dict[str, Before]:
    """The scores of a base on what was held out, by `search` and by `context`, where they can be taken.

    Asked again in this process, it is not computed again.

    Raises:
        DataError: none can be taken.
    """
    assert hold_out.test is not None
    key = (base, weights_digest(resolve(base)), corpus.fingerprint, rows_digest(hold_out.test), str(hold_out.pairs))
    if key not in _SCORED:
        encoder = scored(load_encoder(base), "base")
        found = {}
        for task in _tasks(corpus, hold_out.test, hold_out.pairs):
            with_words = task.score(Hybrid(encoder)) if isinstance(task, KnownItemTask) else None
            found[task.name] = Before(task, task.score(encoder), with_words, encoder.sides(*_texts(task)))
        for old in [*_SCORED][: 1 - _KEPT]:
            del _SCORED[old]
        _SCORED[key] = found
    return _SCORED[key]


def _tasks(corpus: Corpus, rows: np.ndarray, pairs: bool) -> list[ContextTask | KnownItemTask]:
    """What is asked of pairs, or of documents.

    Raises:
        DataError: they are good for none of it.
    """
    if pairs:
        return [text_finds_partner(corpus, rows)]
    found: list[ContextTask | KnownItemTask] = [ContextTask(corpus, rows)]
    with suppress(DataError):
        found.append(first_finds_rest(Held(corpus, rows).documents))
    return found


def before_and_after(
    before: dict[str, Before], after: Scored
) -> tuple[dict[str, dict[str, Any]], list[dict[str, Any]]]:
    """The scores of two encoders on what was held out, paired, by task, and the neighbours of three sentences."""
    first = next(iter(before.values()))
    neighbours = _neighbours(*_texts(first.task), first.sides, after.sides(*_texts(first.task)))
    return {name: _paired(each, after) for name, each in before.items()}, neighbours


def _texts(task: ContextTask | KnownItemTask) -> tuple[list[str], list[str]]:
    """The queries of a task, and the texts that are searched."""
    if isinstance(task, ContextTask):
        return [task.texts[query] for query in task.queries], task.texts
    return task.queries, list(task.documents)


def _paired(before: Before, after: Scored) -> dict[str, Any]:
    """The score of a base and of what was made of it, with those of words beside, and the differences."""
    task, base = before.task, before.score
    trained, with_words = task.score(after), task.score(Hybrid(after))
    scores: dict[str, Any] = {
        "base": base.to_json(),
        "trained": trained.to_json(),
        "with_words": _plain(with_words),
        **{kind: _plain(score) for kind, score in task.lexical.items()},
        "difference": _difference(trained, base),
        **{f"over_{kind}": _difference(trained, score) for kind, score in task.lexical.items()},
    }
    if before.with_words is not None and isinstance(task, KnownItemTask):
        scores |= {
            "base_with_words": _plain(before.with_words),
            "words_over_base": _difference(with_words, before.with_words),
            "words_over_bm25": _difference(with_words, task.lexical["bm25"]),
            "asked": task.summary,
        }
    return scores


def map_before_and_after(
    corpus: Corpus, hold_out: HoldOut, before: Scored, after: Scored, points: int
) -> dict[str, Any] | None:
    """The map of a run, for two encoders: of held-out sentences where there are any, else of those trained on."""
    kept, what = (hold_out.train, "sentences") if hold_out.test is None else (hold_out.test, "held-out sentences")
    rows = sample(kept, points)
    if len(rows) < FEW:
        return None
    texts = corpus.texts(rows)
    vectors = {name: unit(encoder(texts)) for name, encoder in (("before", before), ("after", after))}
    colours = {**colours_of(corpus, rows), "groups after training": grouped_by_words(texts, vectors["after"])}
    return map_of(texts, vectors, colours, what, len(kept))


def _difference(one: Score, other: Score) -> dict[str, Any]:
    found = one.minus(other)
    return {"score": found.difference, "low": found.low, "high": found.high, "p": found.p}


def _plain(score: Score) -> dict[str, Any]:
    return {"score": score.score, "low": score.low, "high": score.high, "n": score.n}


def _neighbours(
    queries: list[str], texts: list[str], *sides: tuple[np.ndarray, np.ndarray], how_many: int = 3
) -> list[dict[str, Any]]:
    """The texts nearest to three queries, spread over all, by the vectors of the base and of what was made of it."""
    medium = [place for place, text in enumerate(queries) if 40 <= len(text) <= 100] or list(range(len(queries)))
    found = []
    for place in np.linspace(0, len(medium) - 1, min(5, len(medium) + 2)).astype(int)[1:-1]:
        query = medium[place]
        entry: dict[str, Any] = {"sentence": queries[query]}
        for name, (asked, searched) in zip(("before", "after"), sides, strict=True):
            cosines = searched @ asked[query]
            nearest = [i for i in np.argsort(-cosines, kind="stable") if texts[i] != queries[query]][:how_many]
            entry[name] = [{"sentence": _short(texts[i]), "cosine": round(float(cosines[i]), 4)} for i in nearest]
        found.append(entry)
    return found


def _short(text: str) -> str:
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"
