"""Bytes that change on the disk: in checkpoints, caches, token tables, models, vectors and records of runs.

A case survives where the damage changes nothing, is made good again (the checkpoint before is used, a cache is made
anew), or is refused by a line that names the file or its folder. A result that silently differs does not survive.
"""

from __future__ import annotations

import json
import random
import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from world import Done, Traps, World, digest


@dataclass(frozen=True)
class Target:
    """What is damaged.

    Args:
        name: what it is called.
        make: puts it into an empty folder, whole.
        files: a pattern of the files of which one is damaged.
        use: a command that reads it.
        result: pattern of what comes out.
    """

    name: str
    make: Callable[[Path], None]
    files: str
    use: Callable[[Path], list[object]]
    result: str


KINDS = ("one bit", "one byte", "sixteen bytes of zeros", "cut short", "empty")


def cases(count: int, seed: int, exact: bool) -> list[dict[str, Any]]:
    """Which target, which of its files, what kind of damage, and where."""
    found = []
    for number in range(count):
        draw = random.Random(f"flips {seed} {number}")
        kind = draw.choices(KINDS, (5, 5, 2, 2, 1))[0]
        found.append({"target": number % len(TARGETS), "file": draw.random(), "kind": kind, "place": draw.random()})
    return found


TARGETS = ("checkpoint", "record of a run", "corpus", "token table", "model", "vectors", "vectors in parquet")
TARGETS += ("vectors half done", "views half done", "vectors of a teacher", "checkpoint of an adapter", "index")


