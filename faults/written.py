"""Write, with today's code, what tests/test_upgrades.py reads with that of later days: tests/written/VERSION/.

    python faults/written.py

A run that was killed behind a checkpoint, a finished one, a cache and vectors, all of a table of a few numbers.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from world import ROOT, Traps, World


def _make_base(path: str) -> None:
    import tiny
    from selfsent.models.static import new_table

    new_table(tiny.make_tokenizer().backend_tokenizer, 8, 0).save(Path(path))


def _die_at_step() -> None:
    import os
    import signal

    from selfsent.training.loop import Loop

    advance = Loop.advance

    def advance_or_die(loop: Loop, step: int) -> object:
        if step == 4:
            os.kill(os.getpid(), signal.SIGKILL)
        return advance(loop, step)

    Loop.advance = advance_or_die  # type: ignore[method-assign,assignment]


def main() -> None:
    """Make the folder anew."""
    import tiny
    from selfsent.version import __version__

    with tempfile.TemporaryDirectory() as made:
        world, target = World(Path(made)), ROOT / "tests" / "written" / __version__
        base, text, cache = world.make("base", _make_base), world.folder / "text.txt", world.folder / "cache"
        text.write_text("\n".join(tiny.make_sentences(60)) + "\n")
        steps = ["--steps", 6, "--checkpoint-every", 3, "--keep", 1, "--batch-size", 8, "--max-length", 16, "--map", 0]
        train = ["train", text, "--method", "simcse", "--base", base, *steps]
        done = world.do([*train, "--output", world.folder / "killed"], cache, Traps(before=_die_at_step))
        assert done.killed, done.said
        done = world.do([*train, "--output", world.folder / "finished"], cache)
        assert done.status == 0, done.said
        shutil.rmtree(world.folder / "finished" / "checkpoints")
        for end in ("npy", "parquet"):
            output = world.folder / f"vectors.{end}"
            done = world.do(["encode", world.folder / "finished", text, "--output", output], cache)
            assert done.status == 0, done.said
        shutil.rmtree(target, ignore_errors=True)
        target.mkdir(parents=True)
        for name in ("base", "killed", "finished", "cache"):
            shutil.copytree(world.folder / name, target / name)
        for name in ("text.txt", "vectors.npy", "vectors.parquet"):
            shutil.copy(world.folder / name, target / name)
    size = sum(path.stat().st_size for path in target.rglob("*") if path.is_file())
    print(f"{target}: {size >> 10} KB")


if __name__ == "__main__":
    main()
