"""Which engine finds the nearest of many vectors: recall, time, memory and bytes on disk of each.

    pip install faiss-cpu usearch lancedb
    selfsent encode bundled text.txt.zst --output vectors.npy
    python benchmarks/engines.py vectors.npy --rows 200000 --engines ivf-fp16 hnsw usearch-f16 lance-pq

Vectors are those of real sentences, so that they lie in groups as a user's do. The last 1,000 of the file are the
queries, and no part of the index. Each engine is a process of its own, on one core, and seconds are those of the
processor: the machine may be busy. Every engine is asked with rising effort, until it finds 95 % of the ten nearest.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

QUERIES, TOP, WANTED, BLOCK = 1000, 10, 0.95, 1 << 14
EFFORTS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)
Vectors = NDArray[np.float32]
Search = Callable[[Vectors, int], NDArray[np.int64]]
"""Queries (q, d) and an effort to rows (q, TOP)."""


class Source:
    """A `.npy` file of float32, read piece by piece, so that no page of it counts as the engine's memory."""

    def __init__(self, path: Path, rows: int) -> None:
        shape = np.load(path, mmap_mode="r").shape
        self.path, self.rows, self.size = path, min(rows, shape[0] - QUERIES), shape[1]
        self._start = path.stat().st_size - shape[0] * shape[1] * 4
        self.queries = self._read(shape[0] - QUERIES, QUERIES)

    def _read(self, row: int, count: int) -> Vectors:
        found = np.fromfile(self.path, np.float32, count * self.size, offset=self._start + row * self.size * 4)
        return found.reshape(count, self.size)

    def blocks(self) -> Iterator[tuple[int, Vectors]]:
        """The first row of each block, and its vectors."""
        for row in range(0, self.rows, BLOCK):
            yield row, self._read(row, min(BLOCK, self.rows - row))

    def sample(self, count: int) -> Vectors:
        """So many vectors, from all over the file, to train on."""
        share = min(1.0, count / self.rows)
        draw = np.random.default_rng(0)
        return np.concatenate([part[draw.random(len(part)) < share] for _, part in self.blocks()])


def exact(source: Source) -> NDArray[np.int64]:
    """The rows (q, TOP) with the largest cosines, all of them computed."""
    best, rows = np.full((QUERIES, TOP), -2, np.float32), np.zeros((QUERIES, TOP), np.int64)
    for first, part in source.blocks():
        cosine = np.hstack([best, source.queries @ part.T])
        number = np.hstack([rows, np.broadcast_to(np.arange(first, first + len(part)), (QUERIES, len(part)))])
        order = np.argpartition(-cosine, TOP, axis=1)[:, :TOP]
        best, rows = np.take_along_axis(cosine, order, 1), np.take_along_axis(number, order, 1)
    return rows


def faiss_ivf(source: Source, place: Path, storage: str) -> tuple[Callable[[], None], Callable[[], Search]]:
    """Cells around centres; within them floats of 32 or 16 bits, bytes, or codes of 48 bytes."""
    import faiss

    path, cells = place / "index.faiss", max(1, 4 * int(source.rows**0.5))

    def build() -> None:
        kind = {"fp32": "Flat", "fp16": "SQfp16", "sq8": "SQ8", "pq48": "PQ48"}[storage]
        index = faiss.index_factory(source.size, f"IVF{cells},{kind}", faiss.METRIC_INNER_PRODUCT)
        index.cp.max_points_per_centroid = 64
        index.train(source.sample(64 * cells))
        for _, part in source.blocks():
            index.add(part)
        faiss.write_index(index, str(path))

    def opened() -> Search:
        index = faiss.read_index(str(path), faiss.IO_FLAG_MMAP_IFC)

        def search(queries: Vectors, effort: int) -> NDArray[np.int64]:
            index.nprobe = effort
            return np.asarray(index.search(queries, TOP)[1], np.int64)

        return search

    return build, opened


def faiss_hnsw(source: Source, place: Path, storage: str) -> tuple[Callable[[], None], Callable[[], Search]]:
    """A graph of neighbours, 32 a vector."""
    import faiss

    path = place / "index.faiss"

    def build() -> None:
        index = faiss.index_factory(source.size, f"HNSW32,{storage}", faiss.METRIC_INNER_PRODUCT)
        index.hnsw.efConstruction = 80
        index.train(source.sample(100_000))
        for _, part in source.blocks():
            index.add(part)
        faiss.write_index(index, str(path))

    def opened() -> Search:
        index = faiss.read_index(str(path))

        def search(queries: Vectors, effort: int) -> NDArray[np.int64]:
            index.hnsw.efSearch = max(TOP, 4 * effort)
            return np.asarray(index.search(queries, TOP)[1], np.int64)

        return search

    return build, opened


def usearch(source: Source, place: Path, storage: str) -> tuple[Callable[[], None], Callable[[], Search]]:
    """A graph of neighbours in one file."""
    from usearch.index import Index

    path = place / "index.usearch"

    def build() -> None:
        index = Index(ndim=source.size, metric="ip", dtype=storage, connectivity=32, expansion_add=80)
        for row, part in source.blocks():
            index.add(np.arange(row, row + len(part)), part, threads=1)
        index.save(str(path))

    def opened() -> Search:
        index = Index.restore(str(path), view=True)

        def search(queries: Vectors, effort: int) -> NDArray[np.int64]:
            index.expansion_search = max(TOP, 4 * effort)
            return np.asarray(index.search(queries, TOP, threads=1).keys, np.int64)

        return search

    return build, opened


