"""Flags of argparse, made of the fields of dataclasses."""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Collection
from dataclasses import MISSING
from typing import TYPE_CHECKING, Any

from selfsent.errors import SettingsError
from selfsent.models.heads.options import HEADS
from selfsent.naming import names
from selfsent.settings import choices_of, kinds_of, parse_value

if TYPE_CHECKING:
    from selfsent.methods import Method

from selfsent.cli.options import Command

WITHOUT_FLAGS = set[str]()
"""Settings of Python and recipes that have no flag, among those that were declared."""


def declare(parser: argparse.ArgumentParser, command: type[Command]) -> None:
    """Add a flag for each field of a command, with a group for each base and each entry of `also`."""
    home = {name: kind for kind in command.__mro__ for name in vars(kind).get("__annotations__", ())}
    for kind in command.__mro__:
        own = [item for item in dataclasses.fields(command) if item.metadata and home[item.name] is kind]
        title = vars(kind).get("title")
        group = parser.add_argument_group(title) if title and own else parser
        for item in own:
            _add(group, item, command, item.default, switches=True)
    for title, options, defaults in command.also:
        known = {action.dest for action in parser._actions}
        add_options(parser.add_argument_group(title), options, defaults, exclude=known)


def add_options(group: Any, options: type[Any], defaults: Any = None, exclude: Collection[str] = ()) -> None:
    """Add a flag for each field of a settings dataclass; flags not given are absent from the result.

    Args:
        group: an argparse parser or group.
        options: the dataclass.
        defaults: an instance with the defaults to show; None for the dataclass' own.
        exclude: names of fields to skip.
    """
    for item in dataclasses.fields(options):
        if item.metadata and item.name not in exclude:
            default = item.default if defaults is None else getattr(defaults, item.name, None)
            _add(group, item, options, default, switches=False)


def add_method_options(parser: Any, method: Method, head: str | None) -> None:
    """Add the options of a method and of its head."""
    add_options(parser.add_argument_group(f"options of {method.name}"), method.options)
    if head and not method.head:
        add_options(parser.add_argument_group(f"options of the head {head}"), HEADS[head])


def _add(group: Any, item: dataclasses.Field[Any], options: type[Any], default: Any, switches: bool) -> None:
    """Add one flag. `switches`: whether boolean flags have no `--no-` form."""
    about, kinds, allowed = item.metadata, kinds_of(options)[item.name], choices_of(options).get(item.name)
    show = default not in (None, (), "", MISSING) and default is not False
    shown = f" (default: {','.join(map(str, default)) if isinstance(default, tuple) else default})" if show else ""
    made: dict[str, Any] = {"default": argparse.SUPPRESS, "help": (about["description"] + shown).replace("%", "%%")}
    made |= {name: about[name] for name in ("nargs", "const", "metavar") if name in about}
    if kinds == (bool,):
        switch = switches and "None" not in str(item.type)
        made["action"] = "store_true" if switch else argparse.BooleanOptionalAction
    elif allowed:
        made["choices"] = allowed
    else:
        name = item.name.rpartition("_")[2].upper()
        several = f"{name}[,{name}]" if kinds == (tuple[str, ...],) and not {"nargs", "repeat"} & about.keys() else name
        made.setdefault("metavar", "N" if int in kinds else "X" if float in kinds else several)
        made["type"] = _typed(item, kinds)
        if about.get("repeat"):
            made["action"] = "append"
    if about.get("flags") == ():
        WITHOUT_FLAGS.add(item.name)
    elif about.get("positional"):
        group.add_argument(item.name, **made)
    else:
        flags = about.get("flags", ["--" + item.name.replace("_", "-")])
        group.add_argument(*flags, dest=item.name, required=default is MISSING, **made)


def _typed(item: dataclasses.Field[Any], kinds: tuple[Any, ...]) -> Any:
    """The `type` of argparse for a field."""
    if kinds == (tuple[str, ...],):
        return str if item.metadata.get("repeat") or "nargs" in item.metadata else names
    if "parse" not in item.metadata:
        return int if int in kinds else float if float in kinds else str

    def parse(text: str) -> Any:
        try:
            return parse_value(text, item, kinds)
        except SettingsError as error:
            raise argparse.ArgumentTypeError(str(error)) from None

    return parse
