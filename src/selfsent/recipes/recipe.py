"""A recipe: stages of training in one YAML file, checked as a whole before anything runs."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import reduce
from itertools import product
from pathlib import Path
from typing import Any

from selfsent.errors import guess
from selfsent.evaluation.datasets.catalogue import ARGUMENTS
from selfsent.models.bases import RAW
from selfsent.models.heads.options import CNN_POOL, HEADS, name_of
from selfsent.recipes.document import Section, read_document
from selfsent.recipes.stage import FOLD, Stage, as_tuple, fields_of, plan_stage, read_stage, read_tasks

_VARIANT = ("title", "note", "base", "all", "stages", "encoder", "evaluate", "published", "cross_validate", "shows")
_FOLDED = "the score is the one over all folds; leave evaluate out"


@dataclass(frozen=True)
class Folds:
    """A cross-validation.

    Args:
        data: the data set of argument pairs.
        by: the protocol, `10-fold` or `cross-topic`.
        stand_in: the data set to take if `data` is not here.
    """

    data: str
    by: str
    stand_in: str | None = None


@dataclass(frozen=True)
class Recipe:
    """Stages of training, each from the model of the one before.

    Args:
        path: its file.
        title: its purpose.
        note: a remark, printed when it runs.
        base: the encoder that the first stage starts from.
        stages: in order.
        variant: name of the chosen variant.
        seed: of every stage, if it was read with one.
        folds: the cross-validation, if any.
        encoder: scored untrained, in place of stages: anything `selfsent evaluate` takes.
        tasks: of the encoder.
        published: reproduced rows of the papers' tables.
        shows: other reproduced results, such as a figure.
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
        """Everything the result depends on, as JSON."""
        stages = {stage.name: stage.to_json() for stage in self.stages}
        folds = self.folds and (self.folds.data, self.folds.by)
        plain = {"variant": self.variant, "base": self.base, "stages": stages, "cross_validate": folds}
        return plain | ({"encoder": self.encoder, "evaluate": dict(self.tasks)} if self.encoder else {})

    @property
    def last(self) -> str:
        """Name for the final scores: the last stage, the folds, or the encoder."""
        return "encoder" if self.encoder else self.folds.by if self.folds else self.stages[-1].name


def read_recipe(
    source: str | Path | Section,
    variant: str | None = None,
    base: str | Path | None = None,
    seed: int | None = None,
    planned: bool = True,
) -> Recipe:
    """Read and check a recipe; its corpora are checked when it runs.

    Args:
        source: a YAML file, or the result of `read_document`.
        variant: one of its variants; the first one by default.
        base: the encoder to start from instead of the recipe's.
        seed: of every stage instead of the recipe's.
        planned: whether to resolve the settings of stages, which needs the base.

    Raises:
        SettingsError: with file and line.
        BaseEncoderError: the base is missing.
    """
    document = source if isinstance(source, Section) else read_document(source)
    document.only((*_VARIANT, "variants", "axes"), "a recipe")
    document, variant = _with_variant(document, variant)
    recipe = Recipe(
        document.path,
        str(document.get("title", "")),
        str(document.get("note", "")),
        str(base or document.get("base", RAW)),
        (),
        variant,
        seed,
        _folds(document),
        published=_published(document),
        shows=as_tuple(document.typed("shows", "names")) if document.get("shows") else (),
    )
    tasks, encoder = read_tasks(document), document.get("encoder")
    if encoder is not None:
        if document.section("stages"):
            document.fail("encoder is what is scored as it is, in place of stages: give one of the two", "encoder")
        if not tasks:
            document.fail("encoder is scored as it is: say on what under evaluate", "encoder")
        if seed is not None:
            document.fail("encoder is scored as it is: nothing is trained, so give no seed, nor seeds", "encoder")
        return dataclasses.replace(recipe, encoder=str(encoder), tasks=tasks, folds=None)
    stages = _stages(document, recipe, planned)
    if tasks and recipe.folds:
        document.fail(f"the last stage is trained for every fold: {_FOLDED}", "evaluate")
    if tasks:
        stages[-1] = dataclasses.replace(stages[-1], tasks=tasks)
    return dataclasses.replace(recipe, stages=tuple(stages))


