"""YAML with line numbers, so that every error in a recipe names its line."""

from __future__ import annotations

import re
from collections.abc import Collection
from pathlib import Path
from typing import Any, NoReturn

import yaml

from selfsent.errors import SettingsError, guess

TYPES: dict[str, tuple[str, tuple[type, ...]]] = {
    "int": ("a whole number", (int,)),
    "float": ("a number", (int, float)),
    "bool": ("true or false", (bool,)),
    "str": ("a text", (str,)),
    "column": ("the name of a column", (str,)),
    "columns": ("a list of names", (list,)),
    "name": ("one name", (str,)),
    "names": ("a name, or a list of names", (str, list)),
}
"""By annotation: description of a valid value for errors, and its exact types; lists hold texts."""
_MOST = 100_000
"""Maximum number of keys and values in a recipe, with aliases (`&` and `*`) expanded."""


class Section(dict[str, Any]):
    """A mapping of a YAML file with the line numbers of its keys.

    Args:
        path: the file.
        line: its first line, from 1.
    """

    def __init__(self, path: str, line: int) -> None:
        super().__init__()
        self.path, self.line = path, line
        self.lines: dict[str, int] = {}

    def fail(self, message: str, key: str | None = None) -> NoReturn:
        """Raise an error about a key, or about the section.

        Raises:
            SettingsError: always, with file and line.
        """
        line = self.line if key is None else self.lines.get(key, self.line)
        raise SettingsError(f"{self.path} line {line}: {message}")

    def rename(self, old: str, new: str) -> None:
        """Replace a deprecated key."""
        if old in self and new not in self:
            self[new], self.lines[new] = self.pop(old), self.lines.get(old, self.line)

    def section(self, key: str) -> Section:
        """The section under a key; empty if missing."""
        found = self.get(key)
        if found is None:
            return Section(self.path, self.lines.get(key, self.line))
        if not isinstance(found, Section):
            self.fail(f"{key} must be a section of key: value, not {found!r}", key)
        return found

    def only(self, known: Collection[str], what: str) -> None:
        """Reject unknown keys."""
        for key in self:
            if key not in known:
                self.fail(f"{what} has no {key!r}; {guess(key, known)}", key)

    def over(self, changes: Section, drop: bool = True) -> Section:
        """A copy with other values, merged section by section.

        Args:
            changes: the other values.
            drop: whether a null among them removes a key; otherwise it stays as null.
        """
        merged = Section(self.path, self.line)
        for source in (self, changes):
            for key, value in source.items():
                old = merged.get(key)
                nested = isinstance(old, Section) and isinstance(value, Section)
                merged[key] = old.over(value, drop) if nested else value  # type: ignore[union-attr]  # both
                merged.lines[key] = source.lines[key]
                if drop and source is changes and value is None:
                    del merged[key]
        return merged

    def typed(self, key: str, annotation: str, choices: Collection[str] = ()) -> Any:
        """The value under a key, checked against the annotation of a dataclass field; lists become tuples.

        Args:
            key: an existing one.
            annotation: such as `int | None`; unknown parts mean texts.
            choices: allowed texts, for the error.
        """
        value = self[key]
        kinds = [TYPES[part] for part in annotation.split(" | ") if part in TYPES]
        kinds = kinds or [(f"one of {', '.join(choices)}" if choices else "a text", (str,))]
        right = any(type(value) in types for _, types in kinds)
        if not right or (isinstance(value, list) and not all(isinstance(each, str) for each in value)):
            self.fail(f"{key} is {value!r}; it must be {' or '.join(wanted for wanted, _ in kinds)}", key)
        return tuple(value) if isinstance(value, list) else value

    def one_of(self, key: str, choices: Collection[str]) -> str:
        """The value under a key, which must be one of the choices."""
        value = self.get(key)
        if value not in tuple(choices):
            self.fail(f"{key} is {value!r}; it must be one of {', '.join(choices)}", key)
        return str(value)


class _Loader(yaml.SafeLoader):
    """Plain data only; mappings become sections, and 2e-5 is a number."""

    path = ""


def _construct(loader: _Loader, node: yaml.MappingNode) -> Section:
    loader.flatten_mapping(node)
    section = Section(loader.path, node.start_mark.line + 1)
    for key_node, value_node in node.value:
        key, line = loader.construct_object(key_node, deep=True), key_node.start_mark.line + 1
        if not isinstance(key, str):
            raise SettingsError(f"{loader.path} line {line}: the key {key!r} is no name: put it in quotes")
        if key in section.lines and section.lines[key] > node.start_mark.line:
            raise SettingsError(f"{loader.path} line {line}: {key!r} is a duplicate: leave one out")
        section[key], section.lines[key] = loader.construct_object(value_node, deep=True), line
    return section


_Loader.add_constructor("tag:yaml.org,2002:map", _construct)
_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float", re.compile(r"[-+]?(\d+(\.\d*)?|\.\d+)[eE][-+]?\d+$"), list("-+.0123456789")
)


def _counted(loader: _Loader, node: yaml.Node, known: dict[int, int]) -> int:
    """Number of keys and values of a node, aliases expanded.

    Raises:
        SettingsError: an alias bomb, or a node inside itself.
    """
    if id(node) not in known:
        known[id(node)] = _MOST  # until counted: an earlier visit means a cycle
        below = [] if isinstance(node, yaml.ScalarNode) else node.value
        parts = [part for each in below for part in (each if isinstance(each, tuple) else (each,))]
        known[id(node)] = 1 + sum(_counted(loader, part, known) for part in parts)
    if known[id(node)] >= _MOST:
        line = node.start_mark.line + 1
        raise SettingsError(f"{loader.path} line {line}: this contains itself, or more than {_MOST:,} values")
    return known[id(node)]


def read_document(path: str | Path) -> Section:
    """Read a recipe's YAML.

    Raises:
        SettingsError: the file cannot be read, or is no section of key: value.
    """
    try:
        loader = _Loader(Path(path).read_text(encoding="utf-8"))
        loader.path = str(path)
        node = loader.get_single_node()
        document = None if node is None or not _counted(loader, node, {}) else loader.construct_document(node)
    except OSError as error:
        raise SettingsError(f"{path} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise SettingsError(f"{path} is not UTF-8: a recipe is a text file") from None
    except RecursionError:
        raise SettingsError(f"{path}: this is no YAML: nested too deep") from None
    except (yaml.YAMLError, ValueError, KeyError, IndexError, AttributeError, TypeError) as error:
        mark = getattr(error, "problem_mark", None)
        problem = getattr(error, "problem", None) or getattr(error, "reason", None)
        problem = problem or (str(error) if isinstance(error, ValueError) else "a value that is not what its tag says")
        raise SettingsError(f"{path}{f' line {mark.line + 1}' if mark else ''}: this is no YAML: {problem}") from None
    if not isinstance(document, Section):
        raise SettingsError(f"{path} line 1: a recipe begins with key: value")
    return document
