"""The parts of a recipe: values, corpora, tasks, folds and published rows, each checked."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from selfsent.data.corpus import parts as corpus_parts
from selfsent.data.corpus.cleaners import SIGNS, Cleaners
from selfsent.data.corpus.hub import HubDataset
from selfsent.errors import SettingsError
from selfsent.evaluation.datasets.published import Record, records
from selfsent.evaluation.suites import SUITES, TASKS, check_request
from selfsent.evaluation.tasks.arguments import ARGUMENTS
from selfsent.evaluation.tasks.transfer import CLASSIFIERS
from selfsent.models.heads.options import POOLINGS
from selfsent.recipes.document import Section
from selfsent.settings import parse_duration

Source = str | tuple[str | Mapping[str, Any], ...]
"""Of a corpus: a name, several, or several parts with columns of their own."""

_PART = ("source", *corpus_parts.OPTIONS)
_CORPUS = (*_PART, "split_sentences", "clean", "without", "drop_near_duplicates", "stand_in")

StandIn = tuple[Source, Mapping[str, Any]]
"""A corpus that is read where another one is not here: its source, and options of `read_corpus`."""


def fields_of(options: type[Any]) -> dict[str, dataclasses.Field[Any]]:
    """The fields of a dataclass, by name."""
    return {item.name: item for item in dataclasses.fields(options)}


def value_of(section: Section, key: str, item: dataclasses.Field[Any], choices: Collection[str] = ()) -> Any:
    """The value of a setting, which must be of its kind; of those with `choices` these are named."""
    value, kind = section[key], str(item.type)
    if key == "budget" and isinstance(value, str):
        try:
            return parse_duration(value)
        except SettingsError as error:
            section.fail(str(error), key)
    number = type(value) in (int, float)
    if kind.startswith("int"):
        right, wanted = type(value) is int, "a whole number"
    elif kind.startswith("float"):
        right, wanted = number, "a number"
    elif kind.startswith("bool"):
        right, wanted = isinstance(value, bool), "true or false"
    else:
        right, wanted = isinstance(value, str), f"one of {', '.join(choices)}" if choices else "a text"
    if not right:
        section.fail(f"{key} is {value!r}; it must be {wanted}", key)
    return value


def corpus_of(section: Section, name: str, key: str = "corpus") -> tuple[Source, dict[str, Any], StandIn | None]:
    """Source and reading options of a stage's corpus, and what stands in for it where it is not here."""
    found, what = section.get(key), f"the {key} of stage {name}"
    if isinstance(found, str):
        return found, {}, None
    if isinstance(found, list):
        return _source(section, key, what), {}, None
    if not isinstance(found, Section) or "source" not in found:
        section.fail(f"stage {name} needs a {key}: a name, a section with source, or a list of these", key)
    found.only(_CORPUS, what)
    reading = _reading(found)
    if "without" in found:
        reading["without"] = _source(found, "without", f"a part of without of stage {name}")
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
    parts = [_part(part, what) if isinstance(part, Section) else part for part in given]
    if any(isinstance(part, Mapping) for part in parts):
        return tuple({"source": part} if isinstance(part, str) else part for part in parts)
    return tuple(parts)


def _part(part: Section, what: str) -> Mapping[str, Any]:
    part.only(_PART, what)
    if "source" not in part:
        part.fail(f"{what} needs a source")
    if not isinstance(part["source"], str):
        part.fail(f"source is {part['source']!r}; here it must be one name", "source")
    return {"source": part["source"], **_reading(part)}


def _reading(section: Section) -> dict[str, Any]:
    """Options of `read_corpus`, each of its kind."""
    return {key: _option(section, key) for key in section if key not in ("source", "without", "stand_in")}


def _option(section: Section, key: str) -> Any:
    value = section[key]
    if key == "where":
        wanted = section.section(key)
        return {column: _values(wanted, column) for column in wanted}
    if key == "text_columns" or (key == "text_column" and isinstance(value, list)):
        right, must_be = isinstance(value, list) and all(isinstance(name, str) for name in value), "a list of names"
        value = tuple(value) if right else value
    elif key == "clean":
        return _cleaners(section)
    elif key in ("stack", "split_sentences", "drop_near_duplicates"):
        right, must_be = isinstance(value, bool), "true or false"
    else:
        right, must_be = isinstance(value, str), "the name of a column"
    if not right:
        section.fail(f"{key} is {value!r}; it must be {must_be}", key)
    return value


