"""The trials of a comparison: method, base, settings, seed and directory."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any

from selfsent.comparison.verdict import UNTRAINED
from selfsent.errors import BaseEncoderError, SettingsError
from selfsent.methods import METHODS, get_method
from selfsent.models.base_info import BaseInfo
from selfsent.models.bases import resolve
from selfsent.models.loading import load_encoder
from selfsent.models.saved import is_cross_encoder, is_static, is_trained_transformer
from selfsent.naming import name_of
from selfsent.progress import Progress
from selfsent.scorers.load_scorer import is_directory_or_id
from selfsent.settings import DURATIONS
from selfsent.training.defaults import for_single
from selfsent.training.plan import Plan

BUDGET = 120.0
"""Default budget per method in seconds."""
CANDIDATES = tuple(name for name, method in METHODS.items() if method.compared and not method.supervised)
"""Methods compared by default."""


@dataclass(frozen=True)
class Base:
    """A base of a comparison.

    Args:
        name: as given.
        label: a short, unique name; empty for a single base.
    """

    name: str
    label: str = ""

    @property
    def untrained(self) -> str:
        """Name of the untrained encoder."""
        return f"{UNTRAINED} {self.label}" if self.label else UNTRAINED

    def trained(self, method: str) -> str:
        """Name of the encoder that a method trains from it."""
        return f"{method} from {self.label}" if self.label else method

    @cached_property
    def directory(self) -> Path:
        """Its directory."""
        return resolve(self.name)


@dataclass(frozen=True)
class Trial:
    """One training run of a comparison.

    Args:
        method: name of the method in the comparison.
        base: to train.
        plan: its resolved settings.
        path: of the run.
        arguments: of `selfsent.train`.
    """

    method: str
    base: Base
    plan: Plan
    path: Path
    arguments: Mapping[str, Any]

    @property
    def name(self) -> str:
        """Name of the encoder."""
        return self.base.trained(self.method)


def known_bases(given: str | Path | Sequence[str | Path]) -> list[Base]:
    """Resolve the bases.

    Raises:
        BaseEncoderError: a base is missing, or cannot be trained.
        SettingsError: a duplicate, or an encoder without a directory.
    """
    names = [str(name_of(each)) for each in ([given] if isinstance(given, str | PathLike) else given)]
    if not names or "" in names:
        raise SettingsError("`base` holds an empty name" if names else "there is no base to compare")
    for name in names:
        if names.count(name) > 1:
            raise SettingsError(f"`base` names {name} twice")
        if not is_directory_or_id(name) or is_cross_encoder(resolve(name)):
            what = "what makes vectors and is loaded from a directory"
            raise SettingsError(f"leave {name} out of `base`: only {what} can be trained (selfsent evaluate scores it)")
    if len(names) > 1:
        for name in names:
            load_encoder(name)
    return [Base(name, label) for name, label in zip(names, _labels(names), strict=True)]


def _labels(names: Sequence[str]) -> list[str]:
    """The last distinctive part of each name; the whole name for duplicates, none for a single base."""
    if len(names) == 1:
        return [""]
    short = []
    for name in names:
        parts = [part for part in name.replace("\\", "/").split("/") if part] or [name]
        short.append(parts[-2] if parts[-1] == "model" and len(parts) > 1 else parts[-1])
    return [label if short.count(label) == 1 else name for label, name in zip(short, names, strict=True)]


def is_strong(directory: Path) -> bool:
    """Whether a base is already a sentence encoder, trained elsewhere, so that a label-free choice gains little."""
    return is_trained_transformer(directory) and not (directory.resolve().parent / "run.json").is_file()


def default_methods(bases: Sequence[Base], progress: Progress) -> dict[str, dict[str, Any]]:
    """The methods compared by default, with their settings, by name.

    Methods that need no labels and suit one of the bases, and the default of `selfsent.train` for single sentences.
    """
    found: dict[str, dict[str, Any]] = {name: {"method": name} for name in CANDIDATES}
    static = [base for base in bases if is_static(base.directory)]
    for base in static:
        left = [name for name, given in found.items() if not _suits_static(given)]
        progress.notice(
            f"{base.name} is a table of token vectors; left out, since they need a transformer: {', '.join(left)}"
        )
    for base in bases:
        name, settings = for_single(BaseInfo.read(base.name))
        words = [name]
        for key, value in settings.items():
            flag = key.replace("_", "-")
            words += [f"--{flag}" if value else f"--no-{flag}"] if isinstance(value, bool) else [f"--{flag} {value}"]
        found[" ".join(words)] = {"method": name, **settings}
    if len(static) == len(bases):
        found = {name: given for name, given in found.items() if _suits_static(given)}
    return found


def _suits_static(given: Mapping[str, Any]) -> bool:
    """Whether a method with such settings can train static embeddings."""
    method = METHODS[given["method"]]
    own = {item.name for item in fields(method.options)}
    return bool(method.static and method.options(**{k: v for k, v in given.items() if k in own}).suits_static)


def arguments(
    methods: str | Sequence[str] | Mapping[str, Mapping[str, Any]], common: Mapping[str, Any]
) -> dict[str, dict[str, Any]]:
    """Arguments of `selfsent.train` by name of the method: the common ones, replaced by the method's own."""
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


def planned(
    methods: Mapping[str, Mapping[str, Any]], bases: Sequence[Base], default: bool, directory: Path, progress: Progress
) -> list[Trial]:
    """A trial of each method on each base that it can train.

    Args:
        methods: arguments of `selfsent.train`, by name of the method.
        bases: to train.
        default: whether the methods are the default ones, with unsuitable ones already reported.
        directory: of the comparison.
        progress: receives the excluded ones.

    Raises:
        SelfsentError: a method can train none of the bases, its settings are wrong, or two runs have one directory.
    """
    found, notices = list[Trial](), list[str]()
    wrong: list[SettingsError | BaseEncoderError] = []
    for name, given in methods.items():
        before = len(wrong)
        for base in bases:
            if default and not _suits_static(given) and is_static(base.directory):
                continue
            try:
                plan = _plan(name, base.name, given)
                path = directory / "methods" / folder_of(base.trained(name))
                found.append(Trial(name, base, plan, path, {**given, "seed": plan.settings.seed}))
            except (SettingsError, BaseEncoderError) as error:
                wrong.append(error)
                notices.append(f"{base.trained(name)} is left out: {str(error).removeprefix(f'{name}: ')}")
        if len(wrong) - before == len(bases) and not default:
            raise wrong[before]
    if wrong and not found:
        raise wrong[0]
    for line in notices:
        progress.notice(line)
    for folder, count in Counter(trial.path.name for trial in found).items():
        if count > 1:
            raise SettingsError(f"two methods would be in methods/{folder}: give them names that differ in letters")
    return found


def folder_of(name: str) -> str:
    """The folder of an encoder's run, whatever its name holds."""
    return re.sub(r"[^\w.]+", "-", name).strip("-.") or "-"


def _plan(name: str, base: str, given: Mapping[str, Any]) -> Plan:
    if fixed := given.keys() & {"base", "output", "corpus"}:
        raise SettingsError(f"{name}: {fixed.pop()} is the same for all methods")
    if name == UNTRAINED:
        raise SettingsError(f"{name} is what the base is called: give the method another name")
    try:
        plan = Plan.resolve(get_method(given["method"]), base, **{k: v for k, v in given.items() if k != "method"})
    except SettingsError as error:
        raise SettingsError(f"{name}: {error}") from None
    if plan.joins:
        raise SettingsError(f"{name} makes scores of pairs, and no vectors to be compared: leave it out")
    return plan
