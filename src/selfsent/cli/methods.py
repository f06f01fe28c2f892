"""`selfsent methods`."""

from __future__ import annotations

from argparse import SUPPRESS, ArgumentParser
from dataclasses import dataclass
from typing import Any

from selfsent.cli.console import show
from selfsent.cli.flags import add_options
from selfsent.cli.options import Command
from selfsent.settings import Settings, setting


@dataclass(kw_only=True)
class Methods(Command):
    """List the methods, with paper, objective, settings and options."""

    name: str | None = setting(None, "one method, with its options", positional=True, nargs="?")

    def run(self) -> None:
        """Print the methods."""
        from selfsent.methods import METHODS, get_method

        chosen = [get_method(self.name)] if self.name else list(METHODS.values())
        for method in chosen:
            title, objective, citation = method.described.values()
            verb = "computes" if method.closed_form else "minimises"
            lines = [f"{method.name}: {title}", citation, f"{verb} {objective}", *_settings(method)]
            for name, values in {"published": {}, **method.presets}.items() if self.name else ():
                changes = ", ".join(f"{option} {value}" for option, value in values.items())
                lines.append(f"--settings {name}: as published" + (f", with {changes}" if changes else ""))
            show("\n  ".join(lines))
            if self.name:
                parser = ArgumentParser(usage=SUPPRESS, add_help=False)
                add_options(parser.add_argument_group("  options"), method.options)
                show(parser.format_help())
            show("")


def _settings(method: Any) -> list[str]:
    """Settings as published, by default, and for a table of token vectors such as `bundled`."""
    from selfsent.methods.method import NEW_STATIC, STATIC, STATIC_STEPS
    from selfsent.methods.postprocessing import whitened

    if method.closed_form:
        return [f"published: pooling {method.pooling}; one look at every sentence, no steps"]

    def said(settings: Settings, beside_rate: str) -> str:
        passes = "one pass" if settings.epochs in (None, 1) else f"{settings.epochs:g} passes"
        steps = f"{settings.steps:,} steps" if settings.steps else passes
        return f"batch {settings.batch_size}, rate {settings.learning_rate:g}{beside_rate}, {steps}"

    table = "it cannot train one" if method.static is None else "the same"
    if method.static is STATIC:
        table = said(STATIC, f" (a new one: {NEW_STATIC.batch_size}, {NEW_STATIC.learning_rate:g})")
        table += f", {STATIC_STEPS:,} steps at most{whitened(method.static_whiten)}"
    return [
        f"published: pooling {method.pooling}, {said(method.published, f' {method.published.schedule}')}",
        f"default: {said(method.defaults, f' ({method.large_learning_rate:g} for large encoders)')}",
        f"a table of token vectors, such as bundled: {table}",
    ]
