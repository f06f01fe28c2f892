"""`selfsent methods`."""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
from typing import Any

from selfsent.errors import SelfsentError
from selfsent.settings import choices_of


def add_parser(commands: Any) -> None:
    """Add the command."""
    parser = commands.add_parser("methods", help="list the methods, with paper, objective, settings and options")
    parser.add_argument("name", nargs="?", metavar="NAME", help="one method, with its options")
    parser.add_argument("--json", action="store_true", help="everything, as JSON on standard output")
    parser.set_defaults(run=run)


def describe(method: Any) -> dict[str, Any]:
    """A method as plain data."""
    return {
        "name": method.name,
        **{key: method.described[key] for key in ("title", "citation", "objective")},
        "pooling": method.pooling,
        "closed_form": method.closed_form,
        "labels": _labels(method),
        "published": dataclasses.asdict(method.published),
        "defaults": {**dataclasses.asdict(method.defaults), "large_learning_rate": method.large_learning_rate},
        "static": None if method.static is None else dataclasses.asdict(method.static),
        "static_whiten": method.static_whiten,
        "presets": {name: dict(values) for name, values in method.presets.items()},
        "options": {
            item.name: {"default": item.default, "description": item.metadata["description"]}
            for item in dataclasses.fields(method.options)
        },
    }


def run(options: argparse.Namespace) -> None:
    """Print the methods."""
    from selfsent.methods import METHODS, get_method

    chosen = [get_method(options.name)] if options.name else list(METHODS.values())
    if options.json:
        sys.stdout.write(json.dumps([describe(method) for method in chosen], ensure_ascii=False, indent=1) + "\n")
        return
    from selfsent.cli.console import show

    for method in chosen:
        title, objective, citation = method.described.values()
        verb = "computes" if method.closed_form else "minimises"
        lines = [f"{method.name}: {title}", citation, f"{verb} {objective}", *_settings(method)]
        show("\n  ".join(lines))
        if options.name:
            show(_details(method))
        show("")


def _details(method: Any) -> Any:
    """Its settings by name, then its options, each beside what it does."""
    from rich.table import Table

    grid = Table.grid(padding=(0, 2))
    for name, values in {"published": {}, **method.presets}.items():
        changes = " ".join(map(_flag, values.items()))
        grid.add_row(f"  --settings {name}", "as published" + (f", with {changes}" if changes else ""))
    for item in dataclasses.fields(method.options):
        name, switch = item.name.replace("_", "-"), isinstance(item.default, bool)
        shown = f"--{'' if item.default else 'no-'}{name}" if switch else item.default
        remarks = [", ".join(allowed)] if (allowed := choices_of(method.options).get(item.name)) else []
        remarks += [] if shown in (None, "") else [f"default: {shown}"]
        grid.add_row(
            f"  --{'[no-]' if switch else ''}{name}",
            item.metadata["description"] + (f" ({'; '.join(remarks)})" if remarks else ""),
        )
    return grid


def _labels(method: Any) -> str | None:
    """What a row must bring beside its texts, with the default options; None where texts are enough."""
    try:
        wanted = method.options().labels()
    except SelfsentError:  # options without a default, which only methods that need no labels have
        return None
    return None if wanted is None else str(wanted.kind)


def _flag(item: tuple[str, Any]) -> str:
    name, value = item[0].replace("_", "-"), item[1]
    return f"--{'' if value else 'no-'}{name}" if isinstance(value, bool) else f"--{name} {value}"


def _passes(method: Any) -> str:
    passes = method.defaults.epochs or 1
    return "one pass" if passes == 1 else f"{passes:g} passes"


def _settings(method: Any) -> list[str]:
    if method.closed_form:
        return [f"published: pooling {method.pooling}; one look at every sentence, no steps"]
    published = method.published
    length = (
        f"{published.steps:,} steps"
        if published.steps
        else f"{published.epochs:g} {'pass' if published.epochs == 1 else 'passes'} over the corpus"
    )
    return [
        f"published: pooling {method.pooling}, batch {published.batch_size}, rate {published.learning_rate:g}"
        f" {published.schedule}, {length}",
        f"default: batch {method.defaults.batch_size},"
        f" rate {method.defaults.learning_rate:g} ({method.large_learning_rate:g} for large encoders),"
        f" {_passes(method)}",
        _static(method),
    ]


def _static(method: Any) -> str:
    """What is done with a table of token vectors, such as `bundled`."""
    from selfsent.methods.method import NEW_STATIC, STATIC, STATIC_STEPS
    from selfsent.methods.postprocessing import whitened

    said = "a table of token vectors, such as bundled"
    if method.static is None:
        return f"{said}: it cannot train one"
    if method.static is not STATIC:
        return f"{said}: the same"
    return (
        f"{said}: batch {STATIC.batch_size}, rate {STATIC.learning_rate:g}"
        f" (a new one: {NEW_STATIC.batch_size}, {NEW_STATIC.learning_rate:g}), {STATIC.epochs:g} passes,"
        f" {STATIC_STEPS:,} steps at most{whitened(method.static_whiten)}"
    )
