"""What is left of the speed when another program uses one core: training and encoding, in several ways of waiting.

    python benchmarks/busy.py --output docs/results/speed/busy.json
    python benchmarks/busy.py --works train --settings default passive --neighbours none nice0 --repetitions 5

The neighbour is an endless loop. Every measurement is a process of its own, since OpenMP reads its variables once, and
they alternate; medians are compared. The fair share is that of the cores which the neighbour leaves: with one neighbour
on two cores, half of the speed without it. Other programs count too: `others` is how many cores they used meanwhile,
and `processor` how many this one did, by which a figure "alone" on a machine in use is to be read.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
import warnings
from itertools import product
from pathlib import Path
from typing import Any

SETTINGS: dict[str, dict[str, str]] = {
    "default": {"OMP_WAIT_POLICY": "", "GOMP_SPINCOUNT": ""},
    "passive": {"OMP_WAIT_POLICY": "passive"},
    "spin1000": {"GOMP_SPINCOUNT": "1000"},
    "spin10000": {"GOMP_SPINCOUNT": "10000"},
    "one": {"OMP_NUM_THREADS": "1"},
    "command": {},
}
"""Variables by name. `default` is what OpenMP does by itself, `command` what selfsent's command line does about it."""
NEIGHBOURS: dict[str, int | None] = {"none": None, "nice0": 0, "nice19": 19}
WORKS = ("train", "table", "encode")
"""Training a transformer and a table of token vectors, and encoding with the transformer."""


def jiffies() -> float:
    """Seconds that all programs together have used of the processor since the machine started."""
    user, nice, system, _, _, irq, soft = map(int, Path("/proc/stat").read_text().split()[1:8])
    return (user + nice + system + irq + soft) / os.sysconf("SC_CLK_TCK")


def child(work: str, seconds: float) -> None:
    """Do one work for some seconds after a warm-up, and print sentences a second and whose time it took."""
    if os.environ.get("SELFSENT_BUSY") == "command":
        from selfsent.cli.main import set_environment

        set_environment()
    import torch
    from trainers import ours

    from selfsent import read_corpus
    from selfsent.models.encoding import encode
    from selfsent.models.loading import load_encoder

    warnings.simplefilter("ignore")
    texts = read_corpus("python:stdlib").texts()[:20_000]
    base = "bundled-raw-static" if work == "table" else "bundled-raw"
    if work == "encode":
        model = load_encoder(base)
        batch = texts[:512]

        def once() -> int:
            encode(model, batch)
            return len(batch)
    else:
        batch = texts[: 128 if work == "train" else 5_000]

        def once() -> int:
            ours("simcse" if work == "train" else "mnrl", batch, base, 64, "float32", 0)
            return len(batch)

    once()
    start, own, every = time.perf_counter(), time.process_time(), jiffies()
    done = 0
    while time.perf_counter() - start < seconds:
        done += once()
    wall, mine = time.perf_counter() - start, time.process_time() - own
    print(
        json.dumps(
            {
                "sentences_per_second": round(done / wall, 1),
                "processor": round(mine / wall, 2),
                "others": round((jiffies() - every - mine) / wall, 2),
                "threads": torch.get_num_threads(),
            }
        )
    )


def measure(work: str, setting: str, neighbour: str, seconds: float) -> dict[str, Any]:
    """One measurement, beside a neighbour where there is to be one."""
    niceness = NEIGHBOURS[neighbour]
    beside = None
    if niceness is not None:
        beside = subprocess.Popen(["nice", "-n", str(niceness), sys.executable, "-c", "while True: pass"])
    given = {name: value for name, value in os.environ.items() if not name.startswith(("OMP_", "GOMP_"))}
    given |= {name: value for name, value in SETTINGS[setting].items() if value}
    given["SELFSENT_BUSY"] = setting
    try:
        command = [sys.executable, __file__, "--child", work, "--seconds", str(seconds)]
        done = subprocess.run(command, env=given, check=True, capture_output=True, text=True)
    finally:
        if beside is not None:
            beside.kill()
            beside.wait()
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def main() -> None:
    """Measure, write all figures, and print the medians and shares."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--works", nargs="+", default=list(WORKS), choices=WORKS)
    parser.add_argument("--settings", nargs="+", default=["default", "command"], choices=list(SETTINGS))
    parser.add_argument("--neighbours", nargs="+", default=list(NEIGHBOURS), choices=list(NEIGHBOURS))
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=4.0, help="of each measurement")
    parser.add_argument("--output", type=Path)
    parser.add_argument("--child", choices=WORKS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        child(options.child, options.seconds)
        return
    from sides import machine

    from selfsent.files import write_json

    rows: dict[str, dict[str, Any]] = {}
    for repetition, work, neighbour, setting in product(
        range(options.repetitions), options.works, options.neighbours, options.settings
    ):
        one = measure(work, setting, neighbour, options.seconds)
        row = rows.setdefault(f"{work} | {setting} | {neighbour}", {name: [] for name in one})
        for name, value in one.items():
            row[name].append(value)
        print(f"  {repetition + 1} {work} {setting} {neighbour}: {one}", file=sys.stderr, flush=True)
        if options.output:
            write_json(options.output, {"machine": machine(), "seconds": options.seconds, "rows": rows})
    cores = os.cpu_count() or 1
    for key, row in rows.items():
        work, _, neighbour = key.split(" | ")
        speed = statistics.median(row["sentences_per_second"])
        said = f"{speed:9,.0f} sentences/s, {statistics.median(row['processor']):.2f} cores"
        alone = rows.get(f"{work} | {options.settings[0]} | none")
        if alone and neighbour != "none":
            fair = statistics.median(alone["sentences_per_second"]) * (cores - 1) / cores
            said += f", {speed / fair:.2f} of the fair share"
        print(f"{key:28} {said}, others {statistics.median(row['others']):.2f} cores")


if __name__ == "__main__":
    main()
