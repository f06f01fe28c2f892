"""Commands that are killed as `kill -9` does, given again, and compared with one that nobody killed."""

from __future__ import annotations

import hashlib
import os
import random
import shutil
import time
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from world import Done, Traps, World, digest, read_json

from selfsent.files import is_half_written
from selfsent.index.files import IndexFiles

STEPS = 5
COMMANDS = 25
FIRST = (200, 23)
"""Cases that were drawn when there were fewer commands, and how many there were: a case keeps its number."""
TIMED = 24
"""The command whose files are changed from compiled code, where changes are not counted."""
OUTPUT = "OUTPUT"
"""Stands for the path of the output in a command that has no --output."""
STORE = ".lancedb"
_OLD = 2 * 24 * 60 * 60


@dataclass(frozen=True)
class Command:
    """A command that is killed.

    Args:
        name: what it is called.
        arguments: with OUTPUT for the output; without it, `--output` is added.
        output: the name of its output.
        again: what is added when it is given again and has an output.
        first: what its output is before, if anything.
    """

    name: str
    arguments: tuple[object, ...]
    output: str = "run"
    again: tuple[str, ...] = ("--resume",)
    first: Path | None = None


def commands(world: World) -> list[Command]:
    """All of them: six methods and more of `train` on a table and on a transformer, and everything else that writes."""
    steps = ("--steps", STEPS, "--batch-size", 4, "--checkpoint-every", 2, "--max-length", 16)
    tiny = ("--base", world.base)
    best = ("--dev", "context", "--hold-out", 40, "--dev-every", 2, "--keep-best")
    table = ("--base", "bundled", "--delete-words", 0.3)  # it has no dropout to make two views of a sentence

    def train(name: str, text: Path, *more: object) -> Command:
        return Command(name, ("train", text, "--method", name.partition(" ")[0].rstrip(","), *steps, *more))

    first, later = world.tickets
    deleted = [f"t{number}" for number in range(0, 300, 3)]
    small = ("--vocabulary-size", 300, "--layers", 1, "--hidden-size", 32, "--heads", 2, "--max-length", 32)
    return [
        train("simcse", world.sentences, *table),
        train("neighbours", world.documents, "--hold-out", 40),
        train("bootstrap", world.sentences, *table),
        train("tsdae", world.sentences, *tiny),
        train("mlm", world.sentences, *tiny),
        train("ct", world.sentences, *tiny),
        train("simcse, the best kept", world.documents, *tiny, *best),
        train("distil", world.sentences, *tiny, "--teacher", "bundled"),
        train("ct-inbatch", world.sentences, *tiny),
        Command("whitening", ("train", world.sentences, "--method", "whitening", "--base", "bundled")),
        Command("pretrain", ("pretrain", world.many, "--steps", 5, "--batch-size", 2, *small)),
        Command(
            "compare", ("compare", world.documents, "--methods", "neighbours,zscore", "--hold-out", 40, *steps[:4])
        ),
        Command("augment", tuple(world.views), "views.parquet", ()),
        Command("encode", ("encode", "bundled", world.many), "vectors.npy", ()),
        Command("encode to parquet", ("encode", "bundled", world.many), "vectors.parquet", ()),
        train("mlm, an adapter kept", world.sentences, *tiny, "--lora", 4, "--keep-adapter"),
        Command("exam", ("exam", world.documents, "--queries", 50), again=("--overwrite",)),
        Command("mine", ("mine", "bundled", first, "--text-columns", "text,team"), "mined.parquet", ()),
        Command("queries", ("queries", first, "--title-column", "team", "--round-trip", 300), "queries.parquet", ()),
        Command("index build", tuple(world.index_of(first)), "tickets.index", ("--overwrite",)),
        Command("index add", ("index", "add", OUTPUT, later), "tickets.index", (), world.index),
        Command("index delete", ("index", "delete", OUTPUT, *deleted), "tickets.index", (), world.index),
        Command("index compact", ("index", "compact", OUTPUT), "tickets.index", (), world.index),
        Command("dedup", tuple(world.dedup), "unique.csv", ()),
        Command("push", ("push", world.large_index, f"lancedb://{OUTPUT}#tickets"), f"tickets{STORE}", ()),
    ]


