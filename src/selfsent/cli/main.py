"""Parsing, dispatch, and user errors as one line and an exit status."""

from __future__ import annotations

import argparse
import errno
import os
import re
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from selfsent.cli import console
from selfsent.display import leads, visible
from selfsent.errors import (
    AmbiguousTokensWarning,
    Damaged,
    HubFallbackWarning,
    SelfsentError,
    SettingsError,
    TrainingError,
    near,
)
from selfsent.extensions import announced, hint, load
from selfsent.version import __version__

if TYPE_CHECKING:
    from selfsent.cli.options import Command

_DESCRIPTION = """Unlabelled sentences in, a sentence-embedding model out, and a measure of whether it helped.

  selfsent train tickets.csv --text-column body --output runs/tickets
  selfsent search runs/tickets tickets.csv --text-column body "printer does not answer"
  selfsent evaluate bundled runs/tickets --documents tickets.csv --text-column body
"""

GROUPS = {
    "Train": ("train", "compare", "pretrain", "table", "augment", "mine", "queries"),
    "Judge": ("evaluate", "exam", "adapt", "label"),
    "Use": ("search", "index", "push", "serve", "pairs", "cluster", "encode", "export", "publish"),
    "Text": ("clean", "dedup", "cache"),
    "Methods": ("methods",),
}
COMMANDS = tuple(name for names in GROUPS.values() for name in names)
"""Commands of this package; `groups` has the ones of extensions as well."""
_MODULES = {"table": "pretrain", "export": "encode"}
"""Modules of commands with another name."""
_PATIENCE = 5
"""Seconds that the other processes wait before reporting an error of their own."""


class Parser(argparse.ArgumentParser):
    """An argument parser with one-line errors and without abbreviations, which would change with the options."""

    see = ""
    """Commands for help, in place of the command's `--help`."""
    command: type[Command]
    arguments: list[str]
    """Arguments given to the command."""
    has_late_options = False
    """Whether the options of a method were added."""
    sections: Sequence[tuple[str | None, Iterable[argparse.Action]]] = ()
    """Sections of the help, in place of all options."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"allow_abbrev": False, **options})

    def usage_of_required(self) -> str:
        """The command with its required arguments."""
        actions = [each for each in self._actions if each.required or not each.option_strings]
        names = [str(each.metavar or each.dest.upper()) for each in actions]
        several = {"+": "{0} [{0} ...]", "*": "[{0} ...]", "?": "[{0}]"}
        shown = [several.get(str(each.nargs), "{0}").format(name) for each, name in zip(actions, names, strict=True)]
        flags = [f"{each.option_strings[0]} " if each.option_strings else "" for each in actions]
        return " ".join([self.prog, *(flag + name for flag, name in zip(flags, shown, strict=True)), "[options]"])

    def format_help(self) -> str:
        """Help with all options, or with `sections` alone."""
        if not self.sections:
            return super().format_help()
        formatter = self._get_formatter()
        formatter.add_usage(self.usage, [], [])
        formatter.add_text(self.description)
        for title, actions in self.sections:
            formatter.start_section(title)
            formatter.add_arguments(actions)
            formatter.end_section()
        return formatter.format_help()

    def unknown_flags(self, arguments: Sequence[str]) -> list[str]:
        """Flags among arguments that no option has; none if help is asked for."""
        known = self._option_string_actions
        flags = [word.partition("=")[0] for word in arguments if word.startswith("--") and word != "--"]
        return [] if {"-h", "--help", "--help-all"} & {*arguments} else [flag for flag in flags if flag not in known]

    def refuse(self, arguments: Sequence[str], belongs_to: Callable[[str], str] = lambda name: "") -> None:
        """Reject unknown arguments.

        Args:
            arguments: the unknown ones.
            belongs_to: a hint for an option of that Python name; may be empty.
        """
        if not arguments:
            return
        given = arguments[0].partition("=")[0]
        name = given.removeprefix("--").removeprefix("no-").replace("-", "_")
        known = [flag for action in self._actions for flag in action.option_strings]
        from selfsent.cli.flags import WITHOUT_FLAGS

        python = f"{name} is set in Python or in a recipe" if name in WITHOUT_FLAGS else ""
        hint = python or belongs_to(name) or near(given, known, 0.75)
        self.error(f"unrecognised argument {given}" + (f"; {hint}" if hint else ""))

    def error(self, message: str) -> NoReturn:
        """Print the error and exit with status 2."""
        see = self.see or f"{self.prog} --help"
        _leave(f"{self.prog}: {message} (see {see})", 2)

    def flags(self) -> dict[str, str]:
        """The flag of each option, by its Python name."""
        return {action.dest: action.option_strings[0] for action in self._actions if action.option_strings}


class HelpAction(argparse.Action):
    """Prints the main options of a command, or all of them, and the options of a given method."""

    def __init__(self, option_strings: Sequence[str], dest: str, const: bool, help: str) -> None:
        super().__init__(option_strings, dest, nargs=0, const=const, default=argparse.SUPPRESS, help=help)

    def __call__(self, parser: Any, *rest: Any) -> NoReturn:
        """Print, and exit."""
        from selfsent.cli.options import WithLateOptions

        command, declared = parser.command, len(parser._action_groups)
        names_method = any(word.partition("=")[0] == "--method" for word in parser.arguments)
        if issubclass(command, WithLateOptions) and names_method:
            command.add_late_options(parser, parser.arguments)
        if command.main_options and not self.const:
            known = {action.dest: action for action in parser._actions}
            main = [known[name] for name in (*command.main_options.split(), "help_all")]
            late = [(group.title, group._group_actions) for group in parser._action_groups[declared:]]
            positional = [each for each in parser._actions if not each.option_strings]
            parser.sections = [("arguments", positional), ("main options", main), *late]
        parser.print_help()
        raise SystemExit(0)


class _Formatter(argparse.HelpFormatter):
    """Fills paragraphs separately, and keeps examples as they are."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        parts = text.split("\n\n")
        return "\n\n".join(
            part if part[:1] == " " else super(_Formatter, self)._fill_text(part, width, indent) for part in parts
        )


