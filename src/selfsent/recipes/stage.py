"""One stage of a recipe: its corpus, method, arguments and tasks, read from YAML and checked."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from selfsent.data.corpus.cleaners import Cleaners
from selfsent.data.corpus.hub import HubDataset
from selfsent.data.corpus.sources import OPTIONS
from selfsent.errors import SettingsError, guess
from selfsent.evaluation.suites import SUITES, TASKS, check_request
from selfsent.evaluation.tasks.transfer import CLASSIFIERS
from selfsent.methods import METHODS, Method
from selfsent.models.heads.options import HEADS, POOLINGS
from selfsent.recipes.document import Section
from selfsent.settings import Settings, choices_of, former_names, parse_duration
from selfsent.training.plan import Plan
from selfsent.training.run_config import ModelOptions, RunConfig

Source = str | tuple[str | Mapping[str, Any], ...]
"""Source of a corpus: a name, several, or several with their own columns."""
FOLD = "fold"
"""Corpus of a stage trained on the pairs of each fold of a cross-validation."""
_SOURCE = ("source", *OPTIONS)
_CORPUS = (*_SOURCE, "split_sentences", "passages", "clean", "without", "stand_in")
_TYPES = {"text_column": "names", "text_columns": "columns", "clean": "names", "stack": "bool"}
_TYPES |= {"split_sentences": "bool", "passages": "int"}
"""Types of options of `read_corpus`, other than single columns."""


@dataclass(frozen=True)
class Stage:
    """One training of a recipe.

    Args:
        name: of the stage, and of its directory.
        method: the learning method.
        source: of the corpus, as for `read_corpus`, or `FOLD`.
        reading: options of `read_corpus`.
        arguments: of `selfsent.train`, including settings and options.
        tasks: of the trained model: `suite` or `task` of `evaluate`.
        stand_in: source and options of a replacement, if this corpus is missing.
    """

    name: str
    method: Method
    source: Source
    reading: Mapping[str, Any]
    arguments: Mapping[str, Any]
    tasks: Mapping[str, Any] = field(default_factory=dict)
    stand_in: tuple[Source, Mapping[str, Any]] | None = None

    @property
    def defaults(self) -> Mapping[str, Any]:
        """Default arguments of `selfsent.train`: the papers' models train on all pairs."""
        paired = any("text_columns" in each for each in (self.reading, *self.source) if not isinstance(each, str))
        return {"hold_out": 0} if paired and self.arguments.get("dev") != "context" else {}

    def plan(self, base: str) -> Plan:
        """The resolved plan of the stage, from a base."""
        arguments = {name: value for name, value in self.arguments.items() if name not in _RUN}
        if self.arguments.get("augmentations") and "columns" in fields_of(self.method.options):
            arguments.setdefault("columns", True)
        return Plan.resolve(self.method, base, **arguments)

    def to_json(self) -> dict[str, Any]:
        """Everything that decides the result."""
        reading = {"without" if name == "exclude" else name: value for name, value in self.reading.items()}
        plain = {"method": self.method.name, "corpus": {"source": self.source, **reading}}
        return plain | dict(self.arguments) | ({"evaluate": dict(self.tasks)} if self.tasks else {})


def fields_of(*options: type[Any]) -> dict[str, str]:
    """Annotations of the fields of dataclasses, by name."""
    return {item.name: str(item.type) for kind in options for item in dataclasses.fields(kind)}


_NOT_OF_STAGES = ("data", "warranty", "scorer", "clock")
_RUN = {name: kind for name, kind in fields_of(RunConfig).items() if name not in _NOT_OF_STAGES} | {"hold_out": "int"}
_ARGUMENTS = fields_of(ModelOptions) | _RUN | {"whiten": "float | bool"}
"""Arguments of `selfsent.train` allowed in a stage, besides settings and options."""


