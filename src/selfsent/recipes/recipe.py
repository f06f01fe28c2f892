"""What a recipe says, checked before anything runs."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

from selfsent.errors import SettingsError, guess
from selfsent.evaluation.datasets.leaks import LEAKED, holds_stsb
from selfsent.evaluation.datasets.published import Record
from selfsent.evaluation.suites import TASKS
from selfsent.methods import METHODS, SUPERVISED, Method
from selfsent.models.bases import RAW
from selfsent.models.heads.options import CNN_POOL, HEADS, name_of
from selfsent.recipes.document import Section, read_document
from selfsent.recipes.parts import (
    Folds,
    Source,
    StandIn,
    corpus_of,
    fields_of,
    folds_of,
    names_of,
    published_of,
    tasks_of,
    texts_of,
    value_of,
)
from selfsent.recipes.variants import RECIPE, with_variant
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
_FOLDED = "the score is the one over all folds; leave evaluate out"


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


@dataclass(frozen=True)
class Recipe:
    """Stages of training, each from the model of the one before.

    Args:
        path: its file.
        title: what it is for.
        note: what the reader should know, such as stand-ins for data that is not at hand.
        base: the encoder that the first stage starts from.
        stages: in order.
        variant: which of its variants this is.
        folds: the cross-validation, when it is one.
        published: records of published numbers to set beside the result.
        encoder: what is scored as it is, in place of stages: anything `selfsent evaluate` takes.
        tasks: what it is scored on.
        shows: what it repeats that has no published numbers, such as a figure.
    """

    path: str
    title: str
    note: str
    base: str
    stages: tuple[Stage, ...]
    variant: str | None = None
    folds: Folds | None = None
    published: tuple[Record, ...] = ()
    encoder: str | None = None
    tasks: Mapping[str, Any] = field(default_factory=dict)
    shows: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Everything that decides its result."""
        stages = {stage.name: stage.to_json() for stage in self.stages}
        folds = self.folds and (self.folds.data, self.folds.by)
        plain = {"variant": self.variant, "base": self.base, "stages": stages, "cross_validate": folds}
        return plain | ({"encoder": self.encoder, "evaluate": dict(self.tasks)} if self.encoder else {})

    @property
    def last(self) -> str:
        """What the figures at the end are of: the last stage, the folds, or the encoder."""
        return "encoder" if self.encoder else self.folds.by if self.folds else self.stages[-1].name

    def warnings(self) -> list[str]:
        """The traps the papers found and this recipe walks into, one line each."""
        found, labelled, stsb = [], "", ""
        for stage in self.stages:
            if stage.method.name == "tsdae" and labelled:
                found.append(
                    f"stage {stage.name} trains tsdae after the labels of {labelled}: that made models worse"
                    " (sentence-transformers issues 962 and 1131); the other order is the better one"
                )
            labelled = stage.name if stage.method.name in SUPERVISED else labelled
            stsb = stage.name if holds_stsb(stage.sources) else stsb
            leaked = [task for task in names_of(stage.tasks) if task in LEAKED] if stsb else []
            if leaked:
                found.append(
                    f"stage {stage.name} is scored on {', '.join(leaked)} after training on STSb in {stsb}, which holds"
                    " pairs of them: these scores are no test"
                )
        return found


def sources_of(source: Source) -> list[str]:
    """The names of all that a corpus is made of."""
    parts = [source] if isinstance(source, str) else source
    return [part if isinstance(part, str) else str(part["source"]) for part in parts]


def read_recipe(
    path: str | Path, variant: str | None = None, base: str | None = None, seed: int | None = None
) -> Recipe:
    """Read a recipe and check every word of it; its corpora are looked at when it runs.

    Args:
        path: a YAML file.
        variant: one of its variants; the first one when it has any.
        base: the encoder to start from instead of the recipe's.
        seed: of every stage instead of the recipe's.

    Raises:
        SettingsError: what is wrong, with file and line.
        BaseEncoderError: the base cannot be found.
    """
    document = read_document(path)
    document.only(RECIPE, "a recipe")
    return recipe_of(*with_variant(document, variant), base=base, seed=seed)


