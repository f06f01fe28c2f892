"""Encoders on their way into evaluation: what a run is scored by along the way, and before against after at its end."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np

from selfsent.data.corpus import Corpus
from selfsent.errors import DataError, SettingsError, guess
from selfsent.evaluation.datasets.declared import Store
from selfsent.evaluation.encoders import Encoder as Scored
from selfsent.evaluation.encoders import PairEncoder, encoder_of
from selfsent.evaluation.hold_out import HoldOut
from selfsent.evaluation.hybrid import Hybrid
from selfsent.evaluation.judges import JUDGES_TOGETHER, Held, TogetherTask
from selfsent.evaluation.results import Score
from selfsent.evaluation.suites import TASKS
from selfsent.evaluation.tasks.context import ContextTask
from selfsent.evaluation.tasks.known_items import KnownItemTask, first_finds_rest, text_finds_partner
from selfsent.evaluation.tasks.own import read_pairs
from selfsent.evaluation.tasks.sts import score_pairs
from selfsent.files import remove, write_json, write_text
from selfsent.models.bases import resolve
from selfsent.models.cross_encoder import CrossEncoder, is_cross_encoder
from selfsent.models.encoder import Encoder
from selfsent.models.loading import load_encoder
from selfsent.models.saved import needs_selfsent
from selfsent.report.card import licence_of, model_card
from selfsent.report.maps import FEW, POINTS, colours_of, grouped_by_words, map_of, sample, slowness
from selfsent.report.run_page import run_page
from selfsent.search.vectors import unit
from selfsent.training.identity import rows_digest, weights_digest
from selfsent.training.run_config import Notice
from selfsent.training.run_directory import RunDirectory

PAGE = "report.html"
"""The page of a run, in its directory."""
Dev = Literal["context", "judges"] | str
_SHOWN = 300
"""Characters of a neighbour."""
LABEL_FREE = ("context", JUDGES_TOGETHER)
"""What can be chosen by without labels, on documents or sentences kept apart for it."""


def scored(model: Encoder, name: str) -> Scored:
    """An encoder in the form that evaluation takes."""
    if isinstance(model, CrossEncoder):
        return PairEncoder(model.predict, name)
    return encoder_of(model, name)


def check_dev(dev: Dev | None, dev_every: int | None = None, keep_best: bool = False) -> None:
    """Refuse what cannot be scored along the way.

    Raises:
        SettingsError: there is no such task, or none was named where one is needed.
    """
    if dev is None:
        if keep_best or dev_every:
            raise SettingsError(f"{'--keep-best' if keep_best else '--dev-every'} needs --dev to say what to score")
        return
    if dev not in TASKS and Path(dev).is_file():
        read_pairs(dev)
    elif dev not in (*LABEL_FREE, *TASKS):
        raise SettingsError(f"there is no task {dev!r} to score on; {guess(dev, (*LABEL_FREE, *TASKS))}")


def dev_task(dev: Dev, corpus: Corpus, hold_out: HoldOut, data: str | Path | None) -> Callable[[Scored], Score]:
    """What encoders are scored on to choose among them.

    Raises:
        DataError: its data set is absent or damaged.
    """
    if dev == "context":
        return ContextTask(corpus, hold_out.dev).score
    if dev == JUDGES_TOGETHER and hold_out.dev is not None:
        return TogetherTask(Held(corpus, hold_out.dev)).score
    if dev not in TASKS:
        return partial(score_pairs, read_pairs(dev))
    store = Store(data)
    check_dev_data(dev, store)
    return lambda encoder: TASKS[dev](encoder, store)


def dev_scorer(
    dev: Dev | None, corpus: Corpus, hold_out: HoldOut, data: str | Path | None
) -> Callable[[Encoder], float] | None:
    """The same as one number, which training takes; None where nothing is to be scored along the way."""
    if dev is None:
        return None
    task = dev_task(dev, corpus, hold_out, data)
    return lambda model: task(scored(model, "dev")).score


def check_dev_data(dev: Dev, store: Store) -> None:
    """Find out now, not when the first score is due, that a task's data set is absent or damaged.

    Raises:
        DataError: it is.
    """
    if dev in TASKS:
        TASKS[dev](Scored(_anything, "nothing"), store)


def _anything(texts: Sequence[str]) -> np.ndarray:
    return np.random.default_rng(0).normal(size=(len(texts), 2))


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
            "asked": task.asked,
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
