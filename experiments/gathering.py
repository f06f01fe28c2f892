"""What the scripts that gather text share: the sources, files of git clones, and files of documents."""

from __future__ import annotations

import io
import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import yaml
import zstandard

SOURCES: dict[str, Any] = yaml.safe_load(Path(__file__).with_name("sources.yaml").read_text(encoding="utf-8"))
TITLED: tuple[str, ...] = tuple(SOURCES["titled"])

Document = list[str]


def listed(clone: Path, commit: str, *under: str) -> list[str]:
    """The files of a commit below folders, in git's order."""
    git = ["git", "-C", str(clone), "ls-tree", "-r", "--name-only", commit, *under]
    return subprocess.check_output(git, text=True).splitlines()


def shown(clone: Path, path: str, missing_ok: bool = False) -> str:
    """The text of a file in a clone's newest commit; nothing where the clone lacks it and may."""
    told = subprocess.run(["git", "-C", str(clone), "show", f"HEAD:{path}"], capture_output=True, check=not missing_ok)
    return told.stdout.decode("utf-8", "replace")


def files(clone: Path, commit: str, *under: str, end: str = "", step: int = 1) -> Iterator[tuple[str, str]]:
    """Paths and texts of a commit's files below folders, or of one in so many, but for those that the clone lacks."""
    wanted = [name for name in listed(clone, commit, *under) if name.endswith(end)][::step]
    asked = "".join(f"{commit}:{name}\n" for name in wanted)
    git = ["git", "-C", str(clone), "cat-file", "--batch"]
    told = io.BytesIO(subprocess.run(git, input=asked.encode(), capture_output=True, check=True).stdout)
    for name in wanted:
        head = told.readline().split()
        if head[-1] != b"missing":
            yield name, told.read(int(head[-1])).decode("utf-8", "replace")
            told.readline()


def distinct(documents: Iterable[Document], fewest: int = 1) -> Iterator[Document]:
    """Documents without the lines of those before, as far as so many are left."""
    seen: set[str] = set()
    for document in documents:
        lines = [line for line in document if line not in seen]
        if len(lines) >= fewest:
            seen |= set(lines)
            yield lines


def documents(folder: Path, name: str) -> list[Document]:
    """The documents of a source."""
    with zstandard.open(folder / f"{name}.txt.zst", "rt", encoding="utf-8") as file:
        return [part.splitlines() for part in file.read().split("\n\n") if part.strip()]


def write_documents(folder: Path, name: str, found: Iterable[Document]) -> None:
    """Write a source whole or not at all: a sentence a line, an empty line behind each document."""
    folder.mkdir(parents=True, exist_ok=True)
    place, count = folder / f"{name}.txt.zst", 0
    with zstandard.open(place.with_suffix(".part"), "wt", encoding="utf-8") as file:
        for lines in found:
            count += len(lines)
            file.write("".join(f"{line}\n" for line in lines) + "\n")
    place.with_suffix(".part").rename(place)
    print(name, count, "lines", flush=True)