def groups() -> dict[str, tuple[str, ...]]:
    """All commands by group; commands of extensions come last."""
    others = tuple(name for name in announced("commands") if name not in COMMANDS)
    return GROUPS | ({"Of other packages": others} if others else {})


def command_of(name: str) -> type[Command]:
    """The dataclass of a command, of this package or of an extension."""
    if name not in COMMANDS:
        extension: type[Command] = load("commands", name)
        return extension
    kind: type[Command] = getattr(import_module(f"selfsent.cli.{_MODULES.get(name, name)}"), name.capitalize())
    return kind


def make_parser(arguments: Sequence[str]) -> tuple[Parser, type[Command] | None, list[str]]:
    """The parser of the given command, the command, and its arguments; without slow imports.

    Without a command, the parser lists all of them, or reports the error.
    """
    if not arguments or (arguments[0] not in COMMANDS and arguments[0] not in announced("commands")):
        return _parser_of_all(), None, list(arguments)
    import inspect

    from selfsent.cli.flags import declare

    name, *rest = arguments
    kind, program = command_of(name), f"selfsent {name}"
    if rest and rest[0] in kind.subcommands:
        program, kind = f"{program} {rest[0]}", kind.subcommands[rest.pop(0)]
    about = {"description": inspect.getdoc(kind), "formatter_class": _Formatter}
    parser = Parser(prog=program, **about, add_help=False)
    parser.command, parser.arguments = kind, rest
    shown = "this help" if not kind.main_options else "the main options"
    shown += ", and those of the --method that is given" if "method" in kind.main_options.split() else ""
    parser.add_argument("-h", "--help", action=HelpAction, const=False, help=shown)
    if kind.main_options:
        parser.add_argument("--help-all", action=HelpAction, const=True, help="all options")
    declare(parser, kind)
    parser.usage = kind.usage or parser.usage_of_required()
    return parser, kind, rest


def _parser_of_all() -> Parser:
    """The parser without a command, whose help lists all of them."""
    parser = Parser(prog="selfsent", description=_DESCRIPTION, formatter_class=_Formatter, usage="%(prog)s COMMAND ...")
    parser.add_argument("--version", action="version", version=f"selfsent {__version__}")
    options = list(parser._actions)
    known = groups()
    parser.add_argument("command", metavar="COMMAND", choices=[name for names in known.values() for name in names])
    sections: list[tuple[str, list[argparse.Action]]] = [
        (title, [argparse.Action([], name, help=summary_of(name)) for name in names]) for title, names in known.items()
    ]
    parser.sections = [*sections, ("options", options)]
    return parser


def summary_of(name: str) -> str:
    """Summary of a command: its first sentence, read from the source, which is quicker than to import it."""
    module = find_spec(f"selfsent.cli.{_MODULES.get(name, name)}")
    source = Path(str(module.origin)).read_text(encoding="utf-8") if module and module.has_location else ""
    found = re.search(rf'^class {name.capitalize()}\b[^\n]*:\n    """([^.]+)\.', source, re.MULTILINE)
    text = found[1] if found else (command_of(name).__doc__ or "").partition(".")[0]
    return " ".join(text.split())


def set_environment() -> None:
    """Set environment variables that libraries read on import; the user's values take precedence."""
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "true")
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
    # Makes torch allocate in pieces of 2 MB, so that batches of many sizes cause little fragmentation.
    os.environ.setdefault("THP_MEM_ALLOC_ENABLE", "1")
    # Waiting threads of GNU's OpenMP spin for milliseconds. Next to other programs, this takes the core from the thread
    # they wait for, so they sleep at once. Otherwise they spin for a thirtieth of the default time, which covers nearly
    # all waits, in case other programs start later.
    if "OMP_WAIT_POLICY" not in os.environ:
        os.environ.setdefault("GOMP_SPINCOUNT", "0" if is_busy() else "10000")


