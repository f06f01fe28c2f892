"""Long training, long encoding, many short runs in one process, and serving an index that changes all the while.

Memory, open files and threads stay flat.
"""

from __future__ import annotations

import csv
import json
import os
import random
import shutil
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections import Counter
from pathlib import Path
from typing import Any

from attack import Server, index_of, sentence, serving
from world import Traps, World

KINDS = ("training", "encoding", "short runs", "serving and upserts")
MINUTES = float(os.environ.get("FAULTS_MINUTES", "10"))
"""Of training, of encoding, and of serving."""
RUNS = int(os.environ.get("FAULTS_RUNS", "100"))
GROWTH, SPARE = 0.05, 8
"""Share, and MiB, by which memory may be higher in the last fifth than in the second."""
POSTINGS = 64
"""MiB of postings that a service keeps at most."""
CHANGED = 20
"""Rows that are replaced in a round of upserts, and as many new ones."""
QUERIES, PAUSE = 50, 0.2
"""Searches between two rounds of upserts, and seconds between two searches."""
ROUNDS = 50
"""Rounds of upserts between two compactions by hand."""


def cases(count: int, seed: int, exact: bool) -> list[dict[str, Any]]:
    """All of them."""
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
        if case["kind"] == "serving and upserts":
            index = folder / "tickets.index"
            shutil.copytree(index_of(self.world.folder, 20_000), index)
            with serving(index) as server:
                told = Upserts(server, index).until(time.monotonic() + seconds)
            shutil.rmtree(folder)
            return told
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


class Upserts:
    """Changes of an index that is served, each of which the next search must show.

    Args:
        server: answers searches.
        index: the directory of the index.
    """

    def __init__(self, server: Server, index: Path) -> None:
        self.server, self.index, self.draw = server, index, random.Random(0)
        self.samples: list[tuple[int, ...]] = []
        self.statuses, self.done, self.faults = Counter[str](), Counter[str](), list[str]()

    def until(self, end: float) -> dict[str, Any]:
        """Upserts, deletions and searches until a time; what was done, and what went wrong."""
        new: list[str] = []
        while time.monotonic() < end and not self.faults:
            texts = self._texts()
            self._change("add", str(self._table(texts)))
            if new:
                self._change("delete", *new)
            self._look(texts, gone=new)
            new = [name for name in texts if name.startswith("N-")]
            if self.done["add"] % ROUNDS == 0:
                self._change("compact")
            for _ in range(QUERIES):
                self._search(sentence(self.draw))
                time.sleep(PAUSE)
                self.samples.append(_sample_of(self.server.process.pid))
        status, _, log = self.server.stop()
        odd = {kind: count for kind, count in self.statuses.items() if kind != "200"}
        fault = (self.faults or [None])[0] or (f"answers {odd}" if odd else None) or _growth(self.samples, POSTINGS)
        fault = fault or (f"status {status}: {log[-300:]}" if status or "Traceback" in log else None)
        told = {"samples": len(self.samples), "status": status, **_ends(self.samples)}
        return {**told, "answers": dict(self.statuses), "changes": dict(self.done), "fault": fault}

    def _texts(self) -> dict[str, str]:
        """New texts of rows that the index has, and of rows that are new, by their ids."""
        old = self.draw.sample(range(20_000), CHANGED)
        names = [f"T-{number}" for number in old] + [f"N-{self.done['add']}-{number}" for number in range(CHANGED)]
        return {name: f"{sentence(self.draw)} {sentence(self.draw)} {name.lower()}" for name in names}

    def _table(self, texts: dict[str, str]) -> Path:
        path = self.index.with_name("changes.csv")
        with path.open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows(
                [("id", "body", "team"), *((name, text, "sales") for name, text in texts.items())]
            )
        return path

    def _change(self, command: str, *arguments: str) -> None:
        given = [sys.executable, "-m", "selfsent", "index", command, str(self.index), *arguments]
        ended = subprocess.run(given, capture_output=True, text=True)
        self.done[command] += 1
        if ended.returncode:
            self.faults.append(f"index {command}: status {ended.returncode}: {ended.stderr[-300:]}")

    def _look(self, texts: dict[str, str], gone: list[str]) -> None:
        """Whether searches show a change: texts as they are now, and no row that was deleted."""
        for name in self.draw.sample(sorted(texts), 3):
            hits = self._search(texts[name])
            if not hits or (hits[0]["id"], hits[0]["text"]) != (name, texts[name]):
                self.faults.append(f"{name} was changed, and is not the first hit of its text: {hits[:1]}")
            if {hit["id"] for hit in hits} & {*gone}:
                self.faults.append("a deleted row is found")

    def _search(self, query: str) -> list[dict[str, Any]]:
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.server.port}/search", json.dumps({"query": query, "top": 10}).encode()
        )
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                hits: list[dict[str, Any]] = json.load(answer)["hits"]
            self.statuses["200"] += 1
        except urllib.error.HTTPError as error:
            self.statuses[str(error.code)] += 1
            return []
        return hits


def _ends(samples: list[tuple[int, ...]]) -> dict[str, list[int]]:
    """Megabytes, open files and threads, in the second fifth and in the last."""
    fifth = max(1, len(samples) // 5)
    parts = samples[fifth : 2 * fifth] or samples[:1], samples[-fifth:]
    return {
        name: [max(sample[place] for sample in part) for part in parts]
        for place, name in enumerate(("megabytes", "files", "threads"))
    }


def _growth(samples: list[tuple[int, ...]], spare: int = SPARE) -> str | None:
    ends = _ends(samples)
    if ends["megabytes"][1] > (1 + GROWTH) * ends["megabytes"][0] + spare:
        return "memory grows: {} MB, then {} MB".format(*ends["megabytes"])
    for name in ("files", "threads"):
        if ends[name][1] > ends[name][0] + 1:
            return "{} grow: {}, then {}".format(name, *ends[name])
    return None


def _sample_of(process: int | str = "self") -> tuple[int, int, int]:
    """Resident MiB, open files and threads of a process."""
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    status = dict(line.split(":\t", 1) for line in lines if ":\t" in line)
    files = len(os.listdir(f"/proc/{process}/fd"))  # noqa: PTH208 — these are no files
    return int(status["VmRSS"].split()[0]) >> 10, files, int(status["Threads"])


def _sample() -> str:
    return " ".join(map(str, _sample_of())) + "\n"


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
