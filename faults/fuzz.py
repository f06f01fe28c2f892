"""Mutated inputs of every kind: each must end in a result, or in one line and status 2. Failures are shrunk."""

from __future__ import annotations

import gzip
import io
import json
import multiprocessing
import os
import shutil
import sys
import traceback
from collections import Counter
from collections.abc import Callable
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, seed, settings, strategies as st
from world import World, seconds_of

KINDS = (
    "csv tsv jsonl txt parquet csv.gz jsonl.zst recipe pairs labels model weights vectors.npy vectors.parquet arguments"
).split()
SECONDS = 10
"""Of a processor, that an example may take; on a clock ten times as many, for machines that are busy."""
GROWTH = 1 << 30
"""Bytes that an example may take."""
_TOGETHER = 300
"""Examples that share a process."""
_ODD = (
    rb"""- -1 0 1e999 NaN null true [ { } ] : &a *a <<: | > % ../ / \ " "" ' , ; =HYPERLINK( <script> PAR1"""
    b" \x00 \xff \xfe \xc0\x80 \xed\xa0\x80 \xf4\x90\x80\x80 \x1f\x8b \xef\xbb\xbf \xe2\x80\xae \x1b[2J"
    b" \xf0\x9f\x99\x82 !!python/object:os.system"
).split()
_ODD += [b"\r", b"\n", b"\r\n", b"\n\n", b"\t", b"<<: *a", b"- ", b" " * 300, b"9" * 400, b"a" * 5000]
_COMMANDS = (
    "train encode search pairs cluster evaluate augment table export methods label pretrain compare --help"
    " --version trian"
).split()
_FLAGS = (
    "--output --text-column --method --base --steps --batch-size --learning-rate --seed --clean --split-sentences"
    " --id-column --keep --json --pairs --labels --top --clusters --pooling --dropout --hold-out --budget --max-length"
    " --precision --track --dev --views --where --to --with --encoded --without --resume --overwrite --relevance --task"
    " --suite -x"
).split()
_VALUES = (
    "0 -1 1 1e999 nan bundled tsdae simcse text a,b , = a=b \x1b[2J \u202e 🙂 ../.. / . 1s -5m stsb-dev context pairs"
    " mlm:ratio=2 onnx SENTENCES FOLDER/out.npy FOLDER/run FOLDER/out.parquet"
).split()
_VALUES += ["", " ", "9" * 300]


