"""The registry of tasks and suites, and `evaluate`, which runs them."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, cast

from selfsent.data.corpus import read_corpus
from selfsent.data.corpus.sources import SourceName
from selfsent.display import counted
from selfsent.errors import DataError, SettingsError, guess
from selfsent.evaluation.datasets.declared import Rows, Store
from selfsent.evaluation.datasets.own_files import Clean, Column
from selfsent.evaluation.encoders import Encoder, as_encoder
from selfsent.evaluation.judges import JUDGES, Held, aimed_at, check_judges, make_judges
from selfsent.evaluation.results import AVERAGE, Result, Score
from selfsent.evaluation.tasks import arguments, languages, own, sts, transfer, useb
from selfsent.evaluation.tasks.beir import Searched, read_tasks
from selfsent.evaluation.tasks.context import SCORE_NAME, Documented, score_context, split_documents
from selfsent.evaluation.tasks.retrieval import RetrievalTask
from selfsent.naming import names
from selfsent.progress import Progress

Task = Callable[..., Score]
"""An encoder and a store, for classification also a classifier -> a score."""


@dataclass(frozen=True)
class Suite:
    """Tasks that are run together.

    Args:
        tasks: their names, in the order of printing.
        averaged: those that enter the average, None for all of them.
    """

    tasks: tuple[str, ...]
    averaged: tuple[str, ...] | None = None


TASKS: dict[str, Task] = {
    **{dataset.name: partial(sts.score_sts, dataset) for dataset in (*sts.STS, sts.STSB_DEV, *sts.STS17)},
    **{dataset.name: partial(arguments.score_arguments, dataset) for dataset in arguments.ARGUMENTS},
    **{each.name: partial(transfer.score_transfer, each) for each in transfer.TRANSFER},
    **{name: partial(languages.score_tatoeba, dataset) for name, dataset in languages.TATOEBA.items()},
    **{name: partial(languages.score_stsb_pair, name) for name in (*languages.STSB_PAIRS, *languages.STSB_DEV_PAIRS)},
    "askubuntu": useb.score_askubuntu,
    "cqadupstack": useb.score_cqadupstack,
    "twitterpara": useb.score_twitterpara,
    "scidocs": useb.score_scidocs,
}

SUITES: dict[str, Suite] = {
    "sts": Suite(tuple(dataset.name for dataset in sts.STS), sts.AVERAGED),
    "sts17": Suite(tuple(dataset.name for dataset in sts.STS17)),
    "tatoeba": Suite(tuple(languages.TATOEBA)),
    "stsb-cross": Suite(tuple(languages.STSB_PAIRS)),
    "transfer": Suite(tuple(each.name for each in transfer.TRANSFER)),
    "useb": Suite(("askubuntu", "cqadupstack", "twitterpara", "scidocs")),
    # The three measure different things on different scales: an average would mean nothing.
    "afs": Suite(tuple(dataset.name for dataset in arguments.ARGUMENTS), averaged=()),
    # Only `documents`, which any suite can have beside it.
    SCORE_NAME: Suite(()),
}


def evaluate(
    model: Any,
    *,
    suite: str | None = None,
    task: str | Sequence[str] | None = None,
    documents: Documented | SourceName | None = None,
    hold_out: int | None = None,
    judges: str | Sequence[str] = (),
    pairs: str | Path | None = None,
    relevance: str | Path | None = None,
    labels: str | Path | None = None,
    columns: str | Sequence[Column] | None = None,
    clean: Clean = None,
    retrieval: Searched = (),
    split: str = "test",
    data: str | Path | Store | None = None,
    name: str | None = None,
    fast: bool = False,
    int8: bool = False,
    pooling: str | None = None,
    classifier: transfer.Classifier = "exact",
    progress: Callable[[str], None] | Progress | None = None,
    quiet: bool = False,
) -> Result:
    """Score a model.

    Args:
        model: anything `as_encoder` takes.
        suite: a name in `SUITES`.
        task: one or several names in `TASKS`, instead of a suite.
        documents: a corpus with documents, for the label-free score `context`; or what `read_corpus` reads.
        hold_out: how many of its documents are scored: as many as `train` was to keep apart.
        judges: label-free scores of `documents`, names in `JUDGES` or `all`; without it `context` alone. A corpus
            without documents has those of single sentences.
        pairs: a file with columns sentence1, sentence2, score; its score goes by the name of the file.
        relevance: a file with columns query, text: the relevant one.
        labels: a file with columns text, label.
        columns: what the columns of that file are called, where they have other names; a list of names in the place of
            one joins their texts.
        clean: what is taken out of the texts of these files, and of `documents`: as for `read_corpus`.
        retrieval: a folder in BEIR's layout or a data set of the hub, to search in (see `read_task`), or several; the
            score is `retrieval`, of several `retrieval-` and the name of each.
        split: whose judgements of `retrieval` are read.
        data: a mirror of the data sets; without it SELFSENT_DATA, then the hub.
        name: how to call the model in the result.
        fast: compute in bfloat16 where this machine is faster in it, for models given by directory or hub id.
        int8: likewise, and some products in 8 bits on a CPU that has them.
        pooling: of the transformer of a directory or hub id, instead of the model's own; a cross-encoder's becomes an
            encoder.
        classifier: of the suite `transfer` and of `labels`: `exact`, or `senteval`, which is stopped early as for
            published scores.
        progress: called with the name of each task before it runs; or a `Progress`, whose `notice` is.
        quiet: nothing is called.

    Raises:
        SettingsError: nothing to score, an unknown suite, task or classifier, or `pooling` of what has no transformer.
        DataError: nothing of what was asked for could be scored, or a file of one's own is damaged. Otherwise absent
            sets are named in the result and the rest is scored.
        BaseEncoderError: the model cannot be loaded.
    """
    judges = names(judges)
    if isinstance(progress, Progress):
        progress = progress.notice
    progress = None if quiet else progress
    chosen = _task_names(suite, task, documents is not None, bool(pairs or relevance or labels or retrieval))
    _check_judges(judges, documents is not None)
    store = data if isinstance(data, Store) else Store(data)
    classifiers = {"classifier": _known(classifier)}
    searched = {each.name: each.score for each in read_tasks(retrieval, split, store.mirror)}
    paths = {"pairs": pairs, "relevance": relevance, "labels": labels}
    files = _own_tasks(paths, (*chosen, *searched), classifiers, columns, clean) | searched
    is_corpus = documents is None or hasattr(documents, "documents")
    corpus = (
        cast(Documented | None, documents)
        if is_corpus
        else read_corpus(cast(SourceName, documents), split_sentences=None, clean=clean)
    )
    encoder = as_encoder(model, name=name, fast=fast, int8=int8, pooling=pooling)
    tasks: dict[str, Callable[[], Score]] = {
        each: partial(TASKS[each], encoder, store, **(classifiers if each in SUITES["transfer"].tasks else {}))
        for each in chosen
    }
    absent: dict[str, str] = {}
    if corpus is not None and check_judges(judges):
        held = Held(corpus, split_documents(corpus, hold_out, single=True)[1])
        found, absent = make_judges(held, judges)
        tasks |= {each: partial(judge.score, encoder) for each, judge in found.items()}
    elif corpus is not None:
        tasks[SCORE_NAME] = partial(score_context, encoder, corpus, hold_out=hold_out)
    tasks |= {each: partial(score, encoder) for each, score in files.items()}
    scores = _run(tasks, encoder, aimed_at(encoder.trained_by), absent, progress)
    if not scores:
        missing, reason = next(iter(absent.items()))
        raise DataError(f"nothing of {suite or ', '.join(chosen)} could be scored; {missing} is absent: {reason}")
    averaged = _averaged(suite) if suite else ()
    return Result(name or encoder.name, scores, suite, averaged, absent)


def _run(
    tasks: Mapping[str, Callable[[], Score]],
    encoder: Encoder,
    aimed: Container[str],
    absent: dict[str, str],
    progress: Callable[[str], None] | None,
) -> dict[str, Score]:
    """Every score that can be had, those that training aimed at marked so; `absent` is told of the others.

    Raises:
        DataError: the only one cannot be had.
    """
    scores: dict[str, Score] = {}
    for each, run in tasks.items():
        if progress:
            progress(each)
        try:
            scores[each] = _with_warning(run(), encoder)
            if each in aimed:
                scores[each] = replace(scores[each], details={**scores[each].details, "aimed": True})
        except DataError as error:
            if len(tasks) == 1:
                raise
            absent[each] = str(error).removeprefix(f"{each} is absent: ")
    return scores


def check_request(
    *,
    suite: str | None = None,
    task: str | Sequence[str] | None = None,
    documents: bool = False,
    judges: str | Sequence[str] = (),
    pairs: str | Path | None = None,
    relevance: str | Path | None = None,
    labels: str | Path | None = None,
    columns: str | Sequence[Column] | None = None,
    clean: Clean = None,
    retrieval: Sequence[RetrievalTask] = (),
) -> None:
    """Find out without a model what `evaluate` would refuse.

    Raises:
        SettingsError: nothing to score, or an unknown suite or task.
        DataError: a file of one's own is damaged.
    """
    chosen = _task_names(suite, task, documents, bool(pairs or relevance or labels or retrieval))
    _check_judges(names(judges), documents)
    taken = (*chosen, *(each.name for each in retrieval))
    _own_tasks({"pairs": pairs, "relevance": relevance, "labels": labels}, taken, columns=columns, clean=clean)


def _own_tasks(
    paths: Mapping[str, str | Path | None],
    taken: Sequence[str],
    classifiers: Mapping[str, Any] | None = None,
    columns: str | Sequence[Column] | None = None,
    clean: Clean = None,
) -> dict[str, Callable[[Encoder], Score]]:
    """The user's own files, read before anything that takes long; each goes by its name without the ending."""
    columns = names(cast(Any, columns)) or None
    if columns is not None and sum(path is not None for path in paths.values()) != 1:
        raise SettingsError("columns are those of one file of your own: give one of pairs, relevance and labels")
    found: dict[str, Callable[[Encoder], Score]] = {}
    for kind, path in paths.items():
        if path is None:
            continue
        read, score = own.OWN[kind]
        rows = read(path, columns, clean)
        if rows.name in (*taken, *found, *JUDGES, AVERAGE):
            raise SettingsError(f"{path} would go by the name {rows.name}, which another score has: rename the file")
        found[rows.name] = partial(score, rows, **((classifiers or {}) if kind == "labels" else {}))
    return found