def variants_of(document: Section) -> dict[str, Section]:
    """The changes of every variant, by name.

    A variant of `axes` has one change of each axis, and a name such as `tsdae, askubuntu`.

    Raises:
        SettingsError: an invalid change, or a duplicate name.
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
        change.only(_VARIANT, f"variant {name}")
    return found


def _with_variant(document: Section, variant: str | None) -> tuple[Section, str | None]:
    """The document with the changes of a variant, and the variant's name."""
    variants = variants_of(document)
    if not variants:
        if variant is not None:
            document.fail(f"there is no variant {variant!r}: this recipe has none")
        return document, None
    chosen = next(iter(variants)) if variant is None else variant
    if chosen not in variants:
        section = document.section("variants") or document.section("axes")
        section.fail(f"there is no variant {chosen!r}; {guess(chosen, variants)}")
    whole = document.over(variants[chosen])
    if variants[chosen].get("encoder") is not None and "stages" not in variants[chosen]:
        whole.pop("stages", None)  # an untrained encoder replaces all training
    return whole, chosen


def _folds(document: Section) -> Folds | None:
    if "cross_validate" not in document:
        return None
    section, names = document.section("cross_validate"), [dataset.name for dataset in ARGUMENTS]
    section.only(("data", "by", "stand_in"), "cross_validate")
    data, by = section.one_of("data", names), section.one_of("by", ("10-fold", "cross-topic"))
    return Folds(data, by, section.one_of("stand_in", names) if section.get("stand_in") is not None else None)


def _published(document: Section) -> tuple[Section, ...]:
    entries = document.get("published") or []
    entries = list(entries.values()) if isinstance(entries, Section) else entries
    if not isinstance(entries, list) or not all(isinstance(entry, Section) for entry in entries):
        document.fail(
            "published must be a list of sections such as {paper: IS-BERT, table: 4}, or a section of named ones",
            "published",
        )
    return tuple(entries)


def _stages(document: Section, recipe: Recipe, planned: bool) -> list[Stage]:
    """The stages, each with the pooling and head of the previous one."""
    sections, common, folds = document.section("stages"), document.section("all"), recipe.folds
    if not sections:
        document.fail("a recipe needs stages: at least one section under stages", "stages")
    stages: list[Stage] = []
    pooling: str | None = None
    shapes: dict[str, dict[str, Any]] = {}
    for name in sections:
        section, stage = sections.section(name), read_stage(name, sections, common, recipe.seed)
        if stage.source == FOLD and folds is None:
            sections.fail(f"stage {name} trains on folds: say of what under cross_validate", name)
        own_pooling = "pooling" in stage.arguments
        if pooling and not own_pooling and stage.arguments.get("head") != CNN_POOL:
            stage = dataclasses.replace(stage, arguments={**stage.arguments, "pooling": pooling})
        stages.append(stage)
        if stage.tasks and any(each.source == FOLD for each in stages):
            section.fail(f"stage {name} is trained for every fold: {_FOLDED}", "evaluate")
        if not planned:
            continue
        plan = plan_stage(stage, recipe.base, section, common)
        if plan.joins:  # a cross-encoder keeps only transformer and pooling
            pooling, shapes = plan.pooling, {}
            continue
        if own_pooling:
            shapes.pop(CNN_POOL, None)
        if (options := plan.options if plan.method.head else plan.head) is not None:
            head = name_of(options)
            shape = {key: getattr(options, key) for key in fields_of(HEADS[head])}
            for key, value in shapes.setdefault(head, shape).items():
                if shape[key] != value:
                    section.fail(f"the {head} of a stage before stays, and has {key} {value}, not {shape[key]}", key)
        pooling = None if CNN_POOL in shapes else plan.pooling
    if folds and all(stage.source != FOLD for stage in stages):
        document.fail(f"no stage trains on the folds: give one corpus: {FOLD}", "cross_validate")
    return stages
