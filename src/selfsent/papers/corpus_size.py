"""The score as a function of the number of training sentences (Wang et al., 2021, section 7.1 and Figure 3)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from selfsent import api
from selfsent.data.corpus import Corpus
from selfsent.errors import SettingsError
from selfsent.evaluation.datasets.declared import Store
from selfsent.evaluation.dev import check_dev_data
from selfsent.evaluation.encoders import as_encoder
from selfsent.evaluation.hold_out import split_documents
from selfsent.evaluation.side_by_side import Spread
from selfsent.evaluation.suites import TASKS, check_request
from selfsent.evaluation.tasks.label_free import CONTEXT, ContextTask
from selfsent.methods import get_method
from selfsent.training.plan import make_plan


def check_corpus_size(method: str, base: str | None, task: str | None, data: str | Path | None) -> None:
    """Check arguments of `corpus_size` before reading the corpus.

    Raises:
        SettingsError: a method that reads neighbours, or an unknown task.
        DataError: the data of the task is absent.
    """
    if make_plan(get_method(method), base).reads_documents:
        raise SettingsError(
            f"corpus-size draws sentences one by one, and {method} reads their neighbours: name another `method`"
        )
    if task not in (None, CONTEXT):
        check_request(task=task)
        check_dev_data(task, Store(data))


def corpus_size(
    corpus: Corpus,
    method: str,
    base: str | None,
    output: Path,
    *,
    sizes: Collection[int] | None = None,
    seeds: Collection[int] = (0,),
    task: str | None = None,
    data: str | Path | None = None,
    begins: Callable[[str], None] = lambda line: None,
    ends: Callable[[str], None] = lambda line: None,
    bits: Mapping[str, Any] | None = None,
    **changes: Any,
) -> tuple[str, dict[int, Spread]]:
    """Train on samples of the sentences and score the models, for every size and seed.

    Args:
        corpus: to draw sentences from.
        method: its name.
        base: as for `selfsent.train`.
        output: directory of the runs, each in SIZE-SEED; finished ones are read, interrupted ones resumed.
        sizes: numbers of sentences; by default a 64th, a 16th and a 4th of them, and all.
        seeds: one run each.
        task: to score on; by default the label-free score on held-out documents.
        data: a mirror of the data sets.
        begins: called with a line before each run.
        ends: called with a line after it.
        bits: `fast` and `int8`, as for `as_encoder`.
        **changes: settings of the runs.

    Returns:
        The metric, and the score over seeds by size, ascending.

    Raises:
        SettingsError: a size exceeds the corpus.
    """
    train_rows = np.arange(len(corpus))
    if task in (None, CONTEXT):
        train_rows, held = split_documents(corpus)
        metric, score = CONTEXT, ContextTask(corpus, held).score
    else:
        metric, score = str(task), partial(TASKS[str(task)], store=Store(data))
    chosen = sorted(set(sizes or (max(2, len(train_rows) // part) for part in (64, 16, 4, 1))))
    if chosen[-1] > len(train_rows):
        raise SettingsError(f"`sizes` asks for {chosen[-1]:,} texts; there are {len(train_rows):,} to train on")

    def trained(size: int, seed: int) -> float:
        what, directory = f"{corpus.report.counted(size)}, seed {seed}", output / f"{size}-{seed}"
        begins(what)
        texts = corpus.texts(np.sort(np.random.default_rng(seed).choice(train_rows, size, replace=False)))
        api.train(texts, method, base, directory, seed=seed, resume=True, data=data, **changes)
        found = score(as_encoder(str(directory / "model"), **(bits or {}))).score
        ends(f"{what}: {metric} {found:.2f}")
        return found

    return metric, {size: Spread.of([trained(size, seed) for seed in seeds]) for size in chosen}
