"""One stage of a recipe: what it learns, from what, and what it may say."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

from selfsent.errors import SettingsError, guess
from selfsent.evaluation.suites import TASKS
from selfsent.methods import METHODS, Method
from selfsent.models.heads.options import HEADS
from selfsent.recipes.document import Section
from selfsent.recipes.parts import Source, StandIn, corpus_of, fields_of, tasks_of, value_of
from selfsent.settings import Settings, choices_of
from selfsent.training.plan import Plan, make_plan

FOLD = "fold"
"""The corpus of a stage that is trained on the pairs of each fold of a cross-validation."""

_TRAIN: dict[str, Callable[[Any], bool]] = {
    **dict.fromkeys(("preset", "pooling", "head", "views"), lambda value: isinstance(value, str)),
    "dev": lambda value: isinstance(value, str) and (value == "context" or value in TASKS),
    **dict.fromkeys(
        ("sentences", "hold_out", "checkpoint_every", "keep", "dev_every"), lambda value: type(value) is int
    ),
    "keep_best": lambda value: isinstance(value, bool),
    "dropout": lambda value: type(value) in (int, float),
    "whiten": lambda value: type(value) in (bool, int, float),
}
"""The arguments of `selfsent.train` that a stage may give, and what their values must be."""
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

    def plan(self, base: str) -> Plan:
        """The stage resolved, from some base."""
        changes = {name: value for name, value in self.arguments.items() if name not in _TRAIN}
        if self.arguments.get("views") and "columns" in fields_of(self.method.options):
            changes.setdefault("columns", True)
        known = {name: self.arguments[name] for name in _PLANNED if name in self.arguments}
        return make_plan(self.method, base, **known, **changes)

    def to_json(self) -> dict[str, Any]:
        """Everything that decides its result."""
        plain = {"method": self.method.name, "corpus": {"source": self.source, **self.reading}}
        return plain | dict(self.arguments) | ({"evaluate": dict(self.tasks)} if self.tasks else {})


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
    head = str(section.get("head") or common.get("head"))
    kinds: tuple[type[Any], ...] = (method.options, HEADS.get(head, method.options), Settings)
    choices = {name: values for kind in kinds for name, values in choices_of(kind).items()}
    fields = fields_of(method.options) | fields_of(HEADS.get(head, method.options)) | fields_of(Settings)
    section.only(["method", "corpus", "evaluate", *_TRAIN, *fields], f"stage {name} ({given})")
    common.only([*_TRAIN, *fields_of(Settings)], "all")
    arguments: dict[str, Any] = {}
    for source in (common, section):
        for key in source:
            if key in _TRAIN and not _TRAIN[key](source[key]):
                source.fail(f"{key} cannot be {source[key]!r}", key)
            if key in _TRAIN or key in fields:
                known = key in _TRAIN
                arguments[key] = source[key] if known else value_of(source, key, fields[key], choices.get(key, ()))
    for key in ("keep_best", "dev_every"):
        if arguments.get(key) and "dev" not in arguments:
            section.fail(f"{key} needs dev to say what to score", key)
    if seed is not None:
        arguments["seed"] = seed
    origin, reading, stand_in = corpus_of(section, name)
    return Stage(name, method, origin, reading, arguments, tasks_of(section, "evaluate"), stand_in)


def planned_of(stage: Stage, base: str, section: Section, common: Section) -> Plan:
    """The plan of a stage; what is wrong with its settings is said with a line."""
    try:
        return stage.plan(base)
    except SettingsError as error:
        _at_its_line(error, section, common)


def check_columns(stage: Stage, plan: Plan, section: Section) -> None:
    """Refuse a corpus of which no part is said to have the columns that the method reads."""
    if stage.source == FOLD:
        return
    given = [each if isinstance(each, Mapping) else {} for each in stage.source] if _is_list(stage.source) else [{}]
    parts = [{**stage.reading, **each} for each in given]
    wanted = plan.options.labels()
    if wanted and not any(part.get("label_column") or part.get("score_column") for part in parts):
        column = "label_column" if wanted.kind == "class" else "score_column"
        section.fail(
            f"stage {stage.name}: {stage.method.name} needs a {wanted.kind} for each row: name its column in the"
            f" corpus, with {column}",
            "corpus",
        )
    columns = max(1 if part.get("stack") else len(part.get("text_columns") or "1") for part in parts)
    if plan.columns > columns and not stage.arguments.get("views"):
        section.fail(
            f"stage {stage.name}: {stage.method.name} needs {plan.columns} text columns: name them in the corpus, with"
            " text_columns",
            "corpus",
        )


def _is_list(source: Source) -> bool:
    return not isinstance(source, str | Path)


def _at_its_line(error: SettingsError, section: Section, common: Section) -> NoReturn:
    text = str(error)
    for source in (section, common):
        for key in source:
            if f"--{key.replace('_', '-')}" in text or key in text.split():
                source.fail(text, key)
    section.fail(text)
