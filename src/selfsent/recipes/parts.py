"""The parts of a recipe: values, corpora, tasks, folds and published rows, each checked."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from selfsent.errors import SettingsError
from selfsent.evaluation.arguments import ARGUMENTS
from selfsent.evaluation.published import Record, records
from selfsent.evaluation.tasks import SUITES, check_request
from selfsent.recipes.document import Section
from selfsent.settings import parse_duration

_CORPUS = (
    *("source", "text_column", "text_columns", "document_column", "label_column", "score_column"),
    *("split_sentences", "where", "stack"),
)


def fields_of(options: type[Any]) -> dict[str, dataclasses.Field[Any]]:
    """The fields of a dataclass, by name."""
    return {item.name: item for item in dataclasses.fields(options)}


def value_of(section: Section, key: str, item: dataclasses.Field[Any]) -> Any:
    """The value of a setting, which must be of its kind."""
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
    elif kind == "bool":
        right, wanted = isinstance(value, bool), "true or false"
    else:
        right, wanted = isinstance(value, str), f"one of {', '.join(map(str, item.metadata.get('choices', ())))}"
    if not right:
        section.fail(f"{key} is {value!r}; it must be {wanted}", key)
    return value


def corpus_of(section: Section, name: str) -> tuple[str | tuple[str, ...], dict[str, Any]]:
    """Source and reading options of a stage's corpus."""
    found = section.get("corpus")
    if isinstance(found, str):
        return found, {}
    if not isinstance(found, Section) or "source" not in found:
        section.fail(f"stage {name} needs a corpus: a name, or a section with source", "corpus")
    found.only(_CORPUS, f"the corpus of stage {name}")
    source = found["source"]
    reading = {key: value for key, value in found.items() if key != "source"}
    if isinstance(reading.get("text_columns"), list):
        reading["text_columns"] = tuple(map(str, reading["text_columns"]))
    if "where" in reading:
        where = found.section("where")
        reading["where"] = {
            key: [str(each) for each in value] if isinstance(value, list) else [str(value)]
            for key, value in where.items()
        }
    return (tuple(map(str, source)) if isinstance(source, list) else str(source)), reading


def tasks_of(section: Section, key: str) -> dict[str, Any]:
    """What to evaluate on, as `evaluate` takes it."""
    found = section.get(key)
    if found is None:
        return {}
    names = [found] if isinstance(found, str) else found
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        section.fail(f"{key} must be a suite, a task, or a list of tasks", key)
    asked: dict[str, Any] = {"suite": names[0]} if len(names) == 1 and names[0] in SUITES else {"task": names}
    try:
        check_request(**asked)
    except SettingsError as error:
        section.fail(str(error), key)
    return asked


def names_of(asked: Mapping[str, Any]) -> Sequence[str]:
    """The single tasks of what is asked for."""
    return SUITES[asked["suite"]].tasks if "suite" in asked else asked.get("task", ())


def folds_of(document: Section) -> tuple[str, str] | None:
    """Data set and split of a cross-validation; None where there is none."""
    if "cross_validate" not in document:
        return None
    section = document.section("cross_validate")
    section.only(("data", "by"), "cross_validate")
    data, by = section.get("data"), section.get("by")
    names = [dataset.name for dataset in ARGUMENTS]
    if data not in names:
        section.fail(f"data is {data!r}; it must be one of {', '.join(names)}", "data")
    if by not in ("10-fold", "cross-topic"):
        section.fail(f"by is {by!r}; it must be 10-fold or cross-topic", "by")
    return str(data), str(by)


def published_of(document: Section) -> tuple[Record, ...]:
    """The published records that the recipe names."""
    found: list[Record] = []
    for entry in document.get("published") or []:
        if not isinstance(entry, Section):
            document.fail("published must be a list of sections such as {paper: IS-BERT, table: 4}", "published")
        entry.only(("paper", "table", "method", "group", "dataset", "metric"), "a published row")
        wanted = {key: str(value) for key, value in entry.items()}
        rows = [record for record in records() if all(str(record.get(key)) == value for key, value in wanted.items())]
        if not rows:
            entry.fail(f"there is no published number with {', '.join(f'{k} {v}' for k, v in wanted.items())}")
        found += rows
    return tuple(found)