def _cleaners(section: Section) -> tuple[str, ...]:
    """What is taken out of texts: a name, names between commas, or a list of names."""
    value = section["clean"]
    if not isinstance(value, str) and not (isinstance(value, list) and all(isinstance(name, str) for name in value)):
        section.fail(f"clean is {value!r}; it must be a list of {', '.join(SIGNS)}", "clean")
    try:
        return Cleaners(value).names
    except SettingsError as error:
        section.fail(str(error), "clean")


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


def tasks_of(section: Section, key: str) -> dict[str, Any]:
    """What to evaluate on, and with which pooling and classifier, as `evaluate` takes it."""
    found = section.get(key)
    if found is None:
        return {}
    if not isinstance(found, Section):
        return _asked(section, key)
    choices = {"pooling": POOLINGS, "classifier": CLASSIFIERS}
    found.only(("tasks", *choices), key)
    if "tasks" not in found:
        found.fail(f"{key} needs tasks: a suite, a task, or a list of tasks")
    given = {name: found[name] for name in choices if found.get(name) is not None}
    for name, value in given.items():
        if value not in tuple(choices[name]):
            found.fail(f"{name} is {value!r}; it must be one of {', '.join(choices[name])}", name)
    return _asked(found, "tasks") | given


def _asked(section: Section, key: str) -> dict[str, Any]:
    """A suite, or tasks; of several suites and tasks, the tasks of all."""
    found = section[key]
    names = [found] if isinstance(found, str) else found
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        section.fail(f"{key} must be a suite, a task, or a list of tasks", key)
    asked = {"suite": names[0]} if len(names) == 1 and names[0] in SUITES else {"task": _tasks_in(names)}
    try:
        check_request(**asked)
    except SettingsError as error:
        section.fail(str(error), key)
    return asked


def _tasks_in(names: Sequence[str]) -> list[str]:
    """The tasks of a list of suites and tasks, each once; `afs`, which is both, is the task."""
    suites = {name: suite.tasks for name, suite in SUITES.items() if name not in TASKS}
    tasks = [task for name in names for task in suites.get(name, (name,))]
    return list(dict.fromkeys(tasks))


def names_of(asked: Mapping[str, Any]) -> Sequence[str]:
    """The single tasks of what is asked for."""
    return SUITES[asked["suite"]].tasks if "suite" in asked else asked.get("task", ())


def folds_of(document: Section) -> Folds | None:
    """Data set and split of a cross-validation; None where there is none."""
    if "cross_validate" not in document:
        return None
    section = document.section("cross_validate")
    section.only(("data", "by", "stand_in"), "cross_validate")
    names = [dataset.name for dataset in ARGUMENTS]
    for key in ("data", "stand_in"):
        if section.get(key) not in (*names, *([None] if key == "stand_in" else [])):
            section.fail(f"{key} is {section.get(key)!r}; it must be one of {', '.join(names)}", key)
    by = section.get("by")
    if by not in ("10-fold", "cross-topic"):
        section.fail(f"by is {by!r}; it must be 10-fold or cross-topic", "by")
    return Folds(str(section["data"]), str(by), section.get("stand_in"))


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


DIFFERS = "differs"
"""What a recipe says of a published row: how it differs from that."""
_PUBLISHED = "published must be a list of sections such as {paper: IS-BERT, table: 4}, or a section of named ones"


def published_of(document: Section) -> tuple[Record, ...]:
    """The published records that the recipe names."""
    entries = document.get("published")
    if isinstance(entries, Section):
        entries = list(entries.values())
    if not isinstance(entries, list | None) or not all(isinstance(entry, Section) for entry in entries or ()):
        document.fail(_PUBLISHED, "published")
    return tuple(record for entry in entries or () for record in _records(entry))


def _records(entry: Section) -> list[Record]:
    entry.only(("paper", "table", "method", "group", "dataset", "metric", DIFFERS), "a published row")
    wanted = {key: str(value) for key, value in entry.items() if key != DIFFERS}
    rows = [record for record in records() if all(str(record.get(key)) == value for key, value in wanted.items())]
    if not rows:
        entry.fail(f"there is no published number with {', '.join(f'{k} {v}' for k, v in wanted.items())}")
    return [{**row, DIFFERS: str(entry[DIFFERS])} for row in rows] if entry.get(DIFFERS) else rows


def texts_of(document: Section, key: str) -> tuple[str, ...]:
    """A list of texts; one alone may stand without brackets."""
    given = document.get(key)
    found = [given] if isinstance(given, str) else given or []
    if not isinstance(found, list) or not all(isinstance(text, str) for text in found):
        document.fail(f"{key} must be a list of texts", key)
    return tuple(found)
