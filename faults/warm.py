"""Imported by the server from which processes are forked: what a command imports on its way is then there already."""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ["TOKENIZERS_PARALLELISM"] = "false"  # threads and forks do not go together


def _warm(folder: Path) -> None:
    from selfsent.cli import main

    before = os.environ.get("SELFSENT_CACHE")
    os.environ["SELFSENT_CACHE"] = str(folder / "cache")
    text = folder / "text.txt"
    text.write_text("".join(f"a sentence of number {n} in a text\nand one that follows {n}\n\n" for n in range(40)))
    few = ["--steps", "1", "--batch-size", "4", "--max-length", "16"]
    for arguments in (
        ["train", str(text), "--method", "tsdae", "--base", "bundled-raw", *few, "--output", str(folder / "a")],
        ["augment", str(text), "--with", "mlm:model=bundled-raw", "--output", f"{folder}/v.parquet"],
        ["search", "bundled", str(text), "a sentence", "--json", str(folder / "hits.json")],
    ):
        with (
            contextlib.suppress(SystemExit),
            (folder / "log").open("w") as log,
            contextlib.redirect_stdout(log),
            contextlib.redirect_stderr(log),
        ):
            main(arguments)
    if before is None:
        del os.environ["SELFSENT_CACHE"]


with tempfile.TemporaryDirectory() as made:
    _warm(Path(made))
