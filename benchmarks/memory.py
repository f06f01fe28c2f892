"""Peak memory and time of a training run against the size of its corpus.

    python benchmarks/memory.py --sizes 100000 1000000 -- text/*.txt.zst

Each size is a run of its own process: the corpus is read, cleaned, tokenised and trained on for a few steps; the
process' peak resident memory is what the operating system counted.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from selfsent import read_corpus
from selfsent.files import write_json
from selfsent.training.run_directory import versions


def first_sentences(sources: list[str], count: int, path: Path, cache: Path) -> int:
    """Write the first distinct sentences of some corpora, 20 to a document; how many there were."""
    corpus = read_corpus(sources, cache=cache)
    written = 0
    with path.open("w", encoding="utf-8") as file:
        for batch in corpus.batches():
            for text in batch[: count - written]:
                file.write(text + "\n" + ("\n" if written % 20 == 19 else ""))
                written += 1
            if written == count:
                break
    return written


def peak(path: Path, folder: Path, steps: int, method: str) -> dict[str, Any]:
    """Seconds and peak memory of one run."""
    environment = {**os.environ, "SELFSENT_CACHE": str(folder / "cache")}
    command = [
        sys.executable,
        "-m",
        "selfsent",
        "train",
        str(path),
        "--method",
        method,
        "--steps",
        str(steps),
        "--batch-size",
        "32",
    ]
    start = time.perf_counter()
    process = subprocess.Popen(
        [*command, "--output", str(folder / "run")],
        env=environment,
        stderr=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
    )
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"{' '.join(command)} failed")
    cache = sum(file.stat().st_size for file in (folder / "cache").rglob("*") if file.is_file())
    return {"seconds": time.perf_counter() - start, "peak_mb": usage.ru_maxrss / 1024, "cache_mb": cache / 2**20}


def main() -> None:
    """Print a line a size, and the slope between the smallest and the largest."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("sources", nargs="+")
    parser.add_argument("--sizes", nargs="+", type=int, default=[100_000, 1_000_000])
    parser.add_argument("--method", default="tsdae")
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--output", type=Path, default=Path("docs/results/memory.json"))
    options = parser.parse_args()
    rows = []
    for size in options.sizes:
        with tempfile.TemporaryDirectory() as folder:
            text = Path(folder) / "text.txt"
            count = first_sentences(options.sources, size, text, Path(folder) / "source")
            (Path(folder) / "work").mkdir()
            rows.append({"sentences": count, **peak(text, Path(folder) / "work", options.steps, options.method)})
            row = rows[-1]
            figures = f"peak {row['peak_mb']:7.1f} MB  cache {row['cache_mb']:7.1f} MB"
            print(f"{count:>10,} sentences  {row['seconds']:6.1f} s  {figures}", flush=True)
    grown = (rows[-1]["peak_mb"] - rows[0]["peak_mb"]) * 2**20 / max(1, rows[-1]["sentences"] - rows[0]["sentences"])
    print(f"{grown:.1f} bytes a sentence between the smallest and the largest")
    write_json(
        options.output, {"versions": versions(), "method": options.method, "rows": rows, "bytes_a_sentence": grown}
    )


if __name__ == "__main__":
    main()