def _check_judges(judges: Sequence[str], documents: bool) -> None:
    if check_judges(judges) and not documents:
        raise SettingsError("--judges are label-free scores of a corpus, which is not given: give --documents")


def _with_warning(score: Score, encoder: Encoder) -> Score:
    if not encoder.broken:
        return score
    line = f"{encoder.name}: {counted(encoder.broken, 'output')} not finite, taken for zeros"
    return replace(score, warnings=(*score.warnings, line))


def _known(classifier: str) -> str:
    if classifier not in transfer.CLASSIFIERS:
        raise SettingsError(f"there is no classifier {classifier!r}; {guess(classifier, transfer.CLASSIFIERS)}")
    return classifier


def _task_names(suite: str | None, task: str | Sequence[str] | None, documents: bool, files: bool) -> tuple[str, ...]:
    if suite is not None and task is not None:
        raise SettingsError("suite and task both say what to score: give one of them")
    if suite is not None and suite not in SUITES:
        raise SettingsError(f"there is no suite {suite!r}; {guess(suite, SUITES)}")
    names = SUITES[suite].tasks if suite is not None else (task,) if isinstance(task, str) else tuple(task or ())
    if SCORE_NAME in (suite, *names) and not documents:
        raise SettingsError(f"{SCORE_NAME} is scored on text of your own: give documents")
    names = tuple(dict.fromkeys(name for name in names if name != SCORE_NAME))
    unknown = [name for name in names if name not in TASKS]
    if unknown:
        raise SettingsError(f"there is no task {unknown[0]!r}; {guess(unknown[0], (SCORE_NAME, *TASKS))}")
    if not (names or documents or files):
        flags = "--task, --suite or --documents, or --retrieval, --pairs, --relevance, --labels"
        raise SettingsError(f"nothing to score: give {flags}")
    return names


def load_pairs(task: str | None, pairs: str | Path | None, store: Store) -> Rows:
    """Pairs with scores, of a task or of a file of one's own.

    Args:
        task: a task that is one data set of scored pairs, such as `stsb-dev`.
        pairs: a file with columns sentence1, sentence2, score.
        store: where data sets come from.

    Raises:
        SettingsError: both or neither are given, or the task has no scored pairs.
        DataError: the data is absent or damaged.
    """
    if (task is None) == (pairs is None):
        raise SettingsError("give either a task or a file of pairs: --task or --pairs")
    if pairs is not None:
        return own.read_pairs(pairs)
    known = {dataset.name: dataset for dataset in (*sts.STS, sts.STSB_DEV, *sts.STS17, *arguments.ARGUMENTS)}
    if task not in known:
        raise SettingsError(f"{task} is no task of scored pairs; those are {', '.join(known)}")
    return store.load(known[task])


def _averaged(suite: str) -> tuple[str, ...]:
    chosen = SUITES[suite].averaged
    return SUITES[suite].tasks if chosen is None else chosen