def sources_of(source: Source) -> list[str]:
    """The names of all sources of a corpus."""
    return [str(each["source"]) if isinstance(each, Mapping) else each for each in as_tuple(source)]


def as_tuple(value: Any) -> tuple[Any, ...]:
    """One value, or several, as a tuple."""
    return value if isinstance(value, tuple) else (value,)


def located(source: Any, mirror: str | Path | None) -> Any:
    """A source for `read_corpus`: the given one, or its copy in the mirror of the data sets if it is missing."""
    if isinstance(source, Mapping):
        return {**source, "source": located(source["source"], mirror)}
    if isinstance(source, tuple):
        return [located(each, mirror) for each in source]
    if not mirror or Path(source).exists():
        return source
    if (Path(mirror) / source).is_file():
        return str(Path(mirror) / source)
    dataset = HubDataset.parse(source)
    return str((dataset and dataset.mirrored(mirror)) or source)


def read_stage(name: str, sections: Section, common: Section, seed: int | None) -> Stage:
    """Read the stage of a name.

    Args:
        name: of the stage.
        sections: of all stages.
        common: settings of every stage.
        seed: of the recipe, in place of the stage's.

    Raises:
        SettingsError: with file and line.
    """
    if not name.replace("-", "").replace("_", "").isalnum():
        sections.fail(f"{name!r} cannot name a directory: use letters, digits, - and _", name)
    section = sections.section(name)
    method = METHODS.get(str(section.get("method")))
    if method is None:
        given = str(section.get("method"))
        section.fail(f"stage {name} needs a method, not {given}; {guess(given, METHODS)}", "method")
    head = HEADS.get(str(section.get("head") or common.get("head")), method.options)
    options = (method.options, head, Settings)
    choices = {key: values for kind in (*options, ModelOptions) for key, values in choices_of(kind).items()}
    fields = fields_of(*options) | _ARGUMENTS
    for old, new in {**former_names(method.options), **former_names(RunConfig)}.items():
        section.rename(old, new)
        common.rename(old, new)
    section.only(["method", "corpus", "evaluate", *fields], f"stage {name} ({method.name})")
    common.only(fields_of(Settings) | _ARGUMENTS, "all")
    arguments: dict[str, Any] = {}
    for source in (common, section):
        for key in (key for key in source if key in fields):
            arguments[key] = _value(source, key, fields[key], choices.get(key, ()))
    for key in ("keep_best", "dev_every"):
        if arguments.get(key) and "dev" not in arguments:
            section.fail(f"{key} needs dev to say what to score", key)
    if seed is not None:
        arguments["seed"] = seed
    origin, reading, stand_in = _corpus(section, name)
    return Stage(name, method, origin, reading, arguments, read_tasks(section), stand_in)


def _value(section: Section, key: str, annotation: str, choices: Sequence[str]) -> Any:
    value = section[key]
    if key == "budget" and isinstance(value, str):
        try:
            return parse_duration(value)
        except SettingsError as error:
            section.fail(str(error), key)
    if key == "dev" and value not in ("context", *TASKS):
        section.fail(f"dev is {value!r}; {guess(str(value), ('context', *TASKS))}", key)
    return section.typed(key, annotation, choices)


def _corpus(section: Section, name: str, key: str = "corpus") -> tuple[Source, dict[str, Any], Any]:
    """Source and reading options of a stage's corpus, and its stand-in."""
    found, what = section.get(key), f"the {key} of stage {name}"
    if isinstance(found, str | list):
        return _source(section, key, what), {}, None
    if not isinstance(found, Section) or "source" not in found:
        section.fail(f"stage {name} needs a {key}: a name, a section with source, or a list of these", key)
    found.only(_CORPUS, what)
    reading = _reading(found)
    if "without" in found:
        reading["exclude"] = _source(found, "without", f"a part of without of stage {name}")
    stand_in = None
    if isinstance(found.get("stand_in"), str):  # of the same columns
        stand_in = found["stand_in"], reading
    elif "stand_in" in found:
        stand_in = _corpus(found, name, "stand_in")[:2]
    return _source(found, "source", f"a part of {what}"), reading, stand_in


