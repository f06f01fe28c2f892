"""Development scores, during training and in comparisons: the label-free score, a task, or pairs of a file."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from selfsent.data.corpus import Corpus
from selfsent.errors import SettingsError, guess
from selfsent.evaluation.datasets.declared import Store
from selfsent.evaluation.hold_out import HoldOut
from selfsent.evaluation.results import Score
from selfsent.evaluation.suites import TASKS
from selfsent.evaluation.tasks.context import CONTEXT, ContextTask
from selfsent.evaluation.tasks.own import read_pairs
from selfsent.evaluation.tasks.published import score_pairs
from selfsent.models.encoder import Encoder
from selfsent.scorers.load_scorer import Scorer, scorer_of


def check_dev(dev: str | None, dev_every: int | None = None, keep_best: bool = False) -> None:
    """Check the development task.

    Raises:
        SettingsError: an unknown task, or a missing one.
    """
    if dev is None:
        if keep_best or dev_every:
            raise SettingsError(f"{'keep_best' if keep_best else 'dev_every'} needs `dev` to say what to score")
        return
    if dev not in TASKS and Path(dev).is_file():
        read_pairs(dev)
    elif dev not in (CONTEXT, *TASKS):
        raise SettingsError(f"there is no task {dev!r} to score on; {guess(dev, (CONTEXT, *TASKS))}")


def dev_task(dev: str, corpus: Corpus, hold_out: HoldOut, data: str | Path | None) -> Callable[[Scorer], Score]:
    """The development score, as a function of an encoder.

    Raises:
        DataError: the data set is absent or damaged.
    """
    if dev == CONTEXT and hold_out.dev is not None:
        return ContextTask(corpus, hold_out.dev).score
    if dev not in TASKS:
        return partial(score_pairs, read_pairs(dev))
    store = Store(data)
    check_dev_data(dev, store)
    return lambda encoder: TASKS[dev](encoder, store)


def dev_scorer(
    dev: str | None, corpus: Corpus, hold_out: HoldOut, data: str | Path | None
) -> Callable[[Encoder], float] | None:
    """The development score as a number, of a model in training; None without `dev`."""
    if dev is None:
        return None
    task = dev_task(dev, corpus, hold_out, data)
    return lambda model: task(scorer_of(model, "dev")).score


def check_dev_data(dev: str, store: Store) -> None:
    """Check the data set of a task early.

    Raises:
        DataError: it is absent or damaged.
    """
    for dataset in TASKS[dev].datasets if dev in TASKS else ():
        store.load(dataset)
