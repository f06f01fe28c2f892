"""Models in a run's directory: written whole and with a checksum, and taken over from one run by several."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

from selfsent.files import atomic_directory, write_text
from selfsent.integrity import seal


def save_model(place: Path, save: Callable[[Path], None]) -> None:
    """Write a model that appears whole or not at all, its weights with a checksum.

    Args:
        place: its directory; what is there already is replaced.
        save: writes it into an empty one.
    """
    with atomic_directory(place) as temporary:
        save(temporary)
        seal(temporary)


def take_over(run: Path, directory: Path) -> None:
    """Give a directory of several runs the model and the scores of one; weights are not written twice if possible."""
    with atomic_directory(directory / "model") as temporary:
        shutil.copytree(run / "model", temporary, copy_function=_link, dirs_exist_ok=True)
    write_text(directory / "scores.json", (run / "scores.json").read_text(encoding="utf-8"))


def _link(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)
