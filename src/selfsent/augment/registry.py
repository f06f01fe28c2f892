"""Augmenters by name, and the parser of their specs."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from selfsent.augment.augmenter import Augmenter
from selfsent.augment.mlm import MaskAndRefill
from selfsent.augment.synonym import Synonym
from selfsent.augment.translate import Translate
from selfsent.errors import SettingsError, guess

AUGMENTERS: dict[str, type[Augmenter]] = {each.name: each for each in (Synonym, MaskAndRefill, Translate)}


def parse_augmenter(spec: str, common: Mapping[str, Any] | None = None) -> Augmenter:
    """Parse an augmenter from `NAME[:OPTION=VALUE]...`.

    Args:
        spec: such as `synonym:sense=random` or `translate:pivot=cat`.
        common: defaults for options missing from the spec, if the augmenter has them.

    Raises:
        SettingsError: no such augmenter or option, or a value out of range.
    """
    name, *parts = spec.split(":")
    if name not in AUGMENTERS:
        raise SettingsError(f"there is no augmenter {name!r}; {guess(name, AUGMENTERS)}")
    fields = {item.name: item for item in dataclasses.fields(AUGMENTERS[name])}
    values = {option: value for option, value in (common or {}).items() if option in fields}
    for part in parts:
        option, given, value = part.partition("=")
        option = option.replace("-", "_")
        if option not in fields or not given:
            known = f"{name} has no option {part!r} (it has {', '.join(fields)})"
            raise SettingsError(f"{spec}: {known}; write {name}:OPTION=VALUE")
        values[option] = value
        if str(fields[option].type).startswith(("int", "float")):
            with suppress(ValueError):  # the augmenter rejects it
                values[option] = float(value)
    return AUGMENTERS[name](**values)


def parse_augmenters(specs: str) -> list[Augmenter]:
    """Parse one or two augmenters, separated by a comma, as in the `augmentations` of training.

    Raises:
        SettingsError: as `parse_augmenter`.
    """
    return [parse_augmenter(spec.strip()) for spec in specs.split(",")]
