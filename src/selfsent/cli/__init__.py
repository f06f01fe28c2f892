"""The command line: `selfsent COMMAND ...`."""

from selfsent.cli.main import main

__all__ = ["main"]
