"""The registry of tasks and suites, and `evaluate`, which runs them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, cast

from selfsent.data.corpus import Corpus, read_corpus
from selfsent.data.corpus.sources import SourceName
from selfsent.errors import DataError, SettingsError, guess
from selfsent.evaluation.datasets import catalogue
from selfsent.evaluation.datasets.declared import DataSet, Store
from selfsent.evaluation.datasets.own_files import Clean, Column
from selfsent.evaluation.hold_out import split_documents
from selfsent.evaluation.results import AVERAGE, Result, Score
from selfsent.evaluation.tasks import own, published, transfer
from selfsent.evaluation.tasks.beir import Searched, read_tasks
from selfsent.evaluation.tasks.context import CONTEXT, ContextTask
from selfsent.evaluation.tasks.published import Task
from selfsent.evaluation.tasks.retrieval import RetrievalTask
from selfsent.naming import names
from selfsent.progress import SILENT, Progress
from selfsent.scorers.leaks import LEAKED, holds_stsb
from selfsent.scorers.load_scorer import load_scorer

_SCORERS: dict[Callable[..., Score], tuple[DataSet, ...]] = {
    published.score_pairs: (*catalogue.STS, catalogue.STSB_DEV, *catalogue.STS17),
    published.score_topics: catalogue.ARGUMENTS,
    published.score_translations: catalogue.TATOEBA,
    published.score_askubuntu: (catalogue.ASKUBUNTU,),
    published.score_cqadupstack: (catalogue.CQADUPSTACK,),
    published.score_twitterpara: (catalogue.TWITTERPARA,),
    published.score_scidocs: (catalogue.SCIDOCS,),
}
"""Scorers of single data sets."""
TASKS = {each.name: Task((each,), score) for score, datasets in _SCORERS.items() for each in datasets}
for _name, (_protocol, _datasets) in catalogue.TRANSFER.items():
    TASKS[_name] = Task(_datasets, partial(transfer.score_classification, _name, _protocol))
for _name, _datasets in catalogue.STSB_CROSS.items():
    TASKS[_name] = Task(_datasets, partial(published.score_translated_pairs, _name))


@dataclass(frozen=True)
class Suite:
    """Tasks that are run together.

    Args:
        tasks: their names, in the order of printing.
        averaged: the tasks in the average.
    """

    tasks: tuple[str, ...]
    averaged: tuple[str, ...]


def _suite(tasks: Sequence[str], exclude: Sequence[str] = ()) -> Suite:
    return Suite(tuple(tasks), tuple(name for name in tasks if name not in exclude))


_ARGUMENTS = [dataset.name for dataset in catalogue.ARGUMENTS]
SUITES: dict[str, Suite] = {
    "sts": _suite([dataset.name for dataset in catalogue.STS], exclude=["sickr"]),
    "sts17": _suite([dataset.name for dataset in catalogue.STS17]),
    "tatoeba": _suite([dataset.name for dataset in catalogue.TATOEBA]),
    "stsb-cross": _suite([name for name in catalogue.STSB_CROSS if not name.endswith("-dev")]),
    "transfer": _suite([*catalogue.TRANSFER]),
    "useb": _suite(["askubuntu", "cqadupstack", "twitterpara", "scidocs"]),
    # The two have different scales: an average would be meaningless.
    "afs": _suite(_ARGUMENTS, exclude=_ARGUMENTS),
    # Only `documents`, which can be added to any suite.
    CONTEXT: _suite([]),
}


def evaluate(
    model: Any,
    *,
    suite: str | None = None,
    task: str | Sequence[str] | None = None,
    documents: Corpus | SourceName | None = None,
    hold_out: int | None = None,
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
    progress: Progress | None = None,
) -> Result:
    """Score a model.

    Args:
        model: anything `load_scorer` takes.
        suite: a name in `SUITES`.
        task: one or several names in `TASKS`, instead of a suite.
        documents: a corpus with documents, or anything `read_corpus` reads, for the label-free score `context`.
        hold_out: number of its documents to score, as held out by `train`.
        pairs: a file with columns sentence1, sentence2, score; the score has the name of the file.
        relevance: a file with columns query, text (a relevant one).
        labels: a file with columns text, label.
        columns: names of that file's columns, if different; a list in place of a name joins their texts.
        clean: cleaners of these files and of `documents`, as for `read_corpus`.
        retrieval: a folder in BEIR's layout or a data set of the hub (see `read_task`), or several. The score is called
            `retrieval`, or, for several, `retrieval-` and the name.
        split: of the judgements of `retrieval`.
        data: a mirror of the data sets; by default SELFSENT_DATA, then the hub.
        name: of the model in the result.
        fast: compute in bfloat16 if this machine is faster in it, for models given by directory or hub id.
        int8: likewise, with some products in 8 bits on a CPU that supports them.
        pooling: of the transformer of a directory or hub id, instead of the model's own; it also makes a
            cross-encoder's transformer an encoder.
        classifier: of the suite `transfer` and of `labels`: `exact`, or `senteval` with early stopping, as for
            published scores.
        progress: receives the name of each task before it runs, and how much is done. By default nothing is shown.

    Raises:
        SettingsError: nothing to score, an unknown suite, task or classifier, or `pooling` without a transformer.
        DataError: nothing could be scored, or a user's file is damaged. Otherwise absent sets are named in the result,
            and the rest is scored.
        BaseEncoderError: the model cannot be loaded.
    """
    progress = progress or SILENT
    store = data if isinstance(data, Store) else Store(data)
    how: dict[str, Any] = {"classifier": classifier, "progress": progress}
    asked = {"suite": suite, "task": task, "pairs": pairs, "relevance": relevance, "labels": labels, **how}
    asked |= {"columns": columns, "clean": clean, "retrieval": read_tasks(retrieval, split, store.mirror)}
    chosen, on_files = check_request(**asked, documents=documents is not None)
    corpus = documents
    if documents is not None and not hasattr(documents, "documents"):
        corpus = read_corpus(documents, split_sentences=None, clean=clean)
    scorer = load_scorer(model, name=name, fast=fast, int8=int8, pooling=pooling)
    leaked = holds_stsb(scorer.trained_on)
    aimed = corpus is not None and _aims_at_context(scorer.trained_by)
    options = dict.fromkeys(catalogue.TRANSFER, how)
    tasks: dict[str, Callable[[], Score]] = {
        each: partial(TASKS[each], scorer, store, **options.get(each, {})) for each in chosen
    }
    absent: dict[str, str] = {}
    if corpus is not None:
        text = cast(Corpus, corpus)
        tasks[CONTEXT] = lambda: ContextTask(text, split_documents(text, hold_out)[1]).score(scorer)
    tasks |= {each: partial(score, scorer=scorer) for each, score in on_files.items()}
    scores: dict[str, Score] = {}
    for each, run in tasks.items():
        progress.notice(each)
        try:
            score = run()
        except DataError as error:
            if len(tasks) == 1:
                raise
            absent[each] = str(error).removeprefix(f"{each} is absent: ")
            continue
        marks = {"leaked": leaked and each in chosen and each in LEAKED, "aimed": each == CONTEXT and aimed}
        details = {**score.details, **{mark: True for mark, holds in marks.items() if holds}}
        scores[each] = replace(score, details=details, warnings=(*score.warnings, *scorer.warnings))
    if not scores:
        missing, reason = next(iter(absent.items()))
        raise DataError(f"nothing of {suite or ', '.join(chosen)} could be scored; {missing} is absent: {reason}")
    return Result(name or scorer.name, scores, suite, SUITES[suite].averaged if suite else (), absent)


def _aims_at_context(trained_by: Sequence[str]) -> bool:
    """Whether one of the methods that trained an encoder aims at what `context` measures."""
    if not trained_by:
        return False
    from selfsent.methods import METHODS

    return any(name in METHODS and METHODS[name].aims_at_context for name in trained_by)


def check_request(
    *,
    suite: str | None = None,
    task: str | Sequence[str] | None = None,
    documents: bool = False,
    columns: str | Sequence[Column] | None = None,
    clean: Clean = None,
    retrieval: Sequence[RetrievalTask] = (),
    classifier: transfer.Classifier = "exact",
    progress: Progress = SILENT,
    **files: str | Path | None,
) -> tuple[tuple[str, ...], dict[str, Callable[..., Score]]]:
    """Check the arguments of `evaluate` without a model.

    Arguments as for `evaluate`, without the model.

    Returns:
        (the published tasks to run, and tasks on the user's own files, by name; the files are read here).

    Raises:
        SettingsError: nothing to score, or an unknown suite, task or classifier.
        DataError: a user's file is damaged.
    """
    if classifier not in transfer.CLASSIFIERS:
        raise SettingsError(f"there is no classifier {classifier!r}; {guess(classifier, transfer.CLASSIFIERS)}")
    if suite is not None and task is not None:
        raise SettingsError("suite and task both say what to score: give one of them")
    if suite is not None and suite not in SUITES:
        raise SettingsError(f"there is no suite {suite!r}; {guess(suite, SUITES)}")
    chosen = SUITES[suite].tasks if suite is not None else names(task or ())
    if CONTEXT in (suite, *chosen) and not documents:
        raise SettingsError(f"{CONTEXT} is scored on text of your own: give documents")
    chosen = tuple(dict.fromkeys(name for name in chosen if name != CONTEXT))
    if unknown := [name for name in chosen if name not in TASKS]:
        raise SettingsError(f"there is no task {unknown[0]!r}; {guess(unknown[0], (CONTEXT, *TASKS))}")
    given = {kind: path for kind, path in files.items() if path is not None}
    if not (chosen or documents or given or retrieval):
        flags = "`task`, `suite` or `documents`, or `retrieval`, `pairs`, `relevance`, `labels`"
        raise SettingsError(f"nothing to score: give {flags}")
    columns = names(cast(Any, columns)) or None
    if columns is not None and len(given) != 1:
        raise SettingsError("columns are those of one file of your own: give one of pairs, relevance and labels")
    sets: dict[str, Callable[..., Score]] = {each.name: each.score for each in retrieval}
    on_files: dict[str, Callable[..., Score]] = {}
    for kind, path in given.items():
        read, score = own.OWN[kind]
        rows = read(path, columns, clean)
        if rows.name in (*chosen, *sets, *on_files, CONTEXT, AVERAGE):
            raise SettingsError(f"{path} would go by the name {rows.name}, which another score has: rename the file")
        how = {"classifier": classifier, "progress": progress} if kind == "labels" else {}
        on_files[rows.name] = partial(score, rows, **how)
    return chosen, on_files | sets
