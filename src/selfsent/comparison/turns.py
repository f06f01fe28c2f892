"""What a comparison trains: which method, from which base, with which settings and seed, and where it goes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import product
from pathlib import Path
from typing import Any

from selfsent.comparison.bases import UNTRAINED, Base
from selfsent.errors import BaseEncoderError, SettingsError
from selfsent.methods import METHODS, get_method
from selfsent.models.bases import resolve
from selfsent.models.saved import is_static
from selfsent.settings import DURATIONS
from selfsent.training.default import for_single
from selfsent.training.plan import Plan, make_plan
from selfsent.training.run_config import Notice

BUDGET = 120.0
"""Seconds that each method trains, unless told otherwise."""
CANDIDATES = tuple(name for name, method in METHODS.items() if method.compared and not method.supervised)


@dataclass(frozen=True)
class Job:
    """A method and a base.

    Args:
        method: by the name it was given.
        base: what it starts from.
        plan: what it would do.
    """

    method: str
    base: Base
    plan: Plan

    @property
    def name(self) -> str:
        """What the encoder is called."""
        return self.base.trained(self.method)


@dataclass(frozen=True)
class Turn:
    """One run of a job: what to call it, where it goes, and what `selfsent.train` is given."""

    job: Job
    label: str
    place: Path
    given: dict[str, Any]


def usual_methods(bases: Sequence[Base], notice: Notice) -> dict[str, dict[str, Any]]:
    """What is compared where no method is named, with its settings, by name.

    Those that need no labels and can train one of the bases, and what `selfsent train` takes for single sentences.
    """
    found: dict[str, dict[str, Any]] = {name: {"method": name} for name in CANDIDATES}
    trainable = [base for base in bases if base.trainable]
    static = [base for base in trainable if is_static(resolve(base.name))]
    for base in static:
        left = [name for name, given in found.items() if not _suits_static(given)]
        notice(f"{base.name} is a table of token vectors; left out, since they need a transformer: {', '.join(left)}")
    for base in trainable:
        name, settings = for_single(base.name)
        found[_as_typed(name, settings)] = {"method": name, **settings}
    if len(static) == len(trainable):
        found = {name: given for name, given in found.items() if _suits_static(given)}
    return found


def _as_typed(name: str, settings: Mapping[str, Any]) -> str:
    """A method with its settings, as they stand on a command line."""
    words = [name]
    for key, value in settings.items():
        flag = key.replace("_", "-")
        words += [f"--{flag}" if value else f"--no-{flag}"] if isinstance(value, bool) else [f"--{flag} {value}"]
    return " ".join(words)


def _suits_static(given: Mapping[str, Any]) -> bool:
    """Whether a method with such settings can train a table of token vectors."""
    method = METHODS[given["method"]]
    own = {item.name for item in fields(method.options)}
    return bool(method.static and method.options(**{k: v for k, v in given.items() if k in own}).suits_static)


def arguments(
    methods: str | Sequence[str] | Mapping[str, Mapping[str, Any]], common: Mapping[str, Any]
) -> dict[str, dict[str, Any]]:
    """What `selfsent.train` is given, by name: what is common, and what is a method's own in its place."""
    names = [methods] if isinstance(methods, str) else methods
    named = names if isinstance(names, Mapping) else {name: {} for name in names}
    found = {}
    for name, own in named.items():
        method = get_method(str(own.get("method", name)))
        shared = dict(common)
        if method.closed_form or own.keys() & set(DURATIONS):
            shared = {key: value for key, value in shared.items() if key not in DURATIONS}
        elif not shared.keys() & set(DURATIONS):
            shared["budget"] = BUDGET
        found[name] = {**shared, **own, "method": method.name}
    return found


def jobs(asked: Mapping[str, Mapping[str, Any]], bases: Sequence[Base], usual: bool, notice: Notice) -> list[Job]:
    """Each method from each base that it can train.

    Args:
        asked: what `selfsent.train` is given, by the name of the method.
        bases: where they start from.
        usual: whether nobody named the methods, and what cannot train a table of token vectors was told already.
        notice: is told who is left out.

    Raises:
        SelfsentError: a method can train none of the bases, or its settings are wrong.
    """
    found = list[Job]()
    trainable = [base for base in bases if base.trainable]
    for name, given in asked.items():
        wrong: dict[Base, SettingsError | BaseEncoderError] = {}
        for base in trainable:
            if usual and not _suits_static(given) and is_static(resolve(base.name)):
                continue
            try:
                found.append(Job(name, base, _plan(name, base.name, given)))
            except (SettingsError, BaseEncoderError) as error:
                wrong[base] = error
        if wrong and len(wrong) == len(trainable):
            raise next(iter(wrong.values()))
        for base, why in wrong.items():
            notice(f"{base.trained(name)} is left out: {str(why).removeprefix(f'{name}: ')}")
    return found


def _plan(name: str, base: str, given: Mapping[str, Any]) -> Plan:
    """What a method would do.

    Raises:
        SettingsError: something is wrong with its settings, or it makes no vectors.
    """
    if fixed := given.keys() & {"base", "output", "corpus"}:
        raise SettingsError(f"{name}: {fixed.pop()} is the same for all methods")
    if name == UNTRAINED:
        raise SettingsError(f"{name} is what the base is called: give the method another name")
    method = get_method(given["method"])
    try:
        plan = make_plan(method, base, **{key: value for key, value in given.items() if key != "method"})
    except SettingsError as error:
        raise SettingsError(f"{name}: {error}") from None
    if plan.joins:
        raise SettingsError(f"{name} makes scores of pairs, and no vectors to be compared: leave it out")
    return plan


def turns(todo: Sequence[Job], asked: Mapping[str, Mapping[str, Any]], directory: Path, seeds: int) -> list[Turn]:
    """All runs, all jobs with one seed first: a comparison that is stopped lacks seeds then, and no method.

    What takes no steps is the same with every seed, and done once.

    Raises:
        SettingsError: two would lie in one place.
    """
    places, found = _places(job.name for job in todo), []
    for number, job in product(range(seeds), todo):
        if number and job.plan.method.closed_form:
            continue
        seed, place = job.plan.settings.seed + number, directory / "methods" / places[job.name]
        place = place / "seeds" / str(seed) if number else place
        label = f"{job.name}, seed {seed}" if seeds > 1 else job.name
        found.append(Turn(job, label, place, {**asked[job.method], "seed": seed}))
    return found


def _places(names: Iterable[str]) -> dict[str, str]:
    """A directory's name for each, of letters, digits and dots.

    Raises:
        SettingsError: two would lie in one place.
    """
    found: dict[str, str] = {}
    for name in names:
        place = re.sub(r"[^\w.]+", "-", name).strip("-.") or "-"
        if place in found.values():
            raise SettingsError(f"two methods would lie in methods/{place}: give them names that differ in letters")
        found[name] = place
    return found