def lance(source: Source, place: Path, kind: str) -> tuple[Callable[[], None], Callable[[], Search]]:
    """A table in the Lance format with an index beside it."""
    import lancedb
    import pyarrow as pa

    def build() -> None:
        schema = pa.schema([("row", pa.int64()), ("vector", pa.list_(pa.float32(), source.size))])

        def batches() -> Iterator[pa.RecordBatch]:
            for row, part in source.blocks():
                column = pa.FixedSizeListArray.from_arrays(pa.array(part.ravel()), source.size)
                yield pa.record_batch([pa.array(np.arange(row, row + len(part))), column], schema=schema)

        reader = pa.RecordBatchReader.from_batches(schema, batches())
        table = lancedb.connect(str(place)).create_table("vectors", reader)
        cells = max(1, int(source.rows**0.5))
        more = {"num_sub_vectors": 48} if kind == "IVF_PQ" else {"m": 32, "ef_construction": 80}
        table.create_index(metric="dot", index_type=kind, num_partitions=cells, **more)

    def opened() -> Search:
        table = lancedb.connect(str(place)).open_table("vectors")

        def search(queries: Vectors, effort: int) -> NDArray[np.int64]:
            found = []
            for query in queries:
                asked = table.search(query).distance_type("dot").nprobes(effort).refine_factor(10)
                found.append(asked.limit(TOP).select(["row"]).to_arrow()["row"].to_numpy()[:TOP])
            return np.stack([np.pad(rows, (0, TOP - len(rows)), constant_values=-1) for rows in found])

        return search

    return build, opened


ENGINES: dict[str, tuple[Callable[..., Any], str]] = {
    **{f"ivf-{storage}": (faiss_ivf, storage) for storage in ("fp32", "fp16", "sq8", "pq48")},
    **{"hnsw": (faiss_hnsw, "Flat"), "hnsw-sq8": (faiss_hnsw, "SQ8")},
    **{f"usearch-{storage}": (usearch, storage) for storage in ("f16", "i8")},
    **{"lance-pq": (lance, "IVF_PQ"), "lance-hnsw": (lance, "IVF_HNSW_SQ")},
}


def peak_mb() -> float:
    """Most memory of this process so far, which `getrusage` would mix with that of the one that started it."""
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) / 1024


def measured(name: str, source: Source, place: Path, nearest: NDArray[np.int64]) -> dict[str, Any]:
    """What one engine takes, in this process."""
    make, how = ENGINES[name]
    build, opened = make(source, place, how)
    start = time.process_time()
    build()
    row: dict[str, Any] = {"engine": name, "rows": source.rows, "build_s": time.process_time() - start}
    row["build_peak_mb"] = peak_mb()
    row["disk_mb"] = sum(file.stat().st_size for file in place.rglob("*") if file.is_file()) / 2**20
    search, row["efforts"] = opened(), []
    for effort in EFFORTS:
        start = time.process_time()
        found = search(source.queries, effort)
        each = (time.process_time() - start) / QUERIES * 1000
        recall = float(np.mean([len(set(a) & set(b)) for a, b in zip(found, nearest, strict=True)])) / TOP
        row["efforts"].append({"effort": effort, "recall": recall, "query_ms": each})
        if recall >= WANTED:
            break
    return row


def main() -> None:
    """Measure each engine in a process of its own, and print a line each."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("vectors", type=Path)
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--engines", nargs="+", choices=list(ENGINES), default=list(ENGINES))
    parser.add_argument("--nearest", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--output", type=Path, default=Path("docs/results/speed/engines.json"))
    options = parser.parse_args()
    source = Source(options.vectors, options.rows)
    if options.nearest:
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
        with tempfile.TemporaryDirectory() as place:
            print(json.dumps(measured(options.engines[0], source, Path(place), np.load(options.nearest))))
        return
    from sides import machine

    from selfsent.files import read_json, write_json

    with tempfile.TemporaryDirectory() as place:
        np.save(nearest := Path(place) / "nearest.npy", exact(source))
        for name in options.engines:
            command = [sys.executable, __file__, str(options.vectors), "--rows", str(options.rows)]
            done = subprocess.run([*command, "--engines", name, "--nearest", str(nearest)], capture_output=True)
            if done.returncode:
                print(f"{name}: {done.stderr.decode().strip().splitlines()[-1]}")
                continue
            row = json.loads(done.stdout.splitlines()[-1])
            others = [old for old in read_json(options.output).get("rows", []) if _of(old) != _of(row)]
            write_json(options.output, {"machine": machine(), "rows": [*others, row]})
            last = row["efforts"][-1]
            print(
                f"{name:12} {row['rows']:>9,} rows  built in {row['build_s']:7.0f} s, {row['build_peak_mb']:6.0f} MB,"
                f" {row['disk_mb']:6.0f} MB on disk; recall@{TOP} {last['recall']:.3f} in {last['query_ms']:.2f} ms",
                flush=True,
            )


def _of(row: dict[str, Any]) -> tuple[str, int]:
    return row["engine"], row["rows"]


if __name__ == "__main__":
    main()
