"""The data and encoders needed by a recipe: whether they are here, and where they are published."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from importlib import resources
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import yaml

from selfsent import extensions
from selfsent.data.corpus.formats import READERS
from selfsent.data.corpus.hub import HubDataset
from selfsent.evaluation.suites import TASKS
from selfsent.models.bases import SHIPPED
from selfsent.models.new_bases import NewBase
from selfsent.recipes.recipe import Recipe
from selfsent.recipes.stage import FOLD, Stage, located, sources_of, task_names
from selfsent.scorers.lexical import LEXICAL, without_words
from selfsent.scorers.word_vectors import PREFIXES


@dataclass(frozen=True)
class Need:
    """An input of a recipe.

    Args:
        name: in the recipe.
        here: whether it is in the current directory, in the mirror of the data sets, or in the hub's cache.
        hub: whether the recipe fetches it from the hub.
        where: its publication.
    """

    name: str
    here: bool
    hub: bool = False
    where: str = ""


@cache
def _sources() -> list[dict[str, Any]]:
    file = resources.files("selfsent.recipes") / "sources.yaml"
    return list(yaml.safe_load(file.read_text(encoding="utf-8")))


def _source(name: str) -> dict[str, Any]:
    return next((source for source in _sources() if fnmatchcase(name, source["name"])), {})


def where_of(name: str) -> str:
    """The address of a published corpus, data set or encoder; empty if unknown."""
    return str(_source(name).get("where", ""))


def needs_of(recipe: Recipe, mirror: str | Path | None = None) -> list[Need]:
    """All inputs of a recipe: encoders, corpora and evaluation data sets.

    Args:
        recipe: of one variant, planned or not.
        mirror: the mirror of the data sets.
    """
    stages, given = recipe.stages, [stage.arguments for stage in recipe.stages]
    models = [recipe.encoder or recipe.base, *(each["teacher"] for each in given if "teacher" in each)]
    tasks = [*task_names(recipe.tasks), *(task for stage in stages for task in task_names(stage.tasks))]
    tasks += [each["dev"] for each in given if "dev" in each] + ([recipe.folds.data] if recipe.folds else [])
    found = [_model(str(model), mirror) for model in models]
    found += [need for stage in stages if stage.source != FOLD for need in _corpus(stage, mirror)]
    found += [_task(task, mirror) for task in tasks if task in TASKS]
    return list({need.name: need for need in found}.values())


def not_here(names: Iterable[str], mirror: str | Path | None) -> list[Need]:
    """The given corpora and data sets that are neither here nor on a reachable hub."""
    from selfsent.evaluation.datasets.hub import hub_reachable

    needs = [(_task if name in TASKS else _text)(name, mirror) for name in names]
    return [need for need in needs if not need.here and not (need.hub and hub_reachable())]


def _corpus(stage: Stage, mirror: str | Path | None) -> list[Need]:
    """The sources of a stage's corpus, or its stand-in if only that is here."""
    needs = [_text(name, mirror) for name in sources_of(stage.source)]
    if stage.stand_in is None or all(need.here or need.hub for need in needs):
        return needs
    others = [_text(name, mirror) for name in sources_of(stage.stand_in[0])]
    if not all(need.here for need in others):
        return needs
    missing = ", ".join(need.name for need in needs if not need.here)
    return [dataclasses.replace(need, name=f"{need.name} (stands in for {missing})") for need in others]


def _text(name: str, mirror: str | Path | None) -> Need:
    dataset = None if name.endswith(tuple(READERS)) else HubDataset.parse(name)
    here = name == "-" or name.startswith("python:") or any(character in name for character in "*?[")
    here = here or Path(str(located(name, mirror))).exists()
    here = here or (dataset is not None and _cached(dataset.name, "datasets"))
    return _need(name, here, dataset is not None and _source(name).get("hub", True))


def _task(task: str, mirror: str | Path | None) -> Need:
    sets = TASKS[task].datasets
    here = ((one.hub and _cached(one.repository, "datasets")) or (mirror and one.is_in(Path(mirror))) for one in sets)
    return _need(task, all(here), all(each.hub for each in sets))


def _model(name: str, mirror: str | Path | None) -> Need:
    name = without_words(name) or name
    kind, _, rest = name.partition(":")
    if name in LEXICAL or name in SHIPPED or Path(name).exists():
        return _need(name, True)
    if kind in PREFIXES or kind in extensions.announced("scorers"):
        return _need(name, Path(str(located(rest, mirror))).is_file())
    if kind in extensions.announced("bases"):
        words = rest.rpartition(":")[2]
        return _need(name, words.replace("x", "").isdecimal() or Path(words).expanduser().is_file())
    if network := NewBase.named(name):
        source = Path(network.source).expanduser()
        return _need(name, not network.source or network.source in SHIPPED or source.exists())
    if rest:  # module:factory
        file = Path.cwd() / f"{kind.replace('.', '/')}.py"
        return _need(name, file.is_file() or find_spec(kind.partition(".")[0]) is not None)
    return _need(name, _cached(name, "hub"), True)


def _need(name: str, here: bool, hub: bool = False) -> Need:
    fetched = "fetched from the Hugging Face hub when the recipe runs" if hub else ""
    return Need(name, here, hub, where_of(name) or fetched)


def _cached(name: str, kind: str) -> bool:
    """Whether the hub's cache has a folder of a data set or a model."""
    from huggingface_hub import constants

    if kind == "datasets":
        return (Path(constants.HF_HOME) / "datasets" / name.replace("/", "___")).is_dir()
    return (Path(constants.HF_HUB_CACHE) / f"models--{name.replace('/', '--')}").is_dir()