def cases(count: int, seed: int, exact: bool) -> list[dict[str, Any]]:
    """A case for each kind, with its share of the examples."""
    return [{"kind": kind, "seed": seed, "examples": max(1, count // len(KINDS))} for kind in KINDS]


def edits(size: int) -> st.SearchStrategy[list[tuple[int, int, bytes | int]]]:
    """One to six changes of so many bytes: position, bytes taken out, and what is put in, or how often they repeat."""
    put = st.sampled_from(_ODD) | st.binary(max_size=64) | st.sampled_from((2, 4, 50))
    change = st.tuples(st.integers(0, size), st.sampled_from((0, 1, 2, 8, 64, 1000, 1 << 30)), put)
    return st.lists(change, min_size=1, max_size=6)


def edited(data: bytes, changes: list[tuple[int, int, bytes | int]]) -> bytes:
    """Data with changes."""
    for at, length, put in changes:
        out = data[at : at + length]
        data = data[:at] + (out[:1000] * put if isinstance(put, int) else put) + data[at + length :]
    return data


def command_lines() -> st.SearchStrategy[list[str]]:
    """A command with names, flags and values that hardly ever go together."""
    value = st.sampled_from(_VALUES)
    flag = st.tuples(st.sampled_from(_FLAGS), st.lists(value, max_size=2)).map(lambda pair: [pair[0], *pair[1]])
    parts = st.tuples(st.sampled_from([*_COMMANDS, ""]), st.lists(value, max_size=2), st.lists(flag, max_size=4))
    return parts.map(lambda part: [part[0], *part[1], *(word for each in part[2] for word in each)])


class Fuzz:
    """The part of the campaign.

    Args:
        world: has what is mutated.
    """

    def __init__(self, world: World) -> None:
        self.world = world
        self._process: Any = None
        self._pipe: Any = None
        self._left = 0

    @cached_property
    def seeds(self) -> dict[str, bytes]:
        """A whole file of each kind."""
        return dict(_seeds(self.world))

    def run(self, case: dict[str, Any]) -> dict[str, Any]:
        """Try the examples of a kind; a failing one is made as small as it goes."""
        kind, ends = case["kind"], Counter[str]()
        size = 600 if kind in ("model", "weights") else len(self.seeds.get(kind, b""))
        examples = command_lines() if kind == "arguments" else edits(size)
        options = ["", "--split-sentences", "--clean html,mail,urls", "--text-column body"]

        @seed(case["seed"])
        @settings(max_examples=case["examples"], database=None, deadline=None, suppress_health_check=list(HealthCheck))
        @given(examples, st.integers(0, 99), st.sampled_from(options))
        def one(example: Any, number: int, option: str) -> None:
            folder = self.world.new("fuzz")
            arguments = [str(each) for each in self._make(kind, example, number, option, folder)]
            found = self._ask(arguments, folder)
            shutil.rmtree(folder, ignore_errors=True)
            ends[{0: "a result"}.get(found.get("status"), f"a line, status {found.get('status')}")] += 1
            assert not found["fault"], found["fault"].replace(str(folder), "")

        fault = None
        try:
            one()
        except AssertionError as error:
            fault = str(error)
        return {"ends": dict(ends), "fault": fault}

    def _ask(self, arguments: list[str], folder: Path) -> dict[str, Any]:
        if self._left == 0:
            self._start()
        self._left -= 1
        self._pipe.send((arguments, str(folder)))
        before, waited = seconds_of(self._process), 0.0
        while not self._pipe.poll(0.1):
            waited += 0.1
            if not self._process.is_alive():
                self._left = 0
                return {"fault": f"the process died with {self._process.exitcode}: {arguments}"}
            if seconds_of(self._process) - before > SECONDS or waited > 60 * SECONDS:
                self._process.kill()
                self._left = 0
                return {"fault": f"more than {SECONDS} seconds: {arguments}"}
        found: dict[str, Any] = self._pipe.recv()
        return found

    def _start(self) -> None:
        if self._process is not None:
            self._process.kill()
        context = multiprocessing.get_context("forkserver")
        self._pipe, other = context.Pipe()
        self._process = context.Process(target=_serve, args=(other, str(self.world.new("fuzz-cache"))), daemon=True)
        self._process.start()
        self._left = _TOGETHER
        # The first call of anything takes as long as its imports.
        labels = self.world.folder / "labels.csv"
        labels.write_bytes(self.seeds["labels"])
        for first in (
            ["encode", "bundled", str(self.world.sentences), "--output", "/dev/null.npy"],
            ["evaluate", "bundled", "--labels", str(labels)],
        ):
            self._pipe.send((first, ""))
            self._pipe.recv()

    def _make(self, kind: str, example: Any, number: int, option: str, folder: Path) -> list[object]:
        """Write the mutated input; the command that reads it."""
        text, output = self.world.sentences, ("--output", folder / "out.npy")
        if kind == "arguments":
            words = [word.replace("SENTENCES", str(text)).replace("FOLDER", str(folder)) for word in example]
            return [*words, *(["--steps", "1"] if words[0] in ("train", "pretrain", "compare") else [])]
        if kind in ("model", "weights"):
            shutil.copytree(self.world.model, folder / "model")
            found = sorted(path for path in (folder / "model").rglob("*.*") if path.is_file())
            found = [path for path in found if (path.suffix == ".safetensors") == (kind == "weights")]
            file = found[number % len(found)]
            data = file.read_bytes()
            size = 8 + int.from_bytes(data[:8], "little") if kind == "weights" else len(data)
            file.write_bytes(edited(data[:size], example) + data[size:])
            return ["encode", folder / "model", text, *output]
        suffix = {"recipe": "yaml", "pairs": "tsv", "labels": "csv"}.get(kind, kind.removeprefix("vectors."))
        file, data = folder / f"input.{suffix}", self.seeds[kind]
        if kind.endswith((".gz", ".zst")) and number < 70:  # the text inside, and not its wrapping
            data = _packed(edited(_unpacked(data, kind), example), kind)
        else:
            data = edited(data, example)
        file.write_bytes(data)
        if kind.startswith("vectors"):
            return ["search", "bundled", text, "bada", "--encoded", file]
        given: dict[str, list[object]] = {
            "recipe": ["train", file, "--output", folder / "run"],
            "pairs": ["evaluate", "bundled", "--pairs", file],
            "labels": ["evaluate", "bundled", "--labels", file],
        }
        return given.get(kind, ["encode", "bundled", file, *output, *option.split()])


def _unpacked(data: bytes, kind: str) -> bytes:
    import zstandard

    return gzip.decompress(data) if kind.endswith(".gz") else zstandard.decompress(data)


def _packed(data: bytes, kind: str) -> bytes:
    import zstandard

    return gzip.compress(data, mtime=0) if kind.endswith(".gz") else zstandard.compress(data)


def _seeds(world: World) -> list[tuple[str, bytes]]:
    import tiny

    texts = tiny.make_sentences(40)
    rows = [(text, f"d{i // 4}", i % 3) for i, text in enumerate(texts)]
    csv = "text,body,team\n" + "".join(f'"{a}, {c}",{b},{c}\n' for a, b, c in rows)
    jsonl = "".join(json.dumps({"text": a, "body": b, "team": c}) + "\n" for a, b, c in rows)
    found = {
        "csv": csv.encode(),
        "tsv": ("text\tbody\tteam\n" + "".join(f"{a}\t{b}\t{c}\n" for a, b, c in rows)).encode(),
        "jsonl": jsonl.encode(),
        "txt": "".join(f"{a}\n" + "\n" * (c == 2) for a, _, c in rows).encode(),
        "pairs": "".join(f"{a}\t{b}\t{i % 6}\n" for i, (a, b) in enumerate(pairwise(texts))).encode(),
        "labels": ("text,label\n" + "".join(f"{a},{'xyz'[c]}\n" for a, _, c in rows)).encode(),
        "recipe": _RECIPE.format(text=world.sentences).encode(),
    }
    found["csv.gz"], found["jsonl.zst"] = _packed(found["csv"], ".gz"), _packed(found["jsonl"], ".zst")
    place = world.make("seeds", _write_seeds)
    found["parquet"] = (place / "texts.parquet").read_bytes()
    for end in ("npy", "parquet"):
        output = world.folder / f"seed.{end}"
        if not output.exists():
            done = world.do(["encode", "bundled", world.sentences, "--output", output], world.folder / "run-cache")
            if done.status:
                raise RuntimeError(done.said)
        found[f"vectors.{end}"] = output.read_bytes()
    return list(found.items())


_RECIPE = """title: a short run
base: bundled
stages:
  first: &first
    corpus: {{source: {text}, split_sentences: false}}
    method: simcse
    steps: 1
    batch_size: 8
    max_length: 16
    learning_rate: 1e-4
variants:
  usual: {{}}
  other: {{stages: {{first: {{<<: *first, seed: 2}}}}}}
"""


def _write_seeds(path: str) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    import tiny

    texts = tiny.make_sentences(40)
    Path(path).mkdir(exist_ok=True)
    table = pa.table({"text": texts, "body": [f"d{i // 4}" for i in range(40)], "team": list(range(40))})
    pq.write_table(table, Path(path) / "texts.parquet")


def _serve(pipe: Any, cache: str) -> None:
    """Run command lines, one after the other, in this process."""
    log = Path(cache) / "log"
    with log.open("a") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    sys.stdout, sys.stderr = os.fdopen(1, "w", closefd=False), os.fdopen(2, "w", buffering=1, closefd=False)
    sys.stdin = io.StringIO("")
    os.environ |= {"SELFSENT_CACHE": cache, "HF_HUB_OFFLINE": "1", "SELFSENT_DATA": cache}
    os.chdir(cache)
    from selfsent.cli import main

    while True:
        try:
            arguments, _ = pipe.recv()
        except EOFError:
            return
        os.truncate(log, 0)
        os.lseek(1, 0, os.SEEK_SET)
        pipe.send(_tried(main, arguments, log))


def _tried(main: Callable[[list[str]], None], arguments: list[str], log: Path) -> dict[str, Any]:
    Path("/proc/self/clear_refs").write_text("5")  # the most memory it had so far is forgotten
    before, fault, status = _most_memory(), None, None
    try:
        main(arguments)
    except SystemExit as end:
        status = end.code
    except BaseException:
        fault = traceback.format_exc()[-1500:]
    sys.stdout.flush()
    said = log.read_bytes().replace(b"\x00", b"").decode("utf-8", "replace")
    lines = said.strip().splitlines() or [""]
    if fault is None and (status not in (0, 1, 2) or "Traceback" in said):
        fault = f"status {status}: {said[-1000:]}"
    if fault is None and status in (1, 2) and not lines[-1].startswith("selfsent"):
        fault = f"status {status} without a line: {lines[-1][:300]}"
    if fault is None and any(mark in said for mark in ("\x1b", "\u202e", "\x07")):
        fault = f"control characters: {said[-300:]!r}"
    if fault is None and (grown := _most_memory() - before) > GROWTH:
        fault = f"{grown >> 20} MB more"
    return {"status": status, "fault": None if fault is None else f"{fault} {arguments}"}


def _most_memory() -> int:
    found = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
    return int(found.split()[1]) << 10
