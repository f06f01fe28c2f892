"""The command line as a page: `cli.md`, from the declarations that the commands are made of.

Run it where selfsent is installed; `make docs` does.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from pathlib import Path

from selfsent.cli.flags import add_method_options
from selfsent.cli.main import command_of, groups as command_groups, make_parser
from selfsent.methods import METHODS

PAGE = Path(__file__).with_name("cli.md")
INTRODUCTION = """# Command line

Made from the declarations of the options, for this version. `selfsent COMMAND --help-all` prints the same
(`--help` where there are few).

Exit status: 0 done, 1 a run that failed on the way, 2 bad input (one line says what is wrong), 130 interrupted. Values
are given as `--name value` or `--name=value`, lists with commas.
"""


def cell(text: str) -> str:
    """Text that a cell of a Markdown table shows as it is."""
    for sign, shown in (("&", "&amp;"), ("<", "&lt;"), ("|", "\\|"), ("*", "\\*"), ("_", "\\_"), ("[", "\\[")):
        text = text.replace(sign, shown)
    return " ".join(text.split())


def flag(action: argparse.Action) -> str:
    """An option as it is typed."""
    if not action.option_strings:
        return str(action.metavar or action.dest).upper()
    name = ", ".join(action.option_strings)
    if action.nargs == 0:
        return name
    value = str(action.metavar or "")
    if action.choices:
        value = "{" + ",".join(map(str, action.choices)) + "}"
    if action.nargs in ("+", "*"):
        value += " ..."
    return f"{name} {f'[{value}]' if action.nargs == '?' else value}"


def table(actions: Iterable[argparse.Action]) -> list[str]:
    """A row for each option."""
    rows = []
    for action in actions:
        about = (action.help or "").replace("%%", "%")
        if action.dest not in ("help", "help_all"):
            must = "**required**: " if action.option_strings and action.required else ""
            rows.append(f"| `{flag(action).replace('|', chr(92) + '|')}` | {must}{cell(about)} |")
    return ["| option | what it does |", "|---|---|", *rows, ""] if rows else []


def groups(parser: argparse.ArgumentParser) -> list[str]:
    """The options of a parser, with a title for each group of its own."""
    own = [each for each in parser._action_groups if each.title in ("positional arguments", "options")]
    lines = table(action for group in own for action in group._group_actions)
    for group in parser._action_groups:
        if group not in own and (rows := table(group._group_actions)):
            title = cell(str(group.title))
            lines += [f"**{title[0].upper()}{title[1:]}**", "", *rows]
    return lines


def description(parser: argparse.ArgumentParser) -> list[str]:
    """The description of a command, with its examples as code."""
    paragraphs = (parser.description or "").split("\n\n")
    about = [part if part.startswith(" ") else cell(part) for part in paragraphs]
    return ["\n\n".join(f"```\n{part}\n```" if part.startswith(" ") else part for part in about), ""]


def page() -> str:
    """The whole page."""
    commands = [name for names in command_groups().values() for name in names]
    lines = [INTRODUCTION, "| command | what it does |", "|---|---|"]
    for name in commands:
        about = " ".join((command_of(name).__doc__ or "").partition(".")[0].split())
        lines.append(f"| [`{name}`](#{name}) | {cell(about)} |")
    for name in commands:
        parser, _, _ = make_parser([name])
        lines += ["", f"## {name} {{ #{name} }}", "", *description(parser), *groups(parser)]
        for more in command_of(name).subcommands:
            parser, _, _ = make_parser([name, more])
            lines += [f"### {name} {more} {{ #{name}-{more} }}", "", *description(parser), *groups(parser)]
    lines += ["", "## Options of methods", "", "For `selfsent train --method NAME`.", ""]
    for name, method in METHODS.items():
        parser = argparse.ArgumentParser(add_help=False)
        add_method_options(parser, method, None)
        rows = table(parser._actions) or ["No options.", ""]
        lines += [f"### {name} {{ #method-{name} }}", "", cell(method.described["title"]) + ".", "", *rows]
    return "\n".join(lines).rstrip() + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
