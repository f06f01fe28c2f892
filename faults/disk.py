"""Disks that are full, folders that may not be written or that vanish, few open files, little memory.

One line is said, and the last good state is there: the same command, where nothing is lacking, ends as it should.
"""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

from world import LIMIT, Traps, World, digest, finish

KINDS = ("files of a limited size", "full disk", "folder that vanishes", "read-only folder", "few open files")
KINDS += ("little memory",)
EXACT = (KINDS[0], KINDS[4])
"""Those that no clock has a part in, and that anyone may try."""
MOUNTED = (KINDS[1], KINDS[3])
"""Those that only the superuser can try."""
USES = ("train", "encode", "augment", "dedup")


def cases(count: int, seed: int, exact: bool) -> list[dict[str, Any]]:
    """What is lacking, for whom, and how much of it there is, as a share of what is needed."""
    kinds, found = (EXACT if exact else KINDS), []
    for number in range(count):
        draw = random.Random(f"disk {seed} {number}")
        use = USES[number // len(kinds) % len(USES)]
        found.append({"kind": kinds[number % len(kinds)], "use": use, "share": draw.random()})
    return found


class Disk:
    """The part of the campaign.

    Args:
        world: what is broken.
    """

    def __init__(self, world: World) -> None:
        self.world = world
        self._whole: dict[str, tuple[dict[str, str], int]] = {}

    def run(self, case: dict[str, Any]) -> dict[str, Any]:
        """Run a command that lacks something, then again with all it needs."""
        use, kind, folder = case["use"], case["kind"], self.world.new("disk")
        if kind in MOUNTED and os.geteuid() != 0:
            return {"end": "not tried: only the superuser can mount a disk", "fault": None}
        if use not in self._whole:
            done = self.world.do(self._arguments(use, folder), folder / "cache")
            if done.status:
                raise RuntimeError(done.said)
            sizes = [path.stat().st_size for path in folder.rglob("*") if path.is_file()]
            self._whole[use] = self._result(folder), max(sizes) if kind.startswith("files") else sum(sizes)
            shutil.rmtree(folder)
            folder.mkdir()
        expected, size = self._whole[use]
        done = getattr(self, "_" + kind.replace(" ", "_").replace("-", "_"))(case, folder, size)
        told = {**case, "status": done.status, "said": done.last.replace(str(folder), "")[:200]}
        fault = done.fault
        if done.status == 0 and self._result(folder) != expected:
            fault = "it says that all is well, and it is not"
        if not fault and done.status:
            again = ("--resume",) if use == "train" and (folder / "run" / "run.json").exists() else ()
            second = self.world.do([*self._arguments(use, folder), *again], folder / "cache")
            if second.status or self._result(folder) != expected:
                fault = f"afterwards: {second.last or 'another result'}"
        shutil.rmtree(folder, ignore_errors=True)
        return {**told, "fault": fault}

    def _arguments(self, use: str, folder: Path) -> list[object]:
        if use == "train":
            return [*self.world.train, "--output", folder / "run"]
        if use == "augment":
            return [*self.world.views, "--output", folder / "out.parquet"]
        if use == "dedup":
            return [*self.world.dedup, "--output", folder / "out.csv", "--families", folder / "out.families.csv"]
        return ["encode", "bundled", self.world.many, "--output", folder / "out.npy"]

    def _result(self, folder: Path) -> dict[str, str]:
        files = [*folder.glob("run/model/*.safetensors"), *folder.glob("out.*")]
        return {path.name: digest(path) for path in files}

    def _do(self, case: dict[str, Any], folder: Path, traps: Traps) -> Any:
        return self.world.do(self._arguments(case["use"], folder), folder / "cache", traps)

    def _files_of_a_limited_size(self, case: dict[str, Any], folder: Path, size: int) -> Any:
        return self._do(case, folder, Traps(limits={"RLIMIT_FSIZE": max(512, int(case["share"] * size))}))

    def _few_open_files(self, case: dict[str, Any], folder: Path, size: int) -> Any:
        return self._do(case, folder, Traps(limits={"RLIMIT_NOFILE": 8 + int(case["share"] * 12)}))

    def _little_memory(self, case: dict[str, Any], folder: Path, size: int) -> Any:
        return self._do(case, folder, Traps(before=_limit_memory, environment={"FAULTS_SHARE": str(case["share"])}))

    def _read_only_folder(self, case: dict[str, Any], folder: Path, size: int) -> Any:
        """Rights do not hold back the superuser: the folder is mounted, and cannot be written by anyone."""
        with _mounted(folder, "ro"):
            return self.world.do(self._arguments(case["use"], folder), folder.parent / "disk-cache")

    def _full_disk(self, case: dict[str, Any], folder: Path, size: int) -> Any:
        with _mounted(folder, f"size={max(4, int(case['share'] * size) >> 10)}k") as left:
            done = self._do(case, folder, Traps())
            shutil.copytree(folder, left, dirs_exist_ok=True)
        shutil.copytree(left, folder, dirs_exist_ok=True)
        shutil.rmtree(left)
        return done

    def _folder_that_vanishes(self, case: dict[str, Any], folder: Path, size: int) -> Any:
        """At a random moment all that was written is moved away."""
        log, started = self.world.folder / "log-vanish", time.perf_counter()
        process = self.world.start(self._arguments(case["use"], folder), log, folder / "cache")
        while process.exitcode is None and not any(folder.rglob("*.*")):
            time.sleep(0.01)
        time.sleep(case["share"] / 4)
        if process.exitcode is not None:  # it was done before
            return finish(process, log, started, LIMIT)
        away = folder.with_name(folder.name + "-away")
        folder.rename(away)
        done = finish(process, log, started, LIMIT)
        shutil.rmtree(away)
        if done.status:
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
        return done


class _mounted:  # noqa: N801 — it is used like a function
    """A file system of its own in a folder."""

    def __init__(self, folder: Path, options: str) -> None:
        self.folder, self.options = folder, options

    def __enter__(self) -> Path:
        subprocess.run(["mount", "-t", "tmpfs", "-o", self.options, "none", str(self.folder)], check=True)
        return self.folder.with_name(self.folder.name + "-left")

    def __exit__(self, *_: object) -> None:
        subprocess.run(["umount", "-l", str(self.folder)], check=True)


def _limit_memory() -> None:
    import resource

    mapped = int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    limit = mapped + int(float(os.environ["FAULTS_SHARE"]) * (40 << 20))
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
