"""Two processes at once with one output or one cache: one waits or is refused, and nothing is ever mixed."""

from __future__ import annotations

import shutil
import time
from pathlib import Path
from typing import Any

from world import World, digest, finish

KINDS = ("one output of train", "one cache, two runs", "one output of encode", "one output of augment", "resumed twice")
KINDS += ("overwritten while it runs",)


def cases(count: int, seed: int, exact: bool) -> list[dict[str, Any]]:
    """Every kind, again and again, the second process a little later each time."""
    return [{"kind": KINDS[n % len(KINDS)], "later": 0.3 * (n // len(KINDS))} for n in range(count)]


class Twice:
    """The part of the campaign.

    Args:
        world: what is broken.
    """

    def __init__(self, world: World) -> None:
        self.world = world
        self._alone: dict[str, dict[str, str]] = {}

    def run(self, case: dict[str, Any]) -> dict[str, Any]:
        """Start both, and look at what comes out."""
        kind, folder = case["kind"], self.world.new("twice")
        if kind not in self._alone:
            for arguments in self._both(kind, folder)[: 1 + kind.startswith("one cache")]:
                self.world.do(arguments, folder / "cache")
            self._alone[kind] = self._result(folder)
            shutil.rmtree(folder)
            folder.mkdir()
        started = [self._start(arguments, folder, case["later"]) for arguments in self._both(kind, folder)]
        ends = [finish(process, log, since) for process, log, since in started]
        fault = next((end.fault for end in ends if end.fault), None)
        statuses = sorted(str(end.status) for end in ends)
        if not fault and "0" not in statuses:
            fault = f"neither ended well: {ends[0].last} / {ends[1].last}"
        if not fault and self._result(folder) != self._alone[kind]:
            fault = "another result than that of one alone"
        said = next((end.last.replace(str(folder), "") for end in ends if end.status), "")
        shutil.rmtree(folder)
        return {"statuses": statuses, "said": said[:200], "fault": fault}

    def _start(self, arguments: list[object], folder: Path, later: float) -> tuple[Any, Path, float]:
        log = folder.with_name(f"{folder.name}-{time.monotonic_ns()}.log")
        process = self.world.start(arguments, log, folder / "cache")
        time.sleep(later)
        return process, log, time.perf_counter()

    def _both(self, kind: str, folder: Path) -> list[list[object]]:
        train = [*self.world.train, "--output", folder / "run"]
        if kind == "one output of train":
            return [train, train]
        if kind == "one cache, two runs":
            return [train, [*self.world.train, "--output", folder / "other"]]
        if kind == "one output of encode":
            return [["encode", "bundled", self.world.many, "--output", folder / "out.npy"]] * 2
        if kind == "one output of augment":
            return [[*self.world.views, "--output", folder / "out.parquet"]] * 2
        return [train, [*train, "--resume" if kind == "resumed twice" else "--overwrite"]]

    def _result(self, folder: Path) -> dict[str, str]:
        files = [*folder.glob("*/model/*.safetensors"), *folder.glob("out.*")]
        return {str(path.relative_to(folder)): digest(path) for path in files if path.is_file()}
