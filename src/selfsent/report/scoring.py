"""Encoders on their way into evaluation: what a run is scored by along the way, and before against after at its end."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np

from selfsent.data.corpus import Corpus
from selfsent.errors import DataError, SettingsError, guess
from selfsent.evaluation.datasets.declared import Store
from selfsent.evaluation.encoders import Encoder as Scored
from selfsent.evaluation.encoders import PairEncoder
from selfsent.evaluation.hold_out import HoldOut
from selfsent.evaluation.judges import JUDGES_TOGETHER, Held, TogetherTask
from selfsent.evaluation.results import Score
from selfsent.evaluation.suites import TASKS
from selfsent.evaluation.tasks.context import ContextTask
from selfsent.evaluation.tasks.own import read_pairs
from selfsent.evaluation.tasks.sts import score_pairs
from selfsent.files import write_json, write_text
from selfsent.models.bases import resolve
from selfsent.models.cross_encoder import CrossEncoder, is_cross_encoder
from selfsent.models.encoder import Encoder
from selfsent.models.encoding import encode
from selfsent.models.heads.loading import needs_selfsent
from selfsent.models.loading import load_encoder
from selfsent.report.card import licence_of, model_card
from selfsent.report.run_page import run_page
from selfsent.training.run_config import Notice
from selfsent.training.run_directory import RunDirectory

PAGE = "report.html"
"""The page of a run, in its directory."""
Dev = Literal["context", "judges"] | str
LABEL_FREE = ("context", JUDGES_TOGETHER)
"""What can be chosen by without labels, on documents or sentences kept apart for it."""


def scored(model: Encoder, name: str) -> Scored:
    """An encoder in the form that evaluation takes."""
    if isinstance(model, CrossEncoder):
        return PairEncoder(model.predict, name)
    return Scored(lambda texts: encode(model, texts), name, model.pooling)


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


def finish(corpus: Corpus, hold_out: HoldOut, base: str, directory: RunDirectory, notice: Notice) -> None:
    """Score the base and the trained model on the held-out documents, and write scores, page and card."""
    scores: dict[str, Any] | None = None
    neighbours: list[dict[str, Any]] = []
    if hold_out.test is not None:
        before = load_encoder(base)
        after = load_encoder(directory.model)
        try:
            scores, neighbours = before_and_after(corpus, hold_out.test, before, after)
        except DataError as error:  # near-duplicates alone: the model is there, and only its score is not
            notice(f"no label-free score: {error}")
    write_json(directory.path / "scores.json", {"scores": scores, "neighbours": neighbours})
    page = run_page(directory.record, scores, neighbours, directory.metrics())
    write_text(directory.path / PAGE, page)
    alone = not needs_selfsent(directory.model)
    write_text(
        directory.model / "README.md",
        model_card(
            directory.record,
            corpus.report.summary("; "),
            scores,
            alone=alone,
            joins=is_cross_encoder(directory.model),
            licence=licence_of(resolve(base)),
        ),
    )
    directory.sweep()
    directory.update(status="finished")


def before_and_after(
    corpus: Corpus, rows: np.ndarray, before: Encoder, after: Encoder
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The label-free score of two encoders on held-out documents, paired, and the neighbours of three sentences."""
    task = ContextTask(corpus, rows)
    first, second = scored(before, "base"), scored(after, "trained")
    base, trained = task.score(first), task.score(second)
    scores = {
        "base": base.to_json(),
        "trained": trained.to_json(),
        **{kind: _plain(score) for kind, score in task.lexical.items()},
        "difference": _difference(trained, base),
        **{f"over_{kind}": _difference(trained, score) for kind, score in task.lexical.items()},
    }
    return scores, _neighbours(task, first, second)


def _difference(one: Score, other: Score) -> dict[str, Any]:
    found = one.minus(other)
    return {"score": found.difference, "low": found.low, "high": found.high, "p": found.p}


def _plain(score: Score) -> dict[str, Any]:
    return {"score": score.score, "low": score.low, "high": score.high, "n": score.n}


def _neighbours(task: ContextTask, before: Scored, after: Scored, how_many: int = 3) -> list[dict[str, Any]]:
    """The nearest held-out sentences of three queries, spread over the documents, for both encoders."""

    def unit(model: Scored) -> np.ndarray:
        vectors: np.ndarray = model(task.texts)
        return np.asarray(vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12))

    units = {"before": unit(before), "after": unit(after)}
    medium = [q for q in task.queries if 40 <= len(task.texts[q]) <= 100] or list(task.queries)
    found = []
    for place in np.linspace(0, len(medium) - 1, min(5, len(medium) + 2)).astype(int)[1:-1]:
        query = int(medium[place])
        entry: dict[str, Any] = {"sentence": task.texts[query]}
        for name, vectors in units.items():
            cosines = vectors @ vectors[query]
            cosines[query] = -np.inf
            nearest = np.argsort(-cosines, kind="stable")[:how_many]
            entry[name] = [{"sentence": task.texts[i], "cosine": round(float(cosines[i]), 4)} for i in nearest]
        found.append(entry)
    return found
