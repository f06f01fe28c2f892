"""Mutated inputs of every kind. What may come of them: a result, or one line and status 2; never anything else."""

from __future__ import annotations

import gzip
import io
import json
import multiprocessing
import os
import random
import shutil
import sys
import traceback
from collections.abc import Callable
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

from world import World, seconds_of

KINDS = (
    "csv",
    "tsv",
    "jsonl",
    "txt",
    "parquet",
    "csv.gz",
    "jsonl.zst",
    "recipe",
    "pairs",
    "labels",
    "model",
    "vectors",
)
KINDS += ("command line", "weights")
SECONDS = 10
"""Of a processor, that a case may take; on a clock ten times as many, for machines that are busy."""
GROWTH = 1 << 30
"""Bytes that a case may take."""
_TOGETHER = 300
"""Cases that share a process."""
_ODD = [
    *(
        "\x00",
        "\ufeff",
        "\ud7ff",
        "\u202e",
        "\x1b[2J",
        "\r",
        "\n",
        "\r\n",
        "\n\n",
        '"',
        '""',
        "'",
        ",",
        ";",
        "\t",
        "\\",
    ),
    *("=HYPERLINK(", "<script>", "🙂", "e\u0301" * 9, "a" * 5000, " " * 300, "-1", "0", "1e999", "NaN", "null", "true"),
    *(
        "[",
        "{",
        "}",
        "]",
        ":",
        "&a",
        "*a",
        "<<: *a",
        "!!python/object:os.system",
        "- ",
        "|",
        ">",
        "%",
        "../",
        "/",
        "9" * 400,
    ),
]
_ODD_BYTES = [b"\xff", b"\xfe", b"\xc0\x80", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\x1f\x8b", b"PAR1", b"\x00" * 64]


def cases(count: int, seed: int, exact: bool) -> list[dict[str, Any]]:
    """The kind of each; all else is drawn from its number."""
    return [{"kind": KINDS[number % len(KINDS)], "draw": f"{seed} {number}"} for number in range(count)]


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
        """Write the mutated input, and give it to the command that reads such."""
        draw, folder = random.Random(f"fuzz {case['draw']}"), self.world.new("fuzz")
        arguments = self._make(case["kind"], draw, folder)
        found = self._ask([str(each) for each in arguments], folder)
        shutil.rmtree(folder, ignore_errors=True)
        return {
            key: value.replace(str(folder), "") if isinstance(value, str) else value for key, value in found.items()
        }

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

    def _make(self, kind: str, draw: random.Random, folder: Path) -> list[object]:
        if kind == "command line":
            return _command_line(draw, self.world, folder)
        if kind in ("model", "weights"):
            shutil.copytree(self.world.model, folder / "model")
            found = sorted(path for path in (folder / "model").rglob("*.*") if path.is_file())
            file = draw.choice([p for p in found if (p.suffix == ".safetensors") == (kind == "weights")])
            data = file.read_bytes()
            size = 8 + int.from_bytes(data[:8], "little") if kind == "weights" else len(data)
            file.write_bytes(mutated(data[:size], draw) + data[size:])
            return ["encode", folder / "model", self.world.sentences, "--output", folder / "out.npy"]
        suffix = {"recipe": "yaml", "pairs": "tsv", "labels": "csv", "vectors": draw.choice(("npy", "npz", "pq"))}
        name = {"pq": "parquet"}.get(suffix.get(kind, kind), suffix.get(kind, kind))
        file, key = folder / f"input.{name}", f"vectors.{name}" if kind == "vectors" else kind
        data = self.seeds[key]
        if kind.endswith((".gz", ".zst")) and draw.random() < 0.7:  # the text inside, and not its wrapping
            data = _packed(mutated(_unpacked(data, kind), draw), kind)
        else:
            data = mutated(data, draw)
        file.write_bytes(data)
        out = ("--output", folder / "out.npy")
        if kind == "recipe":
            return ["train", file, "--output", folder / "run"]
        if kind == "pairs":
            return ["evaluate", "bundled", "--pairs", file]
        if kind == "labels":
            return ["evaluate", "bundled", "--labels", file]
        if kind == "vectors":
            return ["search", "bundled", self.world.sentences, "bada", "--encoded", file]
        options = [[], ["--split-sentences"], ["--clean", "html,mail,urls"], ["--text-column", "body"]]
        return ["encode", "bundled", file, *out, *draw.choice(options)]


def mutated(data: bytes, draw: random.Random) -> bytes:
    """Data with one to six changes."""
    for _ in range(draw.choice((1, 1, 2, 3, 6))):
        at = draw.randrange(len(data) + 1)
        to = min(len(data), at + draw.choice((1, 2, 8, 64, 1000)))
        what = draw.randrange(8)
        if what == 0 and at < len(data):
            data = data[:at] + bytes([data[at] ^ 1 << draw.randrange(8)]) + data[at + 1 :]
        elif what == 1:
            data = data[:at] + draw.choice(_ODD).encode("utf-8", "surrogatepass") + data[at:]
        elif what == 2:
            data = data[:at] + draw.choice(_ODD_BYTES) + data[at:]
        elif what == 3:
            data = data[:at] + data[to:]
        elif what == 4:
            data = data[:to] + data[at:to] * draw.choice((1, 3, 50)) + data[to:]
        elif what == 5:
            data = data[:at] + draw.choice(_ODD).encode("utf-8", "surrogatepass") + data[to:]
        elif what == 6 and draw.random() < 0.3:
            data = data[:at]
        else:
            data = data[:at] + draw.randbytes(to - at) + data[to:]
    return data


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
    for end in ("npy", "npz", "parquet"):
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


_COMMANDS = (
    "train",
    "encode",
    "search",
    "pairs",
    "cluster",
    "evaluate",
    "augment",
    "table",
    "export",
    "methods",
    "label",
)
_COMMANDS += ("pretrain", "compare", "analyse", "--help", "--version", "trian", "")
_FLAGS = (
    "--output",
    "--text-column",
    "--method",
    "--base",
    "--steps",
    "--batch-size",
    "--learning-rate",
    "--seed",
    "--clean",
)
_FLAGS += (
    "--split-sentences",
    "--id-column",
    "--keep",
    "--json",
    "--pairs",
    "--labels",
    "--top",
    "--clusters",
    "--pooling",
)
_FLAGS += (
    "--dropout",
    "--hold-out",
    "--budget",
    "--max-length",
    "--precision",
    "--track",
    "--dev",
    "--views",
    "--where",
)
_FLAGS += (
    "--to",
    "--with",
    "--encoded",
    "--without",
    "--resume",
    "--overwrite",
    "--relevance",
    "--task",
    "--suite",
    "-x",
)
_VALUES = (
    "0",
    "-1",
    "1",
    "1e999",
    "nan",
    "",
    " ",
    "bundled",
    "tsdae",
    "simcse",
    "text",
    "a,b",
    ",",
    "=",
    "a=b",
    "\x1b[2J",
)
_VALUES += (
    "\u202e",
    "🙂",
    "../..",
    "/",
    ".",
    "1s",
    "-5m",
    "9" * 300,
    "stsb-dev",
    "context",
    "pairs",
    "mlm:ratio=2",
    "onnx",
)


def _command_line(draw: random.Random, world: World, folder: Path) -> list[object]:
    command = draw.choice(_COMMANDS)
    given: list[object] = [command]
    values = [*_VALUES, str(world.sentences), str(folder / "out.npy"), str(folder / "run"), str(folder / "out.parquet")]
    given += [draw.choice(values) for _ in range(draw.randrange(3))]
    for _ in range(draw.randrange(5)):
        given.append(draw.choice(_FLAGS))
        given += [draw.choice(values) for _ in range(draw.choice((0, 1, 1, 1, 2)))]
    if command in ("train", "pretrain", "compare"):
        given += ["--steps", "1"]
    return given


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
