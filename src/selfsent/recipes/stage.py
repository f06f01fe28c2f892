"""One stage of a recipe: what it learns, from what, and what it may say."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NoReturn

from selfsent.errors import SettingsError, guess
from selfsent.evaluation.suites import TASKS
from selfsent.methods import METHODS, Method
from selfsent.models.heads.options import HEADS
from selfsent.recipes.document import Section
from selfsent.recipes.parts import Source, StandIn, corpus_of, tasks_of
from selfsent.settings import Settings, choices_of, parse_duration
from selfsent.training.plan import Plan, make_plan

FOLD = "fold"
"""The corpus of a stage that is trained on the pairs of each fold of a cross-validation."""


@dataclass(frozen=True)
class TrainArguments:
    """The arguments of `selfsent.train`, beside settings and options, that a stage may give."""

    preset: str
    pooling: str
    head: str
    views: str
    dev: str
    sentences: int
    hold_out: int
    checkpoint_every: int
    keep: int
    dev_every: int
    keep_best: bool
    dropout: float
    whiten: float | bool


_PLANNED = ("preset", "pooling", "dropout", "whiten", "head")


@dataclass(frozen=True)
class Stage:
    """One training of a recipe.

    Args:
        name: its name, which is that of its directory.
        method: what is learned.
        source: of the corpus, as `read_corpus` takes it, or `FOLD`.
        reading: options of `read_corpus`.
        arguments: of `selfsent.train`, settings and options among them.
        tasks: what the model is scored on when the stage is done: `suite` or `task` of `evaluate`.
        stand_in: the corpus that is read where this one is not here.
    """

    name: str
    method: Method
    source: Source
    reading: Mapping[str, Any]
    arguments: Mapping[str, Any]
    tasks: Mapping[str, Any] = field(default_factory=dict)
    stand_in: StandIn | None = None

    @property
    def sources(self) -> list[str]:
        """The names of all that the corpus is made of."""
        return sources_of(self.source)

    @property
    def kept_whole(self) -> Mapping[str, Any]:
        """What keeps no pairs apart unless the recipe says so: the models of the papers were trained on all."""
        parts = [self.reading, *(part for part in self.source if not isinstance(part, str))]
        paired = any("text_columns" in part for part in parts)
        return {"hold_out": 0} if paired and self.arguments.get("dev") != "context" else {}

    def plan(self, base: str) -> Plan:
        """The stage resolved, from some base."""
        changes = {name: value for name, value in self.arguments.items() if name not in fields_of(TrainArguments)}
        if self.arguments.get("views") and "columns" in fields_of(self.method.options):
            changes.setdefault("columns", True)
        known = {name: self.arguments[name] for name in _PLANNED if name in self.arguments}
        return make_plan(self.method, base, **known, **changes)

    def to_json(self) -> dict[str, Any]:
        """Everything that decides its result."""
        plain = {"method": self.method.name, "corpus": {"source": self.source, **self.reading}}
        return plain | dict(self.arguments) | ({"evaluate": dict(self.tasks)} if self.tasks else {})


def fields_of(*options: type[Any]) -> dict[str, str]:
    """The annotations of dataclasses' fields, by name."""
    return {item.name: str(item.type) for kind in options for item in dataclasses.fields(kind)}


def sources_of(source: Source) -> list[str]:
    """The names of all that a corpus is made of."""
    parts = [source] if isinstance(source, str) else source
    return [part if isinstance(part, str) else str(part["source"]) for part in parts]


def stage_of(name: str, sections: Section, common: Section, seed: int | None) -> Stage:
    """The stage of a name, with what all stages have in common.

    Raises:
        SettingsError: what is wrong with it, with file and line.
    """
    if not name.replace("-", "").replace("_", "").isalnum():
        sections.fail(f"{name!r} cannot name a directory: use letters, digits, - and _", name)
    section = sections.section(name)
    given = str(section.get("method"))
    if given not in METHODS:
        section.fail(f"stage {name} needs a method, not {given}; {guess(given, METHODS)}", "method")
    method = METHODS[given]
    head = HEADS.get(str(section.get("head") or common.get("head")), method.options)
    kinds = (method.options, head, Settings, TrainArguments)
    choices = {name: values for kind in kinds[:3] for name, values in choices_of(kind).items()}
    fields = fields_of(*kinds)
    section.only(["method", "corpus", "evaluate", *fields], f"stage {name} ({given})")
    common.only(fields_of(Settings, TrainArguments), "all")
    arguments: dict[str, Any] = {}
    for source in (common, section):
        for key in (key for key in source if key in fields):
            arguments[key] = _value(source, key, fields[key], choices.get(key, ()))
    for key in ("keep_best", "dev_every"):
        if arguments.get(key) and "dev" not in arguments:
            section.fail(f"{key} needs dev to say what to score", key)
    if seed is not None:
        arguments["seed"] = seed
    origin, reading, stand_in = corpus_of(section, name)
    return Stage(name, method, origin, reading, arguments, tasks_of(section), stand_in)


def _value(section: Section, key: str, kind: str, choices: tuple[str, ...]) -> Any:
    """The value of a setting, which must be of its kind."""
    if key == "budget" and isinstance(section[key], str):
        try:
            return parse_duration(section[key])
        except SettingsError as error:
            section.fail(str(error), key)
    value = section.typed(key, kind, choices)
    if key == "dev" and value != "context" and value not in TASKS:
        section.fail(f"dev is {value!r}; {guess(value, ('context', *TASKS))}", key)
    return value


def planned_of(stage: Stage, base: str, section: Section, common: Section) -> Plan:
    """The plan of a stage; what is wrong with its settings, or lacks in its corpus, is said with a line."""
    try:
        plan = stage.plan(base)
    except SettingsError as error:
        _at_its_line(error, section, common)
    if stage.source == FOLD:
        return plan
    given = stage.source if isinstance(stage.source, tuple) else ()
    parts = [{**stage.reading, **(each if isinstance(each, Mapping) else {})} for each in given or [{}]]
    wanted, needs = plan.options.labels(), f"stage {stage.name}: {stage.method.name} needs"
    if wanted and not any(part.get("label_column") or part.get("score_column") for part in parts):
        column = "label_column" if wanted.kind == "class" else "score_column"
        section.fail(f"{needs} a {wanted.kind} for each row: name its column in the corpus, with {column}", "corpus")
    columns = max(1 if part.get("stack") else len(part.get("text_columns") or "1") for part in parts)
    if plan.columns > columns and not stage.arguments.get("views"):
        section.fail(f"{needs} {plan.columns} text columns: name them in the corpus, with text_columns", "corpus")
    return plan


def _at_its_line(error: SettingsError, section: Section, common: Section) -> NoReturn:
    text = str(error)
    for source in (section, common):
        for key in source:
            if f"--{key.replace('_', '-')}" in text or key in text.split():
                source.fail(text, key)
    section.fail(text)
