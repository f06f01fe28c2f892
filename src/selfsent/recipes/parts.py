"""The parts of a recipe: corpora, tasks, folds and published rows, each checked."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from selfsent.data.corpus.cleaners import Cleaners
from selfsent.data.corpus.hub import HubDataset
from selfsent.data.corpus.sources import OPTIONS
from selfsent.errors import SettingsError
from selfsent.evaluation.suites import SUITES, TASKS, check_request
from selfsent.evaluation.tasks.arguments import ARGUMENTS
from selfsent.evaluation.tasks.transfer import CLASSIFIERS
from selfsent.models.heads.options import POOLINGS
from selfsent.recipes.document import Section

Source = str | tuple[str | Mapping[str, Any], ...]
"""Of a corpus: a name, several, or several parts with columns of their own."""
StandIn = tuple[Source, Mapping[str, Any]]
"""A corpus that is read where another one is not here: its source, and options of `read_corpus`."""

_PART = ("source", *OPTIONS)
_CORPUS = (*_PART, "split_sentences", "clean", "without", "drop_near_duplicates", "stand_in")
_KINDS = {"text_column": "Names", "text_columns": "Columns", "clean": "Names"}
_KINDS |= dict.fromkeys(("stack", "split_sentences", "drop_near_duplicates"), "bool")
"""The options of `read_corpus` that are no name of a column."""


def corpus_of(section: Section, name: str, key: str = "corpus") -> tuple[Source, dict[str, Any], StandIn | None]:
    """Source and reading options of a stage's corpus, and what stands in for it where it is not here."""
    found, what = section.get(key), f"the {key} of stage {name}"
    if isinstance(found, str | list):
        return _source(section, key, what), {}, None
    if not isinstance(found, Section) or "source" not in found:
        section.fail(f"stage {name} needs a {key}: a name, a section with source, or a list of these", key)
    found.only(_CORPUS, what)
    reading = _reading(found)
    if "without" in found:
        reading["exclude"] = _source(found, "without", f"a part of without of stage {name}")
    source = _source(found, "source", f"a part of {what}")
    stand_in: StandIn | None = None
    if isinstance(found.get("stand_in"), str):  # of the same columns
        stand_in = (str(found["stand_in"]), reading)
    elif "stand_in" in found:
        stand_in = corpus_of(found, name, "stand_in")[:2]
    return source, reading, stand_in


def _source(section: Section, key: str, what: str) -> Source:
    """A name, or a list of names and of sections with a source and columns of its own."""
    given = section[key]
    if isinstance(given, str):
        return given
    if not isinstance(given, list) or not given or not all(isinstance(part, str | Section) for part in given):
        section.fail(f"{key} is {given!r}; it must be a name, or a list of names and of sections with source", key)
    for part in given:
        if isinstance(part, Section):
            part.only(_PART, what)
            if "source" not in part:
                part.fail(f"{what} needs a source")
            part.typed("source", "Name")
    if all(isinstance(part, str) for part in given):
        return tuple(given)
    return tuple({"source": part} if isinstance(part, str) else {**part, **_reading(part)} for part in given)


def _reading(section: Section) -> dict[str, Any]:
    """Options of `read_corpus`, each of its kind."""
    others = ("source", "without", "stand_in", "where")
    found = {key: section.typed(key, _KINDS.get(key, "Column")) for key in section if key not in others}
    if "where" in section:
        wanted = section.section("where")
        found["where"] = {column: _values(wanted, column) for column in wanted}
    if "clean" in found:
        try:
            found["clean"] = Cleaners(found["clean"]).names
        except SettingsError as error:
            section.fail(str(error), "clean")
    return found


def _values(wanted: Section, column: str) -> list[str]:
    """What a row may have in a column, as text."""
    given = wanted[column]
    values = given if isinstance(given, list) else [given]
    if not values or not all(isinstance(value, str | int | float) for value in values):
        wanted.fail(f"{column} is {given!r}; under where it must be a value, or a list of values", column)
    return [str(value) for value in values]


def placed(source: Source | Mapping[str, Any], mirror: str | Path | None) -> Any:
    """Where a corpus lies: a file or data set that is not here is looked for in a mirror of the data sets."""
    if isinstance(source, Mapping):
        return {**source, "source": placed(source["source"], mirror)}
    if isinstance(source, tuple):
        return [placed(each, mirror) for each in source]
    if not mirror or Path(source).exists():
        return source
    if (Path(mirror) / source).is_file():
        return str(Path(mirror) / source)
    dataset = HubDataset.parse(source)
    return str((dataset and dataset.mirrored(mirror)) or source)


def tasks_of(section: Section) -> dict[str, Any]:
    """What to evaluate on, and with which pooling and classifier, as `evaluate` takes it."""
    found, key = section.get("evaluate"), "evaluate"
    if found is None:
        return {}
    given: dict[str, Any] = {}
    if isinstance(found, Section):
        choices = {"pooling": POOLINGS, "classifier": CLASSIFIERS}
        found.only(("tasks", *choices), key)
        if "tasks" not in found:
            found.fail(f"{key} needs tasks: a suite, a task, or a list of tasks")
        given = {name: found.one_of(name, choices[name]) for name in choices if found.get(name) is not None}
        section, key = found, "tasks"
    names = section.typed(key, "Names")
    names = (names,) if isinstance(names, str) else names
    # `afs`, which is both a suite and a task, is the suite alone and the task in a list.
    suites = {name: suite.tasks for name, suite in SUITES.items() if name not in TASKS}
    tasks = list(dict.fromkeys(task for name in names for task in suites.get(name, (name,))))
    asked = {"suite": names[0]} if len(names) == 1 and names[0] in SUITES else {"task": tasks}
    try:
        check_request(**asked)
    except SettingsError as error:
        section.fail(str(error), key)
    return asked | given


def names_of(asked: Mapping[str, Any]) -> Sequence[str]:
    """The single tasks of what is asked for."""
    return SUITES[asked["suite"]].tasks if "suite" in asked else asked.get("task", ())


@dataclasses.dataclass(frozen=True)
class Folds:
    """A cross-validation.

    Args:
        data: the data set of argument pairs.
        by: how it is split.
        stand_in: the data set that is taken where `data` is not here.
    """

    data: str
    by: str
    stand_in: str | None = None


def folds_of(document: Section) -> Folds | None:
    """Data set and split of a cross-validation; None where there is none."""
    if "cross_validate" not in document:
        return None
    section = document.section("cross_validate")
    section.only(("data", "by", "stand_in"), "cross_validate")
    names = [dataset.name for dataset in ARGUMENTS]
    data, by = section.one_of("data", names), section.one_of("by", ("10-fold", "cross-topic"))
    return Folds(data, by, section.one_of("stand_in", names) if section.get("stand_in") is not None else None)


def published_of(document: Section) -> tuple[Section, ...]:
    """The rows of the papers' tables that the recipe names, as it names them."""
    entries = document.get("published") or []
    entries = list(entries.values()) if isinstance(entries, Section) else entries
    if not isinstance(entries, list) or not all(isinstance(entry, Section) for entry in entries):
        document.fail(
            "published must be a list of sections such as {paper: IS-BERT, table: 4}, or a section of named ones",
            "published",
        )
    return tuple(entries)
