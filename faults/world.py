"""What the campaign breaks: texts, a tiny encoder, a finished run; and commands in processes that can be hurt."""

from __future__ import annotations

import hashlib
import itertools
import json
import multiprocessing
import os
import resource
import shutil
import signal
import sqlite3
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))
# The server that processes are forked from knows no other way to the modules here.
_MODULE_FOLDERS = [ROOT / "src", ROOT / "packages" / "papers" / "src", ROOT / "faults", ROOT / "tests"]
os.environ["PYTHONPATH"] = os.pathsep.join(map(str, _MODULE_FOLDERS))

LIMIT = 60
"""Seconds of a processor after which a command hangs; on a clock ten times as many, for machines that are busy."""
_MODULES = ["selfsent.api", "selfsent.comparison.run", "selfsent.pretraining.pretrain", "selfsent.index", "warm"]


@dataclass(frozen=True)
class Traps:
    """What is done to a process.

    Args:
        event: before which change of the file system it is killed, counted from 0.
        seconds: after which time it is killed.
        limits: names of `resource` -> the limit.
        folder: the folder whose changes count.
        environment: variables of the process.
        count: file that is to hold the number of changes.
        before: called in the process before the command; it must be picklable.
    """

    event: int | None = None
    seconds: float | None = None
    limits: dict[str, int] = field(default_factory=dict)
    folder: str = ""
    environment: dict[str, str] = field(default_factory=dict)
    count: str | None = None
    before: Callable[[], None] | None = None


@dataclass(frozen=True)
class Done:
    """How a command ended."""

    status: int | None
    """As Python gives it: negative for a signal, None for one that hangs."""
    said: str
    seconds: float

    @property
    def killed(self) -> bool:
        """Whether it was killed by `kill -9`."""
        return self.status == -signal.SIGKILL

    @property
    def last(self) -> str:
        """Its last line."""
        return (self.said.strip().splitlines() or [""])[-1]

    @property
    def fault(self) -> str | None:
        """What is wrong with how it ended, if it was not killed: results, or a line and a status."""
        if self.status is None:
            return f"hangs: {self.last[:200]}"
        if "Traceback" in self.said or self.status < 0 or self.status not in (0, 1, 2, 130):
            return f"status {self.status}: {self.last[:300]}"
        if self.status in (1, 2) and not self.last.startswith("selfsent"):
            return f"status {self.status} without a line: {self.last[:200]}"
        return None


