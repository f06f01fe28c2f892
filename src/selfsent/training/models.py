"""The model of a run in its directory: written whole, or taken over from another run."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

from selfsent.files import atomic_directory, write_text
from selfsent.integrity import embed_checksum
from selfsent.models.encoder import Encoder
from selfsent.models.readback import check_saved


def save_model(path: Path, save: Callable[[Path], None], model: Encoder) -> None:
    """Write a model, whole or not at all, its weights with a checksum, and read it again as its users will.

    Args:
        path: its directory; an existing one is replaced.
        save: writes it into an empty one.
        model: to write.

    Raises:
        OutputError: it cannot be written, or is another model when it is read; nothing is written then.
    """
    with atomic_directory(path) as temporary:
        save(temporary)
        embed_checksum(temporary)
        check_saved(model, temporary)


def take_over(run: Path, directory: Path) -> None:
    """Give a directory of several runs the model and the scores of one; weights are linked if possible."""

    def link(source: str, target: str) -> None:
        try:
            os.link(source, target)
        except OSError:
            shutil.copy2(source, target)

    with atomic_directory(directory / "model") as temporary:
        shutil.copytree(run / "model", temporary, copy_function=link, dirs_exist_ok=True)
    write_text(directory / "scores.json", (run / "scores.json").read_text(encoding="utf-8"))
