"""What is left of the speed when other programs use the cores: training and encoding, in several ways of waiting.

    python benchmarks/busy.py --output docs/results/speed/busy.json
    python benchmarks/busy.py --works train --settings openmp command --neighbours none nice0 --rounds 20

Each way of waiting is a process of its own, since OpenMP reads its variables once. All of them are started first; then
they work in turn, for a second or two each, without a neighbour and beside one, which is an endless loop. So what else
runs on the machine meets all of them alike. Medians over the rounds are compared.

Two figures say what came of it. Sentences a second, and, since a machine in use gives a program what it can, sentences
for each second of the processor: threads that wait for each other by spinning use it up and get nothing done. The share
is that figure over the best one of one thread, which waits for nobody: 1 means that whatever the machine gave was
used. `processor` is how many cores that was, `others` how many all other programs had.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

SETTINGS: dict[str, dict[str, str]] = {
    "openmp": {},
    "passive": {"OMP_WAIT_POLICY": "passive"},
    "spin1000": {"GOMP_SPINCOUNT": "1000"},
    "spin10000": {"GOMP_SPINCOUNT": "10000"},
    "one": {"OMP_NUM_THREADS": "1"},
    "command": {},
}
"""Variables by name: `openmp` is what it does by itself, `command` what selfsent's command line does about it."""
NEIGHBOURS: dict[str, int | None] = {"none": None, "nice0": 0, "nice19": 19}
WORKS = ("train", "table", "encode")
"""Training a transformer and a table of token vectors, and encoding with the transformer."""
BATCH = {"train": 16, "table": 256, "encode": 32}


def used() -> float:
    """Seconds that all programs together have used of the processor since the machine started."""
    user, nice, system, _, _, irq, soft = map(int, Path("/proc/stat").read_text().split()[1:8])
    return (user + nice + system + irq + soft) / os.sysconf("SC_CLK_TCK")


def unit_of_work(work: str, folder: Path) -> Callable[[], object]:
    """A function that does one batch of a work each time it is called."""
    import numpy as np

    from selfsent import read_corpus
    from selfsent.api import make_plan
    from selfsent.methods import get_method
    from selfsent.models.encoding import encode
    from selfsent.models.loading import load_encoder
    from selfsent.progress import Progress
    from selfsent.training.fit import _batches, _loop, _model_and_learner
    from selfsent.training.run_config import RunConfig
    from selfsent.training.run_directory import RunDirectory

    corpus = read_corpus("python:stdlib")
    if work == "encode":
        model, texts = load_encoder("bundled-raw"), corpus.texts()[: BATCH[work]]
        return lambda: encode(model, texts)
    base, options = ("bundled-raw", {}) if work == "train" else ("bundled-raw-static", {"delete_words": 0.3})
    plan = make_plan(get_method("simcse"), base, steps=10**6, batch_size=BATCH[work], precision="float32", **options)
    directory = RunDirectory(folder / "run")
    directory.check(resume=False, overwrite=False)
    directory.match({})
    directory.begin()
    _, learner = _model_and_learner(plan)
    batches = _batches(plan, learner, corpus, np.arange(len(corpus)), None, Progress())
    loop = _loop(plan, learner, batches, directory, RunConfig(), Progress(), lambda encoder: None)
    steps = iter(range(10**6))
    return lambda: loop.advance(next(steps))


def child(work: str) -> None:
    """Do a work for so many seconds whenever a line says how many, and print what was done and whose time it took."""
    if os.environ.get("SELFSENT_BUSY") == "command":
        from selfsent.cli.main import set_environment

        set_environment()
    warnings.simplefilter("ignore")
    import torch

    with tempfile.TemporaryDirectory() as folder:
        once = unit_of_work(work, Path(folder))
        for _ in range(2):
            once()
        print(torch.get_num_threads(), flush=True)
        for line in sys.stdin:
            start, own, every = time.perf_counter(), time.process_time(), used()
            done = 0
            while time.perf_counter() - start < float(line):
                once()
                done += BATCH[work]
            wall, mine = time.perf_counter() - start, time.process_time() - own
            figures = {
                "sentences_per_second": done / wall,
                "sentences_per_processor_second": done / mine,
                "processor": mine / wall,
                "others": (used() - every - mine) / wall,
            }
            print(json.dumps({name: round(value, 3) for name, value in figures.items()}), flush=True)