def _source(section: Section, key: str, what: str) -> Source:
    """A name, or a list of names and of sections with source and columns."""
    given = section[key]
    if isinstance(given, str):
        return given
    if not isinstance(given, list) or not given or not all(isinstance(part, str | Section) for part in given):
        section.fail(f"{key} is {given!r}; it must be a name, or a list of names and of sections with source", key)
    for part in given:
        if isinstance(part, Section):
            part.only(_SOURCE, what)
            if "source" not in part:
                part.fail(f"{what} needs a source")
            part.typed("source", "name")
    if all(isinstance(part, str) for part in given):
        return tuple(given)
    return tuple({"source": part} if isinstance(part, str) else {**part, **_reading(part)} for part in given)


def _reading(section: Section) -> dict[str, Any]:
    """Options of `read_corpus`."""
    skipped = ("source", "without", "stand_in", "where")
    found = {key: section.typed(key, _TYPES.get(key, "column")) for key in section if key not in skipped}
    if "where" in section:
        wanted, found["where"] = section.section("where"), {}
        for column, given in wanted.items():
            values = given if isinstance(given, list) else [given]
            if not values or not all(isinstance(value, str | int | float) for value in values):
                wanted.fail(f"{column} is {given!r}; under where it must be a value, or a list of values", column)
            found["where"][column] = list(map(str, values))
    if "clean" in found:
        try:
            found["clean"] = Cleaners(found["clean"]).names
        except SettingsError as error:
            section.fail(str(error), "clean")
    return found


def read_tasks(section: Section) -> dict[str, Any]:
    """Arguments of `evaluate`: tasks, pooling and classifier.

    Raises:
        SettingsError: with file and line.
    """
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
    names = as_tuple(section.typed(key, "names"))
    # `afs` is both a suite and a task: alone it is the suite, in a list the task.
    suites = {name: suite.tasks for name, suite in SUITES.items() if name not in TASKS}
    tasks = list(dict.fromkeys(task for name in names for task in suites.get(name, (name,))))
    request = {"suite": names[0]} if len(names) == 1 and names[0] in SUITES else {"task": tasks}
    try:
        check_request(**request)
    except SettingsError as error:
        section.fail(str(error), key)
    return request | given


def task_names(tasks: Mapping[str, Any]) -> Sequence[str]:
    """The single tasks of arguments of `evaluate`."""
    return SUITES[tasks["suite"]].tasks if "suite" in tasks else tasks.get("task", ())


def plan_stage(stage: Stage, base: str, section: Section, common: Section) -> Plan:
    """The plan of a stage, checked against the recipe's description of its corpus.

    Raises:
        SettingsError: with file and line.
    """
    try:
        plan = stage.plan(base)
    except SettingsError as error:
        text = str(error)
        for source in (section, common):
            for key in source:
                if f"--{key.replace('_', '-')}" in text or key in text.split():
                    source.fail(text, key)
        section.fail(text)
    if stage.source == FOLD:
        return plan
    parts = [{**stage.reading, **(each if isinstance(each, Mapping) else {})} for each in as_tuple(stage.source)]
    wanted, needs = plan.options.labels(), f"stage {stage.name}: {stage.method.name} needs"
    if wanted and not any(part.get("label_column") or part.get("score_column") for part in parts):
        column = "label_column" if wanted.kind == "class" else "score_column"
        section.fail(f"{needs} a {wanted.kind} for each row: name its column in the corpus, with {column}", "corpus")
    columns = max(1 if part.get("stack") else len(part.get("text_columns") or "1") for part in parts)
    if plan.columns > columns and not stage.arguments.get("augmentations"):
        section.fail(f"{needs} {plan.columns} text columns: name them in the corpus, with text_columns", "corpus")
    return plan
