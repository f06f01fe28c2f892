"""`selfsent encode --engine ray` beside plain `selfsent encode`, on the same file and the same cores, in turn.

    taskset -c 0,1 python benchmarks/bulk.py --rows 1000000

A parquet file is made of the standard library's docstrings, with a number behind each so that no text repeats another.
Each side is a whole command, start included, so take enough rows; the ratio of rows a second is printed last. Memory
is the most that one process of the command ever had.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import threading
import time
from itertools import cycle, islice
from pathlib import Path

import psutil
import pyarrow as pa
import pyarrow.parquet as pq

from selfsent import read_corpus


def main() -> None:
    """Run both sides in turn."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--model", default="bundled")
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--times", type=int, default=2)
    options = parser.parse_args()
    speeds: dict[str, list[float]] = {"plain": [], "ray": []}
    with tempfile.TemporaryDirectory() as place:
        source = Path(place, "in.parquet")
        write(source, options.rows)
        for turn in range(options.times):
            for side in speeds:
                output = Path(place, f"{side}-{turn}" + ".parquet" * (side == "plain"))
                command = [sys.executable, "-m", "selfsent", "encode", options.model, str(source), "--id-column", "id"]
                command += ["--output", str(output)]
                command += ["--engine", "ray", "--workers", str(options.workers)] if side == "ray" else []
                seconds, memory = run(command)
                speeds[side].append(options.rows / seconds)
                print(f"{side:6} {options.rows / seconds:10,.0f} rows/s  {memory / 2**20:8,.0f} MB", flush=True)
    plain, ray = (max(speeds[side]) for side in ("plain", "ray"))
    print(f"ray beside plain, the best of {options.times}: {ray / plain:.2f}")


def write(path: Path, rows: int) -> None:
    """A parquet file of so many different texts, with ids."""
    texts = cycle(read_corpus("python:stdlib", split_sentences=True).texts())
    with pq.ParquetWriter(path, pa.schema([("id", pa.string()), ("text", pa.string())])) as file:
        for start in range(0, rows, 1 << 16):
            numbers = range(start, min(start + (1 << 16), rows))
            found = [f"{text} {n}" for text, n in zip(islice(texts, len(numbers)), numbers, strict=True)]
            file.write_table(pa.table({"id": [f"T-{n}" for n in numbers], "text": found}))


def run(command: list[str]) -> tuple[float, int]:
    """Seconds of a command, and the most bytes that one of its processes had."""
    begun, most = time.perf_counter(), 0
    process = subprocess.Popen(command)
    ended = threading.Event()
    threading.Thread(target=lambda: (process.wait(), ended.set()), daemon=True).start()
    while not ended.wait(0.5):
        for each in psutil.process_iter():
            try:
                if any(parent.pid == process.pid for parent in (each, *each.parents())):
                    most = max(most, each.memory_info().rss)
            except psutil.Error:
                continue
    if process.returncode:
        sys.exit(process.returncode)
    return time.perf_counter() - begun, most


if __name__ == "__main__":
    main()
