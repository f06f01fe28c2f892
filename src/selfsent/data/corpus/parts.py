"""A corpus of several sources, each with columns of its own: the same pairs of sentences under other names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

from selfsent.data.corpus.batch import Batch, Columns
from selfsent.data.corpus.sources import Source, SourceName, find_source
from selfsent.errors import SettingsError
from selfsent.naming import names

Parts = Sequence[Mapping[str, Any]]
"""For each part its `source`, and those options of `read_corpus` that are not the same for all of them."""

OPTIONS = ("text_column", "text_columns", "document_column", "label_column", "score_column", "where", "stack")
_MOST_TEXT_COLUMNS = 3
_PLACES = ("first", "second", "third")


@dataclass(frozen=True)
class Part:
    """A source and which of its columns to read."""

    source: Source
    columns: Columns

    def options(self) -> list[object]:
        """What a table depends on beside the files, as JSON."""
        columns = self.columns
        return [columns.texts, columns.document, columns.label, columns.score]

    def more_options(self) -> list[object]:
        """The same, as far as it was not always there."""
        columns = self.columns
        options: list[object] = [columns.where, columns.stacked] if columns.where or columns.stacked else []
        options += ["together", *columns.together] if columns.together else []
        return options + ([] if columns.carried is None else [["carried", *columns.carried]])


def parts_of(source: SourceName | Parts, common: Mapping[str, Any]) -> list[Part]:
    """Find out what a user means, without reading it.

    Args:
        source: as for `read_corpus`.
        common: options of all parts, `text_columns` among them.

    Raises:
        CorpusError: nothing is there, or nothing that can be read.
        SettingsError: options that do not go together.
    """
    known = {"source", *OPTIONS}
    if not isinstance(source, list | tuple) or not source or not all(isinstance(each, Mapping) for each in source):
        return [Part(find_source(source), _columns(common))]
    if not any(each.keys() & known for each in source):  # rows of a table, by the names of their columns
        return [Part(find_source(source), _columns(common))]
    parts = []
    for number, each in enumerate(source, start=1):
        unknown = each.keys() - known
        if unknown or "source" not in each:
            problem = f"has no {min(unknown)!r}" if unknown else "needs a source"
            raise SettingsError(f"part {number} of the corpus {problem}; it may have source, {', '.join(OPTIONS)}")
        own: dict[str, Any] = {**common, **each}
        if {"text_column", "text_columns"} & each.keys():
            own |= texts_of(each.get("text_column", "text"), each.get("text_columns"))
        parts.append(Part(find_source(each["source"]), _columns(own)))
    return parts


def texts_of(text_column: str | Sequence[str], text_columns: Sequence[str] | None) -> dict[str, Any]:
    """The text columns to read, and whether their texts become one."""
    one = (text_column,) if isinstance(text_column, str) else tuple(text_column)
    return {"text_columns": names(text_columns) or one, "merge": not text_columns and len(one) > 1}


def joined(parts: Sequence[Part]) -> Part:
    """Parts one behind the other as one; text columns that differ in name are called first, second and third.

    Raises:
        SettingsError: they do not have the same kinds of columns.
    """
    first, *others = parts
    if not others:
        return first
    for number, part in enumerate(others, start=2):
        if _kinds(part.columns) != _kinds(first.columns):
            raise SettingsError(
                f"part {number} of the corpus, {part.source.name}, has {_kinds(part.columns)},"
                f" the first one {_kinds(first.columns)}: all parts need the same"
            )

    def read(columns: Columns) -> Iterator[Batch]:
        for part in parts:
            yield from part.source.read(part.columns)

    names = first.columns.kept
    differ = any(part.columns.kept != names for part in others)
    in_one = differ and len(names) == 1 and first.columns.document is not None
    beside = [part.columns.texts if in_one else part.columns.together for part in parts]
    together = tuple(dict.fromkeys(chain.from_iterable(beside)))
    if differ:
        names = _PLACES[: len(names)]
    where = tuple(dict.fromkeys(each for part in parts for each in part.columns.where))
    name = ", ".join(part.source.name for part in parts[:3]) + (", ..." if len(parts) > 3 else "")
    identities = [[part.source.identity, part.options(), part.more_options()] for part in parts]
    known = all(part.source.identity is not None for part in parts)
    sizes = [part.source.size for part in parts]
    size = None if None in sizes else sum(size for size in sizes if size is not None)
    columns = replace(first.columns, texts=names, where=where, stacked=False, merged=False, together=together)
    return Part(Source(name, identities if known else None, read, size), columns)


def _columns(options: Mapping[str, Any]) -> Columns:
    texts, merge = tuple(options["text_columns"]), bool(options.get("merge"))
    if len(set(texts)) != len(texts) or (len(texts) > _MOST_TEXT_COLUMNS and not merge) or "" in texts or not texts:
        raise SettingsError(f"text columns must be one to three different ones, not {', '.join(texts)}")
    where = tuple(
        (name, tuple(map(str, value if isinstance(value, list | tuple | set | frozenset) else [value])))
        for name, value in (options.get("where") or {}).items()
    )
    document, label, score = (options.get(f"{name}_column") for name in ("document", "label", "score"))
    carry, stack = options.get("carry"), bool(options.get("stack"))
    if carry is not None and (where or stack):
        raise SettingsError("rows of the input cannot be counted where some are left out or stacked: carry nothing")
    carried = None if carry is None else tuple(dict.fromkeys(names(carry)))
    if merge and stack:
        raise SettingsError("several text_column are joined, and stack makes rows of them: give one of the two")
    together = texts if merge or (stack and document) else ()
    return Columns(texts, document, label, score, where, stack, merge, carried, together)


def _kinds(columns: Columns) -> str:
    count = len(columns.kept)
    extra = [name for name in ("document", "label", "score") if getattr(columns, name) is not None]
    return " and ".join([f"{count} text column{'s' if count > 1 else ''}", *extra])