class Flips:
    """The part of the campaign.

    Args:
        world: what is broken.
    """

    def __init__(self, world: World) -> None:
        self.world = world
        self._expected: dict[int, dict[str, str]] = {}

    @cached_property
    def targets(self) -> list[Target]:
        """By their numbers in `TARGETS`."""
        world, text = self.world, self.world.sentences

        def resume(folder: Path) -> list[object]:
            return [*world.train, "--output", folder / "run", "--resume"]

        def adapt(folder: Path) -> list[object]:
            return [*resume(folder), "--lora", 4, "--keep-adapter"]

        def ask(folder: Path) -> list[object]:
            return ["search", "--index", folder / "index", "bada", "--json", folder / "hits.json"]

        def encode(folder: Path) -> list[object]:
            return ["encode", "bundled", text, "--output", folder / "out.npy"]

        def train(folder: Path) -> list[object]:
            return [*world.train, "--output", folder / "run"]

        def by_model(folder: Path) -> list[object]:
            return ["encode", folder / "model", text, "--output", folder / "out.npy"]

        def search(end: str) -> Callable[[Path], list[object]]:
            hits = ("--json", "hits.json", "--encoded")
            return lambda folder: ["search", "bundled", text, "bada", "--json", folder / hits[1], hits[2], folder / end]

        def many(folder: Path) -> list[object]:
            return ["encode", "bundled", world.many, "--output", folder / "out.npy"]

        def views(folder: Path) -> list[object]:
            return [*world.views, "--output", folder / "views.parquet"]

        def taught(folder: Path) -> list[object]:
            given = ["train", text, "--method", "distil", "--base", world.base, "--teacher", "bundled", "--steps", 2]
            return [*given, "--batch-size", 8, "--max-length", 32, "--output", folder / "run"]

        return [
            Target(TARGETS[0], self._unfinished, "run/checkpoints/*/*", resume, "run/model/*.safetensors"),
            Target(TARGETS[1], self._unfinished, "run/*.json*", resume, "run/model/*.safetensors"),
            Target(TARGETS[2], self._made(encode, "out.npy"), "cache/corpora/*/*", encode, "out.npy"),
            Target(TARGETS[3], self._cached, "cache/corpora/*/tokens-*/*", train, "run/model/*.safetensors"),
            Target(TARGETS[4], self._model, "model/**/*.*", by_model, "out.npy"),
            Target(TARGETS[5], self._made(encode), "out.npy", search("out.npy"), "hits.json"),
            Target(TARGETS[6], self._made(self._parquet), "out.parquet", search("out.parquet"), "hits.json"),
            Target(TARGETS[7], self._half(many, "rows"), ".out.npy.*.part/*", many, "out.npy"),
            Target(TARGETS[8], self._half(views, "parts"), "views.parquet.parts/*", views, "views.parquet"),
            Target(
                TARGETS[9], self._made(taught, "run"), "cache/corpora/*/vectors-*/*", taught, "run/model/*.safetensors"
            ),
            Target(TARGETS[10], self._adapted, "run/checkpoints/*/*", adapt, "run/model/*.safetensors"),
            Target(TARGETS[11], self._index, "index/*", ask, "hits.json"),
        ]

    def run(self, case: dict[str, Any]) -> dict[str, Any]:
        """Damage a file, use it, and compare."""
        number = case["target"]
        target, folder = self.targets[number], self.world.new("flipped")
        if number not in self._expected:
            target.make(folder)
            done = self._use(target, folder)
            if done.status != 0:
                raise RuntimeError(f"{target.name}: {done.said}")
            self._expected[number] = self._result(target, folder)
            shutil.rmtree(folder)
            folder.mkdir()
        target.make(folder)
        files = sorted(path for path in folder.glob(target.files) if path.is_file() and path.name != "lock")
        file = files[int(case["file"] * len(files))]
        damage(file, case["kind"], case["place"])
        done = self._use(target, folder)
        told = {"target": target.name, "file": _short(file.relative_to(folder)), "said": _short(done.last)[:200]}
        if done.fault or done.status not in (0, 2):
            fault: str | None = done.fault or f"status {done.status}: {done.last}"
        elif done.status == 2:
            ours = (file.name, file.parent.name, str(folder))
            told["end"], fault = "refused", None if any(each in done.last for each in ours) else "it is not named"
        else:
            same = self._result(target, folder) == self._expected[number]
            again = "damaged" in done.said
            told["end"] = ("made good" if again else "harmless") if same else "differs"
            fault = None if same else "the result differs" + (", and it was said" if again else ", silently")
        shutil.rmtree(folder, ignore_errors=True)
        return {**told, "fault": fault}

    def _use(self, target: Target, folder: Path) -> Done:
        return self.world.do(target.use(folder), folder / "cache")

    def _result(self, target: Target, folder: Path) -> dict[str, str]:
        found = {}
        for path in folder.glob(target.result):
            if path.suffix == ".json":
                found[path.name] = str(_rounded(json.loads(path.read_text()))).replace(str(folder), "")
            else:
                found[path.name] = digest(path)
        return found

    def _unfinished(self, folder: Path) -> None:
        """The finished run as it was behind its last checkpoint."""
        self._cut_off(self.world.run, folder)

    def _adapted(self, folder: Path) -> None:
        """The same of a run that trained an adapter."""
        self._cut_off(self.world.adapted, folder)

    def _index(self, folder: Path) -> None:
        shutil.copytree(self.world.index, folder / "index")

    def _cut_off(self, run: Path, folder: Path) -> None:
        shutil.copytree(run, folder / "run")
        shutil.copytree(self.world.run_cache, folder / "cache")
        record = json.loads((folder / "run" / "run.json").read_text())
        from selfsent.integrity import signed

        (folder / "run" / "run.json").write_text(json.dumps(signed({**record, "status": "running"}), indent=2))
        for name in ("model", "report.html", "scores.json"):
            path = folder / "run" / name
            shutil.rmtree(path) if path.is_dir() else path.unlink()

    def _cached(self, folder: Path) -> None:
        shutil.copytree(self.world.run_cache, folder / "cache")

    def _model(self, folder: Path) -> None:
        shutil.copytree(self.world.model, folder / "model")

    def _parquet(self, folder: Path) -> list[object]:
        return ["encode", "bundled", self.world.sentences, "--output", folder / "out.parquet"]

    def _made(self, by: Callable[[Path], list[object]], *but: str) -> Callable[[Path], None]:
        """What a command makes, kept for further cases; less some of it."""
        return self._kept(by, {}, but)

    def _half(self, by: Callable[[Path], list[object]], what: str) -> Callable[[Path], None]:
        """What a command leaves that is killed half-way."""
        return self._kept(by, {"before": _die_in_parts if what == "parts" else _die_in_rows}, ())

    def _kept(self, by: Callable[[Path], list[object]], traps: dict[str, Any], but: tuple[str, ...]) -> Any:
        kept: list[Path] = []

        def make(folder: Path) -> None:
            if not kept:
                place = self.world.new("kept")
                done = self.world.do(by(place), place / "cache", Traps(**traps))
                if done.status and not (traps and done.killed):
                    raise RuntimeError(done.said)
                for name in but:
                    path = place / name
                    shutil.rmtree(path) if path.is_dir() else path.unlink()
                kept.append(place)
            shutil.copytree(kept[0], folder, dirs_exist_ok=True)

        return make


def _die_in_rows() -> None:
    import os
    import signal

    from selfsent.search import vectors

    vectors._write_rows = lambda *_: os.kill(os.getpid(), signal.SIGKILL)  # type: ignore[assignment]


def _die_in_parts() -> None:
    import os
    import signal

    from selfsent.resumable import Chunks

    Chunks.join = lambda *_: os.kill(os.getpid(), signal.SIGKILL)  # type: ignore[method-assign]


def damage(file: Path, kind: str, place: float) -> None:
    """Damage a file at a share of its length."""
    data = bytearray(file.read_bytes())
    at = int(place * len(data))
    if kind == "one bit" and data:
        data[at] ^= 1 << (at % 8)
    elif kind == "one byte" and data:
        data[at] ^= 0x55 + at % 0x55
    elif kind == "sixteen bytes of zeros":
        data[at : at + 16] = bytes(len(data[at : at + 16]))
    else:
        del data[0 if kind == "empty" else at :]
    file.write_bytes(bytes(data))


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return round(value, 4)
    if isinstance(value, dict):
        return {name: _rounded(each) for name, each in value.items()}
    return [_rounded(each) for each in value] if isinstance(value, list) else value


def _short(name: object) -> str:
    """A name without what differs from run to run."""
    said = re.sub(r"[0-9a-f]{12,}", "…", str(name))
    return re.sub(r"/\S*/(?=[^/\s]*)", "", said) if " " in said else said
