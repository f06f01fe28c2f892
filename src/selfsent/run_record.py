"""`run.json`, the record of a run, in today's names whichever version wrote it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from selfsent.files import read_json
from selfsent.renamed import warn_renamed

FILE = "run.json"
_SECTION = "asked"
"""Name of `config` in records of earlier versions."""
_OPTIONS = {"at_most": "max_relative_score", "mined_by": "retriever", "views": "augmentations"}
"""Today's names of options by their earlier names."""

_WARRANTY = {"share": "alpha", "guard": "regression_check", "most": "maximum_loss", "tried": "candidates"}
"""Today's keys of a warranty by their earlier names."""


class Record(dict[str, Any]):
    """The content of `run.json`; `config` has everything that decides the result.

    Examples:
        >>> upgraded({"asked": {"options": {"mined_by": "words"}}})
        {'config': {'options': {'retriever': 'words'}}}
    """

    def __missing__(self, key: str) -> Any:
        if key == _SECTION and "config" in self:
            warn_renamed(f"record[{_SECTION!r}]", "record['config']")
            return self["config"]
        raise KeyError(key)

    @property
    def config(self) -> dict[str, Any]:
        """Everything that decides the result; empty in a damaged record."""
        found = self.get("config")
        return found if isinstance(found, dict) else {}


def upgraded(found: Mapping[str, Any]) -> Record:
    """A record with the names of earlier versions replaced by today's."""
    record = Record(found)
    if _SECTION in record:
        record = Record({"config" if name == _SECTION else name: value for name, value in record.items()})
    if "config" in record:
        record["config"] = _renamed(record["config"])
    if isinstance(record.get("warranty"), Mapping):
        warranty: dict[str, Any] = {_WARRANTY.get(name, name): value for name, value in record["warranty"].items()}
        rows = warranty.get("candidates", [])
        warranty["candidates"] = [{_WARRANTY.get(name, name): value for name, value in row.items()} for row in rows]
        record["warranty"] = warranty
    return record


def _renamed(value: Any) -> Any:
    """A JSON value with today's names of options, at any depth: a recipe has options of each stage."""
    if not isinstance(value, Mapping):
        return value
    return {_OPTIONS.get(name, name): _renamed(each) for name, each in value.items()}


def read_record(directory: Path) -> Record:
    """The record of the run in a directory; an empty one where there is none, or it cannot be read."""
    return upgraded(read_json(directory / FILE))