def recipe_of(
    document: Section, variant: str | None, base: str | None = None, seed: int | None = None, planned: bool = True
) -> Recipe:
    """The recipe that a document is, its variant's changes made.

    Args:
        document: all of it.
        variant: the name of the variant.
        base: as for `read_recipe`.
        seed: as for `read_recipe`.
        planned: whether settings are checked and handed on from stage to stage, for which the base must be here.

    Raises:
        SettingsError: what is wrong, with file and line.
        BaseEncoderError: the base cannot be found.
    """
    start, folds = str(base or document.get("base", RAW)), folds_of(document)
    title, note = (str(document.get(key, "")) for key in ("title", "note"))
    more: dict[str, Any] = {"published": published_of(document), "shows": texts_of(document, "shows")}
    last = tasks_of(document, "evaluate")
    if (encoder := document.get("encoder")) is not None:
        if document.section("stages"):
            document.fail("encoder is what is scored as it is, in place of stages: give one of the two", "encoder")
        if not last:
            document.fail("encoder is scored as it is: say on what under evaluate", "encoder")
        return Recipe(document.path, title, note, start, (), variant, encoder=str(encoder), tasks=last, **more)
    stages = _stages(document, start, seed, folds, planned)
    if last and folds:
        document.fail(f"the last stage is trained for every fold: {_FOLDED}", "evaluate")
    if last:
        stages[-1] = dataclasses.replace(stages[-1], tasks=last)
    return Recipe(document.path, title, note, start, tuple(stages), variant, folds, **more)


def _stages(document: Section, start: str, seed: int | None, folds: Folds | None, planned: bool) -> list[Stage]:
    sections, common = document.section("stages"), document.section("all")
    if not sections:
        document.fail("a recipe needs stages: at least one section under stages", "stages")
    stages: list[Stage] = []
    kept = _Kept()
    for name in sections:
        given = _stage(name, sections, common, seed)
        stage = kept.handed_to(given)
        if stage.source == FOLD and folds is None:
            sections.fail(f"stage {name} trains on folds: say of what under cross_validate", name)
        if planned:
            plan = _planned(stage, start, sections.section(name), common)
            _check_columns(stage, plan, sections.section(name))
            kept.after(given, plan, sections.section(name))
        stages.append(stage)
        if stage.tasks and any(each.source == FOLD for each in stages):
            sections.section(name).fail(f"stage {name} is trained for every fold: {_FOLDED}", "evaluate")
    if folds and all(stage.source != FOLD for stage in stages):
        document.fail(f"no stage trains on the folds: give one corpus: {FOLD}", "cross_validate")
    return stages


@dataclass
class _Kept:
    """What a stage takes over from those before it: their pooling, and the shape of their heads."""

    pooling: str | None = None
    heads: dict[str, dict[str, Any]] = field(default_factory=dict)

    def handed_to(self, stage: Stage) -> Stage:
        """The stage, with the pooling it takes over."""
        if self.pooling is None or "pooling" in stage.arguments or stage.arguments.get("head") == CNN_POOL:
            return stage
        return dataclasses.replace(stage, arguments={**stage.arguments, "pooling": self.pooling})

    def after(self, stage: Stage, plan: Plan, section: Section) -> None:
        """What there is to take over after a stage, which must not ask for a head of another shape."""
        if plan.joins:  # a cross-encoder takes transformer and pooling alone
            self.pooling, self.heads = plan.pooling, {}
            return
        if "pooling" in stage.arguments:
            self.heads.pop(CNN_POOL, None)
        options = plan.options if plan.method.head else plan.head
        if options is not None:
            name = name_of(options)
            shape = {key: getattr(options, key) for key in fields_of(HEADS[name])}
            for key, value in self.heads.setdefault(name, shape).items():
                if shape[key] != value:
                    section.fail(f"the {name} of a stage before stays, and has {key} {value}, not {shape[key]}", key)
        self.pooling = None if CNN_POOL in self.heads else plan.pooling


def _stage(name: str, sections: Section, common: Section, seed: int | None) -> Stage:
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


def _planned(stage: Stage, base: str, section: Section, common: Section) -> Plan:
    """The plan of a stage; what is wrong with its settings is said with a line."""
    try:
        return stage.plan(base)
    except SettingsError as error:
        _at_its_line(error, section, common)


def _check_columns(stage: Stage, plan: Plan, section: Section) -> None:
    """Refuse a corpus that is not said to have the columns that the method reads."""
    if stage.source == FOLD:
        return
    given = [each if isinstance(each, Mapping) else {} for each in stage.source] if _is_list(stage.source) else [{}]
    parts = [{**stage.reading, **each} for each in given]
    wanted = plan.method.labels(plan.options)
    if wanted and not all(part.get("label_column") or part.get("score_column") for part in parts):
        column = "label_column" if wanted.kind == "class" else "score_column"
        section.fail(
            f"stage {stage.name}: {stage.method.name} needs a {wanted.kind} for each row: name its column in the"
            f" corpus, with {column}",
            "corpus",
        )
    columns = min(1 if part.get("stack") else len(part.get("text_columns") or "1") for part in parts)
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
