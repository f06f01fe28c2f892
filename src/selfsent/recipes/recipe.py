"""What a recipe says, checked before anything runs."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import reduce
from itertools import product
from pathlib import Path
from typing import Any

from selfsent.errors import guess
from selfsent.evaluation.datasets.leaks import LEAKED, holds_stsb
from selfsent.models.bases import RAW
from selfsent.models.heads.options import CNN_POOL, HEADS, name_of
from selfsent.recipes.document import Section, read_document
from selfsent.recipes.parts import Folds, folds_of, names_of, published_of, tasks_of
from selfsent.recipes.stage import FOLD, Stage, fields_of, planned_of, stage_of
from selfsent.training.plan import Plan

_OF_VARIANT = (
    *("title", "note", "base", "all", "stages", "encoder", "evaluate"),
    *("published", "cross_validate", "shows"),
)
_RECIPE = (*_OF_VARIANT, "variants", "axes")
"""What a recipe may say."""
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
        seed: of every stage, where it was read with one.
        folds: the cross-validation, when it is one.
        encoder: what is scored as it is, in place of stages: anything `selfsent evaluate` takes.
        tasks: what that is scored on.
        published: rows of the papers' tables that it repeats, as the file names them.
        shows: what it repeats that has no published numbers, such as a figure.
    """

    path: str
    title: str
    note: str
    base: str
    stages: tuple[Stage, ...]
    variant: str | None = None
    seed: int | None = None
    folds: Folds | None = None
    encoder: str | None = None
    tasks: Mapping[str, Any] = field(default_factory=dict)
    published: tuple[Section, ...] = ()
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
    source: str | Path | Section,
    variant: str | None = None,
    base: str | None = None,
    seed: int | None = None,
    planned: bool = True,
) -> Recipe:
    """Read a recipe and check every word of it; its corpora are looked at when it runs.

    Args:
        source: a YAML file, or what `read_document` has read of it.
        variant: one of its variants; the first one when it has any.
        base: the encoder to start from instead of the recipe's.
        seed: of every stage instead of the recipe's.
        planned: whether settings are checked and handed on from stage to stage, for which the base must be here.

    Raises:
        SettingsError: what is wrong, with file and line.
        BaseEncoderError: the base cannot be found.
    """
    document = source if isinstance(source, Section) else read_document(source)
    document.only(_RECIPE, "a recipe")
    document, variant = _with_variant(document, variant)
    title, note = (str(document.get(key, "")) for key in ("title", "note"))
    shows = document.typed("shows", "Names") if document.get("shows") else ()
    recipe = Recipe(
        document.path,
        title,
        note,
        str(base or document.get("base", RAW)),
        (),
        variant,
        seed,
        folds_of(document),
        published=published_of(document),
        shows=(shows,) if isinstance(shows, str) else shows,
    )
    last, encoder = tasks_of(document), document.get("encoder")
    if encoder is not None:
        if document.section("stages"):
            document.fail("encoder is what is scored as it is, in place of stages: give one of the two", "encoder")
        if not last:
            document.fail("encoder is scored as it is: say on what under evaluate", "encoder")
        return dataclasses.replace(recipe, encoder=str(encoder), tasks=last, folds=None)
    stages = _stages(document, recipe, planned)
    if last and recipe.folds:
        document.fail(f"the last stage is trained for every fold: {_FOLDED}", "evaluate")
    if last:
        stages[-1] = dataclasses.replace(stages[-1], tasks=last)
    return dataclasses.replace(recipe, stages=tuple(stages))


def variants_of(document: Section) -> dict[str, Section]:
    """The changes of every variant, by name; none where the recipe has no variants.

    A variant of `axes` has one change of each axis, and a name such as `tsdae, askubuntu`.

    Raises:
        SettingsError: a variant changes what it cannot, or two have one name.
    """
    named, axes = document.section("variants"), document.section("axes")
    found = {name: named.section(name) for name in named}
    choices = [axes.section(axis) for axis in axes]
    for names in product(*choices) if choices else ():
        if (name := ", ".join(names)) in found:
            axes.fail(f"there are two variants {name!r}")
        changes = [axis.section(one) for axis, one in zip(choices, names, strict=True)]
        found[name] = reduce(lambda whole, change: whole.over(change, drop=False), changes)
    for name, change in found.items():
        change.only(_OF_VARIANT, f"variant {name}")
    return found


def _with_variant(document: Section, variant: str | None) -> tuple[Section, str | None]:
    """The document with what a variant changes, the first one by default; and the variant's name."""
    variants = variants_of(document)
    if not variants:
        if variant is not None:
            document.fail(f"there is no variant {variant!r}: this recipe has none")
        return document, None
    chosen = next(iter(variants)) if variant is None else variant
    if chosen not in variants:
        place = document.section("variants") or document.section("axes")
        place.fail(f"there is no variant {chosen!r}; {guess(chosen, variants)}")
    whole = document.over(variants[chosen])
    if variants[chosen].get("encoder") is not None and "stages" not in variants[chosen]:
        whole.pop("stages", None)  # an encoder that is scored as it is stands in place of all training
    return whole, chosen


def _stages(document: Section, recipe: Recipe, planned: bool) -> list[Stage]:
    sections, common, folds = document.section("stages"), document.section("all"), recipe.folds
    if not sections:
        document.fail("a recipe needs stages: at least one section under stages", "stages")
    stages: list[Stage] = []
    kept = _Kept()
    for name in sections:
        given = stage_of(name, sections, common, recipe.seed)
        stage = kept.handed_to(given)
        if stage.source == FOLD and folds is None:
            sections.fail(f"stage {name} trains on folds: say of what under cross_validate", name)
        if planned:
            section = sections.section(name)
            kept.after(given, planned_of(stage, recipe.base, section, common), section)
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