def cases(count: int, seed: int, exact: bool) -> list[dict[str, Any]]:
    """Where each is killed: at a share of its changes of files, or of its time.

    Args:
        count: how many.
        seed: of all of them.
        exact: at changes of files alone, which come in the same order every time.
    """
    found = []
    for number in range(count):
        draw = random.Random(f"kills {seed} {number}")
        command = number % (FIRST[1] if number < FIRST[0] else COMMANDS)
        by = "changes" if (exact or draw.random() < 0.6) and command != TIMED else "time"
        shares = [draw.random() for _ in range(draw.choice((1, 1, 2)))]
        found.append({"command": command, "by": by, "shares": shares})
    return found


class Kills:
    """The part of the campaign.

    Args:
        world: what is broken.
    """

    def __init__(self, world: World) -> None:
        self.world, self.commands = world, commands(world)
        self._whole: dict[int, dict[str, Any]] = {}

    def whole(self, number: int) -> dict[str, Any]:
        """How a command ends that nobody kills, its changes and its seconds; kept with the world."""
        if number not in self._whole:
            folder, count = self.world.new("whole"), self.world.folder / f"changes-{number}"
            if first := self.commands[number].first:
                shutil.copytree(first, folder / "out" / self.commands[number].output)
            done = self._give(number, folder, Traps(count=str(count), folder=str(self.world.folder)))
            if done.status != 0:
                raise RuntimeError(f"{self.commands[number].name}: {done.said}")
            end = self._end(number, folder)
            self._whole[number] = {"changes": int(count.read_text()), "seconds": done.seconds, "end": end}
            shutil.rmtree(folder)
        return self._whole[number]

    def run(self, case: dict[str, Any]) -> dict[str, Any]:
        """Kill, go on, and compare."""
        number = case["command"]
        whole, folder = self.whole(number), self.world.new("killed")
        command = self.commands[number]
        if command.first:
            shutil.copytree(command.first, folder / "out" / command.output)
        told: dict[str, Any] = {"command": command.name, "killed": []}
        fault: str | None = None
        for share in case["shares"]:
            if case["by"] == "time":
                traps = Traps(seconds=share * whole["seconds"])
            else:
                traps = Traps(event=int(share * whole["changes"]), folder=str(self.world.folder))
            done = self._give(number, folder, traps)
            if not done.killed:
                break
            told["killed"].append(phase(folder, command.output))
            fault = fault or self._half_changed(command, folder / "out" / command.output, whole["end"])
        else:
            done = self._give(number, folder, Traps())
        fault = fault or done.fault or (f"status {done.status}: {done.last}" if done.status else None)
        fault = fault or self._difference(whole["end"], self._end(number, folder)) or self._leftovers(number, folder)
        fault = fault or self._unlike(number, folder)
        shutil.rmtree(folder, ignore_errors=True)
        return {**told, "fault": fault}

    def _give(self, number: int, folder: Path, traps: Traps) -> Done:
        command = self.commands[number]
        output = folder / "out" / command.output
        again = command.again if output.exists() else ()
        given = [str(each).replace(OUTPUT, str(output)) for each in command.arguments]
        if not any(OUTPUT in str(each) for each in command.arguments):
            given += ["--output", str(output)]
        return self.world.do([*given, *again], folder / "cache", traps)

    def _end(self, number: int, folder: Path) -> dict[str, str]:
        """Digests of all that must be the same."""
        out, found = folder / "out", {}
        if (index := out / self.commands[number].output).suffix == ".index":
            return {"the rows": rows_of(index)} if index.exists() else {}
        if index.suffix == STORE:
            return {"the rows": rows_in(index)} if index.exists() else {}
        for path in sorted(path for path in out.rglob("*") if path.is_file()):
            name = str(path.relative_to(out))
            if any(map(is_half_written, map(Path, path.relative_to(out).parts))):
                continue
            if path.name == "metrics.jsonl":
                found[name] = str([line.split(",")[0] for line in path.read_text().splitlines()])
            elif path.suffix in (".safetensors", ".npy", ".parquet", ".jsonl", ".tsv") or path.name == "tokenizer.json":
                found[name] = digest(path)
            elif path.name == "scores.json":
                found[name] = str(read_json(path))
            else:
                found[name] = ""
        return found

    def _half_changed(self, command: Command, index: Path, end: dict[str, str]) -> str | None:
        """What is wrong with an index after a kill: it has the rows of before or of after, and is searched."""
        if command.first is None:
            return None
        if rows_of(index) not in (rows_of(command.first), end["the rows"]):
            return "the killed index has neither the rows of before nor those of after"
        done = self.world.do(["search", "--index", index, "ba de", "--json", "-"], index.parent.parent / "cache")
        return done.fault or (f"the killed index is not searched: {done.last}" if done.status else None)

    def _difference(self, whole: dict[str, str], found: dict[str, str]) -> str | None:
        for name in sorted({*whole, *found}):
            if whole.get(name) != found.get(name):
                how = "is left over" if name not in whole else "is missing" if name not in found else "differs"
                return f"{name} {how}"
        return None

    def _unlike(self, number: int, folder: Path) -> str | None:
        """Whether a collection does not rank as its index does."""
        if self.commands[number].output.endswith(STORE):
            place = folder / "out" / self.commands[number].output
            asked = ["push", self.world.large_index, f"lancedb://{place}#tickets", "--check"]
            done = self.world.do(asked, folder / "cache")
            if done.status or "overlap 100.0%" not in done.said:
                return f"the collection does not rank as the index does: {done.last}"
        return None

    def _leftovers(self, number: int, folder: Path) -> str | None:
        """What is left goes with time: it is made two days older, and the next commands look."""
        temporary = [path for path in folder.rglob(".*") if "lock" not in path.name]
        if not temporary:
            return None
        for path in temporary:
            for each in (path, *path.rglob("*")):
                os.utime(each, (time.time() - _OLD,) * 2)
        # Another text, so that a table is built in the same cache.
        other = folder / "other.txt"
        other.write_text("one text\nand another\n")
        self.world.do(["encode", "bundled", other, "--output", folder / "other.npy"], folder / "cache")
        self._give(number, folder, Traps())
        left = [path for path in temporary if path.exists() and path.parent.name == "corpora"]
        left += [path for path in temporary if path.exists() and "out" in path.relative_to(folder).parts[:1]]
        return f"{left[0].relative_to(folder)} stays for ever" if left else None


