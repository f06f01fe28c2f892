"""What a recipe says, checked before anything runs."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from selfsent.evaluation.datasets.leaks import LEAKED, holds_stsb
from selfsent.evaluation.datasets.published import Record
from selfsent.models.bases import RAW
from selfsent.models.heads.options import CNN_POOL, HEADS, name_of
from selfsent.recipes.document import Section, read_document
from selfsent.recipes.parts import (
    Folds,
    fields_of,
    folds_of,
    names_of,
    published_of,
    tasks_of,
    texts_of,
)
from selfsent.recipes.stage import FOLD, Stage, check_columns, planned_of, stage_of
from selfsent.recipes.variants import RECIPE, with_variant
from selfsent.training.plan import Plan

_FOLDED = "the score is the one over all folds; leave evaluate out"


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
            labelled = stage.name if stage.method.supervised else labelled
            stsb = stage.name if holds_stsb(stage.sources) else stsb
            leaked = [task for task in names_of(stage.tasks) if task in LEAKED] if stsb else []
            if leaked:
                found.append(
                    f"stage {stage.name} is scored on {', '.join(leaked)} after training on STSb in {stsb}, which holds"
                    " pairs of them: these scores are no test"
                )
        return found


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
        given = stage_of(name, sections, common, seed)
        stage = kept.handed_to(given)
        if stage.source == FOLD and folds is None:
            sections.fail(f"stage {name} trains on folds: say of what under cross_validate", name)
        if planned:
            plan = planned_of(stage, start, sections.section(name), common)
            check_columns(stage, plan, sections.section(name))
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
