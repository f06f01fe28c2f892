"""Long training, long encoding, and many short runs in one process: memory, open files and threads stay flat."""

from __future__ import annotations

import os
import shutil
import threading
import time
from pathlib import Path
from typing import Any

from world import Traps, World

KINDS = ("training", "encoding", "short runs")
MINUTES = float(os.environ.get("FAULTS_MINUTES", "10"))
"""Of training, and of encoding."""
RUNS = int(os.environ.get("FAULTS_RUNS", "100"))
GROWTH = 0.05
"""Share by which memory may be higher in the last fifth than in the second."""


def cases(count: int, seed: int, exact: bool) -> list[dict[str, Any]]:
    """The three of them."""
    return [{"kind": kind, "minutes": MINUTES, "runs": RUNS} for kind in KINDS[:count]]


class Soak:
    """The part of the campaign.

    Args:
        world: has a base and text.
    """

    def __init__(self, world: World) -> None:
        self.world = world

    def run(self, case: dict[str, Any]) -> dict[str, Any]:
        """Run it, and look at it twice a second."""
        folder = self.world.new("soak")
        seconds = 60 * case["minutes"]
        steps = ["--method", "simcse", "--base", self.world.base, "--batch-size", 8, "--max-length", 32]
        train = ["train", self.world.sentences, *steps, "--checkpoint-every", 50, "--output", folder / "run"]
        environment = {"FAULTS_SAMPLES": str(folder / "samples"), "FAULTS_SECONDS": str(seconds)}
        before, given = _watch, [*train, "--steps", 100_000_000]
        if case["kind"] == "encoding":
            before, given = _encode_again, ["encode", "bundled", self.world.many, "--output", folder / "out.npy"]
        elif case["kind"] == "short runs":
            before, given = _train_again, [*train, "--steps", 2]
            environment["FAULTS_RUNS"] = str(case["runs"])
        traps = Traps(environment=environment, before=before)
        done = self.world.do(given, folder / "cache", traps, limit=2 * seconds + 6000)
        samples = [tuple(map(int, line.split())) for line in (folder / "samples").read_text().splitlines()]
        shutil.rmtree(folder)
        told = {"samples": len(samples), "status": done.status, **_ends(samples)}
        fault = done.fault or (f"status {done.status}: {done.last}" if done.status not in (0, 130) else None)
        return {**told, "fault": fault or _growth(samples)}


def _ends(samples: list[tuple[int, ...]]) -> dict[str, list[int]]:
    """Megabytes, open files and threads, in the second fifth and in the last."""
    fifth = max(1, len(samples) // 5)
    parts = samples[fifth : 2 * fifth] or samples[:1], samples[-fifth:]
    return {
        name: [max(sample[place] for sample in part) for part in parts]
        for place, name in enumerate(("megabytes", "files", "threads"))
    }


def _growth(samples: list[tuple[int, ...]]) -> str | None:
    ends = _ends(samples)
    if ends["megabytes"][1] > (1 + GROWTH) * ends["megabytes"][0] + 8:
        return "memory grows: {} MB, then {} MB".format(*ends["megabytes"])
    for name in ("files", "threads"):
        if ends[name][1] > ends[name][0] + 1:
            return "{} grow: {}, then {}".format(name, *ends[name])
    return None


def _sample() -> str:
    status = dict(line.split(":\t", 1) for line in Path("/proc/self/status").read_text().splitlines() if ":\t" in line)
    files = len(os.listdir("/proc/self/fd"))  # noqa: PTH208 — these are no files
    return f"{int(status['VmRSS'].split()[0]) >> 10} {files} {status['Threads'].strip()}\n"


def _watch() -> None:
    """Write a line twice a second, and interrupt the command when its time is over."""
    path, end = Path(os.environ["FAULTS_SAMPLES"]), time.monotonic() + float(os.environ["FAULTS_SECONDS"])

    def watch() -> None:
        import _thread

        while time.monotonic() < end:
            with path.open("a") as file:
                file.write(_sample())
            time.sleep(0.5)
        import signal

        signal.raise_signal(signal.SIGINT)
        _thread.interrupt_main()

    threading.Thread(target=watch, daemon=True).start()


def _again(names: str, until: Any) -> None:
    """Make `main` run its command again and again, each time with a new output."""
    import selfsent.cli

    main, path = selfsent.cli.main, Path(os.environ["FAULTS_SAMPLES"])

    def repeat(arguments: list[str]) -> None:
        number = 0
        while until(number):
            output = Path(arguments[-1] if names == "out" else arguments[arguments.index("--output") + 1])
            try:
                main(arguments)
            except SystemExit as end:
                if end.code:
                    raise
            shutil.rmtree(output) if output.is_dir() else output.unlink(missing_ok=True)
            with path.open("a") as file:
                file.write(_sample())
            number += 1
        raise SystemExit(0)

    selfsent.cli.main = repeat  # type: ignore[assignment]


def _encode_again() -> None:
    end = time.monotonic() + float(os.environ["FAULTS_SECONDS"])
    _again("out", lambda number: time.monotonic() < end)


def _train_again() -> None:
    runs = int(os.environ["FAULTS_RUNS"])
    _again("run", lambda number: number < runs)
