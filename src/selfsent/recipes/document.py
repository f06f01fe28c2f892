"""YAML that remembers its lines, so that every complaint about a recipe can name one."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any, NoReturn

import yaml

from selfsent.errors import SettingsError, guess


class Section(dict[str, Any]):
    """A mapping of a YAML file that knows where it stands.

    Args:
        path: the file.
        line: its first line, from 1.
    """

    def __init__(self, path: str, line: int) -> None:
        super().__init__()
        self.path, self.line = path, line
        self.lines: dict[str, int] = {}

    def put(self, key: str, value: Any, line: int) -> None:
        """Set a key that stands on a line."""
        self[key], self.lines[key] = value, line

    def fail(self, message: str, key: str | None = None) -> NoReturn:
        """Complain about a key, or about the section.

        Raises:
            SettingsError: always, with file and line.
        """
        line = self.line if key is None else self.lines.get(key, self.line)
        raise SettingsError(f"{self.path} line {line}: {message}")

    def section(self, key: str) -> Section:
        """The section under a key; an empty one where there is none."""
        found = self.get(key)
        if found is None:
            return Section(self.path, self.lines.get(key, self.line))
        if not isinstance(found, Section):
            self.fail(f"{key} must be a section of key: value, not {found!r}", key)
        return found

    def only(self, known: Collection[str], what: str) -> None:
        """Refuse keys that mean nothing."""
        for key in self:
            if key not in known:
                self.fail(f"{what} has no {key!r}; {guess(key, known)}", key)

    def over(self, other: Section, drop: bool = True) -> Section:
        """This section with another one's values in place of its own, section by section.

        Args:
            other: the other section.
            drop: whether a null of the other one takes a key away; it stays there otherwise.
        """
        merged = Section(self.path, self.line)
        for source in (self, other):
            for key, value in source.items():
                old = merged.get(key)
                nested = isinstance(old, Section) and isinstance(value, Section)
                merged.put(key, old.over(value, drop) if nested else value, source.lines[key])  # type: ignore[union-attr]  # both
                if drop and source is other and value is None:
                    del merged[key]
        return merged

    def typed(self, key: str, kind: str, choices: Collection[str] = ()) -> Any:
        """The value under a key, which must be of the type that a dataclass's field has; lists become tuples.

        Args:
            key: it is there.
            kind: the annotation, such as `int | None`; what is not among `KINDS` is a text.
            choices: what a text may be, to be named in the complaint.
        """
        value = self[key]
        kinds = [KINDS[part] for part in kind.split(" | ") if part in KINDS]
        kinds = kinds or [(f"one of {', '.join(choices)}" if choices else "a text", _is_text)]
        if not any(right(value) for _, right in kinds):
            self.fail(f"{key} is {value!r}; it must be {' or '.join(wanted for wanted, _ in kinds)}", key)
        return tuple(value) if isinstance(value, list) else value

    def one_of(self, key: str, choices: Collection[str]) -> str:
        """The value under a key, which must be one of these."""
        value = self.get(key)
        if value not in tuple(choices):
            self.fail(f"{key} is {value!r}; it must be one of {', '.join(choices)}", key)
        return str(value)


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_list(value: Any) -> bool:
    return isinstance(value, list) and all(map(_is_text, value))


KINDS: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "int": ("a whole number", lambda value: type(value) is int),
    "float": ("a number", lambda value: type(value) in (int, float)),
    "bool": ("true or false", lambda value: isinstance(value, bool)),
    "Column": ("the name of a column", _is_text),
    "Columns": ("a list of names", _is_list),
    "Name": ("one name", _is_text),
    "Names": ("a name, or a list of names", lambda value: _is_text(value) or _is_list(value)),
}
"""By annotation: how a complaint names what a value must be, and whether it is that."""


_MOST = 100_000
"""Keys and values of a recipe, those counted each time that another name (`&` and `*`) brings them in again."""


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
            raise SettingsError(f"{loader.path} line {line}: {key!r} stands here for the second time: leave one out")
        section.put(key, loader.construct_object(value_node, deep=True), line)
    return section


_Loader.add_constructor("tag:yaml.org,2002:map", _construct)
_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float", re.compile(r"[-+]?(\d+(\.\d*)?|\.\d+)[eE][-+]?\d+$"), list("-+.0123456789")
)


def _counted(loader: _Loader, node: yaml.Node, known: dict[int, int]) -> int:
    """Keys and values of a node. A few lines that name one another may stand for billions, or for themselves.

    Raises:
        SettingsError: they do.
    """
    if id(node) not in known:
        known[id(node)] = _MOST  # until it is counted: whoever meets it before is inside it
        below = [] if isinstance(node, yaml.ScalarNode) else node.value
        parts = [part for each in below for part in (each if isinstance(each, tuple) else (each,))]
        known[id(node)] = 1 + sum(_counted(loader, part, known) for part in parts)
    if known[id(node)] >= _MOST:
        line = node.start_mark.line + 1
        raise SettingsError(f"{loader.path} line {line}: this stands for itself, or for more than {_MOST:,} values")
    return known[id(node)]


def read_document(path: str | Path) -> Section:
    """The one section that a YAML file is.

    Raises:
        SettingsError: the file cannot be read, or is no such section.
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
    except (yaml.YAMLError, RecursionError, ValueError, KeyError, IndexError, AttributeError, TypeError) as error:
        mark = getattr(error, "problem_mark", None)
        where = f"{path} line {mark.line + 1}" if mark else str(path)
        problem = getattr(error, "problem", None) or getattr(error, "reason", None)
        if not problem and isinstance(error, RecursionError):
            problem = "nested too deep"
        if not problem:
            problem = str(error) if isinstance(error, ValueError) else "a value that is not what its tag says"
        raise SettingsError(f"{where}: this is no YAML: {problem}") from None
    if not isinstance(document, Section):
        raise SettingsError(f"{path} line 1: a recipe begins with key: value")
    return document