def is_busy(load: Path = Path("/proc/loadavg")) -> bool:
    """Whether other programs are running, in each of three samples."""

    def running() -> int:
        time.sleep(0.002)
        return int(load.read_text().split()[3].partition("/")[0])  # includes this process

    try:
        return min(running() for _ in range(3)) > 1
    except (OSError, ValueError, IndexError):  # not Linux
        return False


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the command line and exit: 0 done, 1 failed run, 2 bad input, 130 interrupted."""
    set_environment()
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:  # closed by the parent process
            setattr(sys, name, Path(os.devnull).open(mode))  # noqa: SIM115 — open until exit
    if hasattr(sys.stdout, "reconfigure"):  # its encoding may lack characters; stderr escapes already
        sys.stdout.reconfigure(errors="backslashreplace")
    if getattr(warnings.showwarning, "func", None) is not _warn:  # already set by an earlier call
        warnings.showwarning = partial(_warn, warnings.showwarning)
    given = list(sys.argv[1:] if arguments is None else arguments)
    try:
        _run(given)
    except TrainingError as error:
        _complain(str(error), 1)
    except SelfsentError as error:
        _complain(str(error), 2)
    except KeyboardInterrupt as stop:
        _complain(str(stop) or "interrupted", 130)
    except BrokenPipeError:
        # A closed pipe, as in `selfsent search ... | head`, is no error.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (OSError, MemoryError, RuntimeError) as error:
        if not (line := _of_the_machine(error)):
            raise
        _complain(line, 2)
    raise SystemExit(0)


_ADVICE = {
    **dict.fromkeys((errno.ENOSPC, errno.EDQUOT), "make room, or name another path"),
    **dict.fromkeys((errno.EACCES, errno.EPERM), "see who may read and write there"),
    **dict.fromkeys((errno.ENOENT, errno.ENOTDIR, errno.ESTALE), "was it removed meanwhile?"),
    errno.EFBIG: "raise the limit of file sizes (ulimit -f)",
    errno.EMFILE: "raise the limit of open files (ulimit -n)",
    errno.ENFILE: "close other programs",
    errno.ENOMEM: "close other programs, or ask for less (a smaller --batch-size)",
    errno.EROFS: "name another path",
    errno.EIO: "the disk may be broken",
    errno.EAGAIN: "close other programs, or raise the limit of processes (ulimit -u)",
}
"""Advice by error number."""
_NO_MEMORY = re.compile(
    r"(?i)out of memory|can(?:no|')t allocate memory|not enough memory|bad_alloc|could not create a primitive"
)


def _of_the_machine(error: BaseException) -> str | None:
    """The error message for a lack of disk space, memory or permissions; None for other errors."""
    if isinstance(error, OSError) and error.errno in _ADVICE:
        return f"{error.filename or 'the system'}: {error.strerror}: {_ADVICE[error.errno]}"
    if isinstance(error, MemoryError) or _NO_MEMORY.search(str(error)):
        return f"there is not enough memory: {_ADVICE[errno.ENOMEM]}"
    return None


def _warn(show: Callable[..., None], message: Warning | str, category: type[Warning], *rest: Any, **more: Any) -> None:
    """Show one-line warnings as one line, others by default."""
    if issubclass(category, Damaged | HubFallbackWarning | AmbiguousTokensWarning):
        sys.stderr.write(visible(f"{message}") + "\n")
    else:
        show(message, category, *rest, **more)


def _run(arguments: list[str]) -> None:
    started = time.perf_counter()
    parser, kind, rest = make_parser(arguments)
    if kind is None:
        if rest[:1] == ["recipes"]:
            raise SettingsError(f"there is no command recipes{hint('it comes')}")
        parser.parse_args(rest)
        return
    from selfsent.cli.options import WithLateOptions

    console.FLAGS.clear()
    console.FLAGS.update(parser.flags())
    try:
        # A value after an unknown flag would look like a position.
        if issubclass(kind, WithLateOptions) and parser.unknown_flags(rest):
            kind.add_late_options(parser, rest)
        options, unknown = parser.parse_known_intermixed_args(rest)
        command = kind.of(options, parser=parser, arguments=arguments, unknown=unknown, started=started)
        if not issubclass(kind, WithLateOptions):
            parser.refuse(unknown)
        command.run()
    finally:
        sys.stdout.flush()


def _complain(message: str, status: int) -> NoReturn:
    _leave(f"selfsent: {console.with_flags(' '.join(message.split()))}", status)


def _leave(line: str, status: int) -> NoReturn:
    """Print the reason and exit. Under `torchrun`, the first process prints, and its exit ends the others."""
    if not leads():
        time.sleep(_PATIENCE)
    with suppress(BrokenPipeError):
        sys.stderr.write(visible(line) + "\n")
    raise SystemExit(status)
