"""What a command takes before anything happens: help, the first step of a short run, one search.

    python benchmarks/start.py --output docs/results/speed/start.json

1,000 docstrings of the standard library are trained on from the table and from the small transformer that ship, and
searched in with kept vectors. Each figure is the best of a few, of the whole command as a user starts it.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from sides import machine

from selfsent import read_corpus
from selfsent.files import write_json

SELFSENT = [sys.executable, "-m", "selfsent"]


def whole(command: list[str]) -> float:
    """Seconds of a command."""
    start = time.perf_counter()
    subprocess.run([*SELFSENT, *command], capture_output=True, check=True)
    return time.perf_counter() - start


def until_first_step(command: list[str]) -> float:
    """Seconds until a command tells of its first step; it is then ended."""
    start = time.perf_counter()
    with subprocess.Popen([*SELFSENT, *command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as run:
        assert run.stdout is not None
        for line in run.stdout:
            if line.startswith("step 1 "):
                found = time.perf_counter() - start
                run.kill()
                return found
    raise SystemExit(f"no first step: {command}")


def main() -> None:
    """Measure, print, and write."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--times", type=int, default=5)
    parser.add_argument("--output", type=Path, default=Path("docs/results/speed/start.json"))
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        text, vectors = Path(place, "text.txt"), Path(place, "vectors.npy")
        texts = read_corpus("python:stdlib", split_sentences=True).texts()
        text.write_text("\n".join(line for _, line in zip(range(1000), texts, strict=False)) + "\n", encoding="utf-8")
        whole(["encode", "bundled", str(text), "--output", str(vectors)])
        train = ["train", str(text), "--overwrite", "--output", str(Path(place, "run")), "--base"]
        measures: dict[str, Callable[[], float]] = {
            "selfsent --help": lambda: whole(["--help"]),
            "selfsent train --help": lambda: whole(["train", "--help"]),
            "first step from bundled": lambda: until_first_step([*train, "bundled"]),
            "first step from bundled-encoder": lambda: until_first_step([*train, "bundled-encoder"]),
            "search with kept vectors": lambda: whole(
                ["search", "bundled", str(text), "a list of names", "--encoded", str(vectors)]
            ),
        }
        seconds = {name: round(min(measure() for _ in range(options.times)), 2) for name, measure in measures.items()}
    for name, best in seconds.items():
        print(f"{name:36}{best:6.2f} s")
    write_json(options.output, {"machine": machine(), "seconds": seconds})


if __name__ == "__main__":
    main()
