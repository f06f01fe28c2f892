"""Write, with today's code, what tests/test_upgrades.py reads with that of later days: tests/written/VERSION/.

    python faults/written.py

A run that stopped behind a checkpoint, a finished one, a cache and vectors, all of a table of a few numbers.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests")]


class _StopError(BaseException):
    """The end of a run that nothing tidies up after, as a kill is."""


def _give(*arguments: object) -> None:
    from selfsent.cli import main

    try:
        main([str(argument) for argument in arguments])
    except SystemExit as end:
        if end.code:
            raise


def _stopped_at(step: int, *arguments: object) -> None:
    from selfsent.training.loop import Loop

    advance = Loop.advance

    def advance_or_stop(loop: Loop, number: int) -> object:
        if number == step:
            raise _StopError
        return advance(loop, number)

    Loop.advance = advance_or_stop  # type: ignore[method-assign,assignment]
    try:
        _give(*arguments)
    except _StopError:
        Loop.advance = advance  # type: ignore[method-assign]


def main() -> None:
    """Make the folder anew."""
    import tiny
    from selfsent.models.static import new_table
    from selfsent.version import __version__

    target = ROOT / "tests" / "written" / __version__
    with tempfile.TemporaryDirectory() as made:
        os.chdir(made)  # the names in what is written are no places of this machine
        os.environ["SELFSENT_CACHE"] = "cache"
        new_table(tiny.make_tokenizer().backend_tokenizer, 8, 0).save(Path("base"))
        Path("text.txt").write_text("\n".join(tiny.make_sentences(60)) + "\n")
        steps = "--steps 6 --checkpoint-every 3 --batch-size 8 --max-length 16 --delete-words 0.3".split()
        train = ["train", "text.txt", "--method", "simcse", "--base", "base", *steps]
        _stopped_at(4, *train, "--output", "killed")
        _give(*train, "--output", "finished")
        for end in ("npy", "parquet"):
            _give("encode", "finished", "text.txt", "--output", f"vectors.{end}")
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(made, target)
    size = sum(path.stat().st_size for path in target.rglob("*") if path.is_file())
    print(f"{target}: {size >> 10} KB")


if __name__ == "__main__":
    main()