def rows_of(index: Path) -> str:
    """All rows of an index with their texts, each as often as it is there."""
    files = IndexFiles(index)
    with closing(files.connect()) as db:
        files.check(db)
        columns = ", ".join(f"inputs.{name}" for name in files.sql_columns.values())
        return str(sorted(db.execute(f"SELECT {columns}, texts.text FROM inputs JOIN texts USING(doc_id)")))


def rows_in(store: Path) -> str:
    """Digest of all rows of a collection."""
    import lancedb

    rows = lancedb.connect(store).open_table("tickets").search().limit(1_000_000).to_list()
    return hashlib.sha256(repr(sorted((row["selfsent_key"], repr(row)) for row in rows)).encode()).hexdigest()


def phase(folder: Path, output: str) -> str:
    """What a command was about to do when it was killed, by what it left."""
    out, cache = folder / "out" / output, folder / "cache"
    if out.suffix == STORE:
        return "sending" if out.exists() else "reading"
    if not any(cache.rglob("corpus.json")):
        return "reading"
    if out.suffix:
        return "writing" if out.exists() or any(out.parent.glob(".*")) or any(out.parent.glob("*")) else "encoder"
    marks = (
        ("report.html", "end"),
        ("scores.json", "page"),
        ("model", "scoring"),
        ("checkpoints/step-*", "steps, behind a checkpoint"),
        ("metrics.jsonl", "steps"),
        ("run.json", "start"),
    )
    for mark, name in marks:
        if any(out.glob(mark)):
            return name
    return "tokens" if any(cache.rglob("tokens-*")) else "tokenising"