class World:
    """A folder with all that the parts need, made on demand and the same every time.

    Args:
        folder: where it lies. What was made before is used again.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.folder.mkdir(parents=True, exist_ok=True)
        self._numbers = itertools.count(1)
        self._making = threading.RLock()

    def new(self, name: str) -> Path:
        """A new, empty folder."""
        place = self.folder / f"{name}-{next(self._numbers)}"
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir()
        return place

    @cached_property
    def base(self) -> Path:
        """A tiny BERT."""
        return self.make("base", _make_base)

    @cached_property
    def documents(self) -> Path:
        """A text file of 200 documents of three sentences each."""
        import tiny

        path, lines = self.folder / "documents.txt", tiny.make_sentences(600, seed=1)
        path.write_text("".join(f"{a}\n{b}\n{c}\n\n" for a, b, c in zip(*(lines[i::3] for i in range(3)), strict=True)))
        return path

    @cached_property
    def sentences(self) -> Path:
        """A text file of 160 sentences."""
        import tiny

        path = self.folder / "sentences.txt"
        path.write_text("\n".join(tiny.make_sentences(160)) + "\n")
        return path

    @cached_property
    def many(self) -> Path:
        """A text file of 6,000 sentences, which are more than fit into one part of a table or a file of vectors."""
        import tiny

        path = self.folder / "many.txt"
        path.write_text("\n".join(tiny.make_sentences(6000, seed=2)) + "\n")
        return path

    @cached_property
    def tickets(self) -> tuple[Path, Path]:
        """Two tables of 300 rows with ids; a third of the second has ids of the first."""
        import tiny

        for name, start in (("tickets", 0), ("later", 200)):
            lines = enumerate(tiny.make_sentences(300, seed=3 + start), start)
            text = "".join(f"t{number},{line},team{number % 3}\n" for number, line in lines)
            (self.folder / f"{name}.csv").write_text("id,text,team\n" + text)
        return self.folder / "tickets.csv", self.folder / "later.csv"

    @cached_property
    def copies(self) -> Path:
        """A table of 3,000 rows, a third of them copies of an earlier one with another last word."""
        import tiny

        path, lines = self.folder / "copies.csv", tiny.make_sentences(2000, seed=4)
        lines += [f"{line} again" for line in lines[::2]]
        path.write_text("id,text\n" + "".join(f"c{number},{line}\n" for number, line in enumerate(lines)))
        return path

    @cached_property
    def index(self) -> Path:
        """An index of the first table."""
        return self._indexed(self.folder / "tickets.index", self.index_of(self.tickets[0]))

    @cached_property
    def large_index(self) -> Path:
        """An index of more texts than go to a database at once."""
        return self._indexed(self.folder / "many.index", ["index", "build", "bundled", self.many])

    def _indexed(self, path: Path, arguments: list[object]) -> Path:
        if not path.exists():
            done = self.do([*arguments, "--output", path], self.folder / "index-cache")
            assert done.status == 0, done.said
        return path

    def index_of(self, table: Path) -> list[object]:
        """The command for an index, but for its output."""
        return ["index", "build", "bundled", table, "--id-column", "id", "--keep", "team"]

    @property
    def train(self) -> list[object]:
        """A short `train`, but for its output."""
        given = ["train", self.sentences, "--method", "tsdae", "--base", self.base, "--steps", 5]
        return [*given, "--batch-size", 4, "--max-length", 16, "--checkpoint-every", 2, "--keep", 2]

    @property
    def views(self) -> list[object]:
        """An `augment` of many sentences by a language model, without its output."""
        return ["augment", self.many, "--with", f"mlm:model={self.base}"]

    @property
    def dedup(self) -> list[object]:
        """A `dedup` of the table with copies, without its files."""
        return ["dedup", self.copies, "--id-column", "id", "--overwrite"]

    @property
    def run_cache(self) -> Path:
        """The cache that `run` used."""
        return self.folder / "run-cache"

    @cached_property
    def run(self) -> Path:
        """A finished run, with its two checkpoints."""
        with self._making:
            return self._trained(self.folder / "run")

    @cached_property
    def adapted(self) -> Path:
        """A finished run that trained an adapter."""
        with self._making:
            return self._trained(self.folder / "adapted", "--lora", 4, "--keep-adapter")

    def _trained(self, path: Path, *more: object) -> Path:
        if (path / "report.html").exists():
            return path
        done = self.do([*self.train, *more, "--overwrite", "--output", path], cache=self.run_cache)
        assert done.status == 0, done.said
        return path

    @property
    def model(self) -> Path:
        """The model of the finished run."""
        return self.run / "model"

    def make(self, name: str, maker: Callable[[str], None]) -> Path:
        """What a function writes, in a process of its own, since forks of one that has used threads may hang."""
        path = self.folder / name
        with self._making:
            return path if path.exists() else self._made(path, maker)

    def _made(self, path: Path, maker: Callable[[str], None]) -> Path:
        process = multiprocessing.get_context("spawn").Process(target=maker, args=(f"{path}.new",))
        process.start()
        process.join()
        assert process.exitcode == 0, path
        return Path(f"{path}.new").rename(path)

    def start(self, arguments: Sequence[object], log: Path, cache: Path, traps: Traps = Traps()) -> Any:
        """Start a command in a process of its own, forked from a server that has imported everything."""
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(_MODULES)
        given = [str(argument) for argument in arguments]
        process = context.Process(target=_run, args=(given, str(log), str(cache), traps))
        process.start()
        return process

    def do(self, arguments: Sequence[object], cache: Path, traps: Traps = Traps(), limit: float = LIMIT) -> Done:
        """Run a command to its end, or to where it is killed."""
        log = self.folder / f"log-{next(self._numbers)}"
        started = time.perf_counter()
        process = self.start(arguments, log, cache, traps)
        return finish(process, log, started, limit)


def finish(process: Any, log: Path, started: float, limit: float = LIMIT) -> Done:
    """Wait for a command; one that hangs is killed."""
    while process.exitcode is None and time.perf_counter() - started < 10 * limit and seconds_of(process) < limit:
        process.join(0.2)
    hangs = process.exitcode is None
    if hangs:
        process.kill()
        process.join()
    said = log.read_text(errors="replace") if log.exists() else ""
    log.unlink(missing_ok=True)
    return Done(None if hangs else process.exitcode, said, time.perf_counter() - started)


def seconds_of(process: Any) -> float:
    """Seconds of a processor that a process has had."""
    try:
        parts = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(parts[11]) + int(parts[12])) / os.sysconf("SC_CLK_TCK")


def _make_base(path: str) -> None:
    import tiny

    tiny.save_base(Path(path), "bert", initializer_range=0.5)


def _run(arguments: list[str], log: str, cache: str, traps: Traps) -> None:
    with Path(log).open("a") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    sys.stdout, sys.stderr = os.fdopen(1, "w"), os.fdopen(2, "w", buffering=1)
    os.environ["SELFSENT_CACHE"] = cache
    os.environ.update(traps.environment)
    if traps.before is not None:
        traps.before()
    changes = _watch(traps) if traps.event is not None or traps.count else None
    if traps.seconds is not None:
        signal.signal(signal.SIGALRM, lambda *_: os.kill(os.getpid(), signal.SIGKILL))
        _kill_after(traps.seconds)
    for name, limit in traps.limits.items():
        resource.setrlimit(getattr(resource, name), (limit, limit))
    from selfsent.cli import main

    try:
        main(arguments)
    finally:
        if traps.count and changes is not None:
            Path(traps.count).write_text(str(changes[0]))


def _kill_after(seconds: float) -> None:
    """Killed from outside: a signal of its own would wait for the end of a call into compiled code."""
    parent = os.getpid()
    if os.fork() == 0:
        time.sleep(seconds)
        if os.getppid() == parent:
            os.kill(parent, signal.SIGKILL)
        os._exit(0)


_CHANGES = ("os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.truncate", "os.link", "shutil.rmtree")


def _watch(traps: Traps) -> list[int]:
    """Count the changes of the file system, and end before the one that was chosen."""
    found = [0]

    def one() -> None:
        if found[0] == traps.event:
            os.kill(os.getpid(), signal.SIGKILL)
        found[0] += 1

    def hear(event: str, arguments: tuple[Any, ...]) -> None:
        writes = event == "open" and isinstance(arguments[2], int) and arguments[2] & (os.O_WRONLY | os.O_RDWR)
        if (writes or event in _CHANGES) and isinstance(arguments[0], str | os.PathLike):
            path = os.fspath(arguments[0])
            if isinstance(path, str) and (path.startswith(traps.folder) or not path.startswith("/")):
                one()

    sync, connect = os.fsync, sqlite3.connect

    def connected(*arguments: Any, **more: Any) -> sqlite3.Connection:
        """Each statement of a database counts."""
        db = connect(*arguments, **more)
        db.set_trace_callback(lambda _: one())
        return db

    def synced(descriptor: int) -> None:
        one()
        sync(descriptor)

    os.fsync, sqlite3.connect = synced, connected
    sys.addaudithook(hear)
    return found


def digest(path: Path) -> str:
    """A short digest of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:16]


def read_json(path: Path) -> Any:
    """The content of a JSON file."""
    return json.loads(path.read_text(encoding="utf-8"))