class Side:
    """A process with a way of waiting, which works when it is told to."""

    def __init__(self, work: str, setting: str) -> None:
        given = {name: value for name, value in os.environ.items() if not name.startswith(("OMP_", "GOMP_"))}
        given |= {**SETTINGS[setting], "SELFSENT_BUSY": setting}
        command = [sys.executable, __file__, "--child", work]
        self.process = subprocess.Popen(
            command, env=given, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        self.threads = int(self._line())

    def _line(self) -> str:
        assert self.process.stdout
        return self.process.stdout.readline()

    def work(self, seconds: float) -> dict[str, float]:
        """What it did in so many seconds."""
        assert self.process.stdin
        print(seconds, file=self.process.stdin, flush=True)
        found: dict[str, float] = json.loads(self._line())
        return found

    def end(self) -> None:
        """Let it go."""
        assert self.process.stdin
        self.process.stdin.close()
        self.process.wait()


def beside(neighbour: str) -> subprocess.Popen[bytes] | None:
    """The neighbour, at work."""
    niceness = NEIGHBOURS[neighbour]
    endless = [sys.executable, "-c", "while True: pass"]
    return None if niceness is None else subprocess.Popen(["nice", "-n", str(niceness), *endless])


def measure(work: str, options: argparse.Namespace) -> dict[str, dict[str, Any]]:
    """All settings in turn, round by round, without and beside neighbours."""
    sides = {setting: Side(work, setting) for setting in options.settings}
    rows: dict[str, dict[str, Any]] = {}
    for number in range(options.rounds):
        for neighbour in options.neighbours:
            running = beside(neighbour)
            try:
                for setting, side in sides.items():
                    row = rows.setdefault(f"{work} | {neighbour} | {setting}", {"threads": side.threads})
                    found = side.work(options.seconds)
                    for name, value in found.items():
                        row.setdefault(name, []).append(value)
                    print(f"  {number + 1} {work} {neighbour} {setting}: {found}", file=sys.stderr, flush=True)
            finally:
                if running is not None:
                    running.kill()
                    running.wait()
    for side in sides.values():
        side.end()
    return rows


def main() -> None:
    """Measure, write all figures, and print the medians and shares."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--works", nargs="+", default=list(WORKS), choices=WORKS)
    parser.add_argument("--settings", nargs="+", default=["openmp", "one", "command"], choices=list(SETTINGS))
    parser.add_argument("--neighbours", nargs="+", default=list(NEIGHBOURS), choices=list(NEIGHBOURS))
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=2.0, help="of each turn")
    parser.add_argument("--about", default="", help="what else ran on the machine, for the record")
    parser.add_argument("--output", type=Path)
    parser.add_argument("--child", choices=WORKS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        child(options.child)
        return
    from sides import machine

    from selfsent.files import write_json

    rows: dict[str, dict[str, Any]] = {}
    for work in options.works:
        rows |= measure(work, options)
        if options.output:
            report = {"machine": machine(), "about": options.about, "seconds": options.seconds, "rows": rows}
            write_json(options.output, report)
    for key, row in rows.items():
        work = key.split(" | ")[0]
        middle = {name: statistics.median(values) for name, values in row.items() if name != "threads"}
        alone = [other for name, other in rows.items() if name.startswith(f"{work} | ") and other["threads"] == 1]
        said = f"{middle['sentences_per_second']:9,.1f} sentences/s on {middle['processor']:.2f} cores"
        if alone:
            best = max(statistics.median(other["sentences_per_processor_second"]) for other in alone)
            said += f", {middle['sentences_per_processor_second'] / best:.2f} of what they can do"
        print(f"{key:26} {said}, others on {middle['others']:.2f}")


if __name__ == "__main__":
    main()
