"""Processes that run a command and can be killed: forked, as a new one would import for seconds."""

import multiprocessing
import os
import signal
import sys
import time
from pathlib import Path


def start(arguments, log, **traps):
    """Start a command in a process of its own, its output in a file; see `_run` for the traps."""
    import selfsent.api
    import selfsent.report.scores  # noqa: F401 — here, so that no process needs to

    given = [str(argument) for argument in arguments], str(log)
    process = multiprocessing.get_context("fork").Process(target=_run, args=given, kwargs=traps)
    process.start()
    return process


def finish(process):
    """Its exit status, once it has ended."""
    process.join(120)
    assert process.exitcode is not None, "the process hangs"
    return process.exitcode


def kill_when(process, path):
    """Kill it, as `kill -9` does, when a file appears."""
    while not Path(path).exists():
        assert process.is_alive(), "it ended before it could be killed"
        time.sleep(0.01)
    os.kill(process.pid, signal.SIGKILL)
    assert finish(process) == -signal.SIGKILL


def _run(arguments, log, halt_at=None, halted=None):
    """The command.

    Args:
        arguments: of the command line.
        log: file for standard output and standard error.
        halt_at: step after which nothing happens any more, so that there is time to kill the process.
        halted: file that says that it got there.
    """
    with Path(log).open("a") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    sys.stdout, sys.stderr = os.fdopen(1, "w"), os.fdopen(2, "w", buffering=1)
    if halt_at is not None:
        _halt_at(halt_at, Path(halted))
    from selfsent.cli import main

    main(arguments)


def _halt_at(step, halted):
    from selfsent.training.loop import Loop

    advance = Loop.advance

    def advance_or_halt(loop, number):
        if number == step:
            halted.touch()
            time.sleep(600)
        return advance(loop, number)

    Loop.advance = advance_or_halt
