"""Rows once, seconds and memory of engines beside one plain process: vectors, counts of terms, and near-copies.

    python benchmarks/engines.py --texts ../shared/text --rows 1000000 --jobs vectors terms --engines local daft dask

The texts are lines of the files of `--texts`, one in ten an exact copy or a copy with a word changed. Each job of each
engine is a process of its own; memory is that of it and of all processes below it. `--output` gets all figures.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet as pq
import zstandard

from selfsent import encoding
from selfsent.encoding.stages import rows_of
from selfsent.files import write_json

FILES, COPIES, SAMPLED = 16, 0.1, 1000


def make_rows(texts: Path, count: int, folder: Path) -> None:
    """Write rows of `id` and `text` into some files of Parquet."""
    draw, lines = random.Random(0), list[str]()
    for path in sorted(texts.glob("*.txt.zst")):
        with path.open("rb") as file:
            text = zstandard.ZstdDecompressor().stream_reader(file).read().decode()
        lines += filter(None, text.splitlines())
    draw.shuffle(lines)
    rows = list[str]()
    while len(rows) < count:
        if rows and (draw.random() < COPIES or not lines):
            words = draw.choice(rows).split()
            if draw.random() < 0.7:
                words[draw.randrange(len(words))] = "another"
            rows.append(" ".join(words))
        else:
            rows.append(lines.pop())
    for number in range(FILES):
        part = range(number * count // FILES, (number + 1) * count // FILES)
        table = pa.table({"id": [*part], "text": rows[part.start : part.stop]})
        pq.write_table(table, folder / f"{number:03}.parquet")


def do(job: str, name: str, source: str, output: str) -> None:
    """One job in this process."""
    run: Any = getattr(encoding, name)()
    if job == "vectors":
        run(source, encoding.BatchEncoder("bundled", threads=1), output)
    elif job == "terms":
        encoding.count_terms(run, source, output, language="english")
    else:
        encoding.deduplicate(run, source, output)


def measured(command: list[str]) -> dict[str, float]:
    """Seconds and peak memory, in MB, of a process and of those below it."""
    begin, before = time.time(), resource.getrusage(resource.RUSAGE_CHILDREN)
    process = psutil.Popen(command, stdout=subprocess.DEVNULL)
    peak = 0
    while process.poll() is None:
        used = 0
        for each in [process, *process.children(recursive=True)]:
            try:
                used += each.memory_info().rss
            except psutil.Error:
                continue
        peak = max(peak, used)
        time.sleep(0.2)
    if process.returncode:
        raise SystemExit(f"{command} ended with {process.returncode}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {"seconds": round(time.time() - begin, 1), "cpu_seconds": round(cpu, 1), "peak_mb": round(peak / 1e6)}


def check(job: str, output: str, source: str) -> dict[str, Any]:
    """Whether all rows are there once, and what is to be the same in every engine."""
    if job == "terms":
        counts = encoding.TermCounts.read(output)
        return {"texts": counts.texts, "terms": counts.terms, "distinct": len(counts.numbers)}
    given = rows_of(source).to_table(columns=["id"])["id"].to_numpy()
    if job == "copies":
        kept = rows_of(f"{output}/unique").to_table(columns=["id"])["id"].to_numpy()
        gone = rows_of(f"{output}/families").to_table().sort_by("id")
        once = np.array_equal(np.sort(np.concatenate([kept, gone["id"].to_numpy()])), np.sort(given))
        families = crc32(gone["id"].to_numpy().tobytes() + gone["kept"].to_numpy().tobytes())
        return {"once": once, "kept": len(kept), "families": families}
    found = rows_of(output).to_table(columns=["id"])["id"].to_numpy()
    step = encoding.BatchEncoder("bundled")
    sample = next(iter(rows_of(output).to_batches(batch_size=SAMPLED)))
    stored = np.stack(sample["embedding"].to_numpy(zero_copy_only=False))
    apart = float(np.abs(stored - step.vectors(sample["text"].to_pylist())).max())
    return {"once": np.array_equal(np.sort(found), np.sort(given)), "apart": apart}


def main() -> None:
    """Measure, and write all figures."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--texts", type=Path, default=Path("../shared/text"))
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--engines", nargs="+", default=["local", "daft", "dask", "spark", "ray"])
    parser.add_argument("--jobs", nargs="+", default=["vectors", "terms", "copies"])
    parser.add_argument("--output", default="docs/results/speed/tables.json")
    parser.add_argument("--do", nargs=4, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.do:
        do(*asked.do)
        return
    file = Path(asked.output)
    found: dict[str, Any] = json.loads(file.read_text()) if file.exists() else {}
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "rows"
        source.mkdir()
        make_rows(asked.texts, asked.rows, source)
        for job in asked.jobs:
            for name in asked.engines:
                output = f"{folder}/{job}-{name}"
                row: dict[str, Any] = measured([sys.executable, __file__, "--do", job, name, str(source), output])
                row |= check(job, output, str(source))
                row["load"] = round(os.getloadavg()[0], 1)
                found.setdefault(str(asked.rows), {}).setdefault(job, {})[name] = row
                print(job, name, row, flush=True)
                write_json(file, found)


if __name__ == "__main__":
    main()
