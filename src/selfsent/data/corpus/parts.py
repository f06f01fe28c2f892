"""Corpora of several sources with different column names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

from selfsent.data.corpus.batch import Columns
from selfsent.data.corpus.sources import Source, SourceName, find_source, named, total
from selfsent.errors import SettingsError
from selfsent.naming import names

Parts = Sequence[Mapping[str, Any]]
"""For each part its `source`, and those options of `read_corpus` that are not the same for all of them."""

OPTIONS = ("text_column", "text_columns", "document_column", "label_column", "score_column", "where", "stack")
_TEXTS = {"text_column", "text_columns"}
_MOST_TEXT_COLUMNS = 3
_PLACES = ("first", "second", "third")


def options_of(columns: Columns) -> tuple[list[object], list[object]]:
    """Cache key of the columns, as JSON: the original options, and those added later."""
    options: list[object] = [columns.where, columns.stacked] if columns.where or columns.stacked else []
    options += ["together", *columns.together] if columns.together else []
    options += [] if columns.carried is None else [["carried", *columns.carried]]
    return [columns.texts, columns.document, columns.label, columns.score], options


def sources_of(source: SourceName | Parts, common: Mapping[str, Any]) -> list[Source]:
    """Resolve what a user named, without reading it.

    Args:
        source: as for `read_corpus`.
        common: `OPTIONS` and `carry`, for all sources that do not say otherwise.

    Raises:
        CorpusError: nothing is there, or nothing that can be read.
        SettingsError: options that do not go together.
    """
    known = {"source", *OPTIONS}
    each_one = source if isinstance(source, list | tuple) and all(isinstance(each, Mapping) for each in source) else []
    if not any(each.keys() & known for each in each_one):  # one source, or rows of a table by the names of columns
        return [replace(find_source(source), columns=_columns(common))]
    sources = []
    for number, each in enumerate(each_one, start=1):
        unknown = each.keys() - known
        if unknown or "source" not in each:
            problem = f"has no {min(unknown)!r}" if unknown else "needs a source"
            raise SettingsError(f"part {number} of the corpus {problem}; it may have source, {', '.join(OPTIONS)}")
        shared = {name: value for name, value in common.items() if not (name in _TEXTS and _TEXTS & each.keys())}
        sources.append(replace(find_source(each["source"]), columns=_columns({**shared, **each})))
    return sources


def joined(parts: Sequence[Source]) -> Source:
    """Concatenate sources; text columns with different names become first, second and third.

    Raises:
        SettingsError: they do not have the same kinds of columns.
    """
    first, *others = parts
    if not others:
        return first
    for number, part in enumerate(others, start=2):
        if _kinds(part.columns) != _kinds(first.columns):
            raise SettingsError(
                f"part {number} of the corpus, {part.name}, has {_kinds(part.columns)},"
                f" the first one {_kinds(first.columns)}: all parts need the same"
            )
    names = first.columns.kept
    differ = any(part.columns.kept != names for part in others)
    in_one = differ and len(names) == 1 and first.columns.document is not None
    beside = [part.columns.texts if in_one else part.columns.together for part in parts]
    together = tuple(dict.fromkeys(chain.from_iterable(beside)))
    if differ:
        names = _PLACES[: len(names)]
    where = tuple(dict.fromkeys(each for part in parts for each in part.columns.where))
    known = all(part.identity is not None for part in parts)
    columns = replace(first.columns, texts=names, where=where, stacked=False, merged=False, together=together)
    return Source(
        named(part.name for part in parts),
        [[part.identity, *options_of(part.columns)] for part in parts] if known else None,
        lambda columns: chain.from_iterable(part.batches() for part in parts),
        total(part.size for part in parts),
        columns,
    )


def _columns(options: Mapping[str, Any]) -> Columns:
    one = options.get("text_column", "text")
    one = (one,) if isinstance(one, str) else tuple(one)
    texts = names(options.get("text_columns")) or one
    merge = not options.get("text_columns") and len(one) > 1
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
