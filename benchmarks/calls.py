"""How many of selfsent's own calls and files a command passes through.

    python benchmarks/calls.py train           # from the command to the first step
    python benchmarks/calls.py search exam index-add --functions 15

A call is one of a named function of selfsent; comprehensions, lambdas and the next items of a generator are none. A
file counts if any of its code ran, as by an import. `train` stops where the loop begins; the other commands run to
their end. Each runs in a process of its own, on a small corpus that the script makes and that was read before, so that
the calls of each row are left out.
"""

from __future__ import annotations

import argparse
import inspect
import json
import subprocess  # nosec B404 # runs this script itself
import sys
import tempfile
import threading
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

_TOPICS = "printer scanner screen keyboard mouse network router cable server disk".split()
_SYLLABLES = "ba de fi go hu ka le mi no pu".split()
"""Of the names of rooms: numbers alone would make the sentences a template, of which an exam asks nothing."""
_STATES = "does not answer,is too slow,lost its settings,shows an error,was replaced,works again".split(",")


def write_corpus(folder: Path, documents: int = 200) -> None:
    """Write tickets of four sentences each as `tickets.csv`, and as many new ones as `new.csv`."""
    for name, start in (("tickets", 0), ("new", documents)):
        lines = ["id,body"]
        for number in range(start, start + documents):
            topics = [_TOPICS[(number // 10**place) % 10] for place in range(3)]
            room = "".join(_SYLLABLES[(number // 10**place) % 10] for place in range(3))
            said = [f"The {topic} {_STATES[(number + at) % 6]} in room {room}." for at, topic in enumerate(topics)]
            lines.append(f'{number},"{" ".join(said)} Ticket {number} is closed."')
        (folder / f"{name}.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")


COMMANDS = {
    "train": "train tickets.csv --text-column body --method tsdae --steps 2 --batch-size 8 --output run",
    "search": "search bundled tickets.csv --text-column body printer",
    "exam": "exam tickets.csv --text-column body --models bundled",
    "index-add": "index bundled new.csv --text-column body --id-column id --output index --add",
}
BEFORE = {
    "train": COMMANDS["train"].replace("--output run", "--output earlier"),
    "search": COMMANDS["search"],
    "exam": COMMANDS["exam"],
    "index-add": "index bundled tickets.csv --text-column body --id-column id --output index",
}
UNTIL = {"train": ("training/loop.py", "Loop.run")}


class Counting:
    """A profile of selfsent's own functions, until one of them is called.

    Args:
        root: the folder of the package.
        until: the file and the qualified name of that function; None for the end of the command.
    """

    def __init__(self, root: Path, until: tuple[str, str] | None) -> None:
        self.root, self.until = f"{root}/", until
        self.calls, self.files = Counter[tuple[str, str]](), set[str]()

    def __call__(self, frame: Any, event: str, argument: Any) -> None:
        """Count the call that begins here, if it is one of ours."""
        code = frame.f_code
        if event != "call" or not code.co_filename.startswith(self.root) or code.co_code[frame.f_lasti + 1]:
            return  # an argument of its RESUME says that a generator goes on
        file, name = code.co_filename.removeprefix(self.root), code.co_qualname
        if (file, name) == self.until:
            sys.setprofile(None)
            raise SystemExit(0)
        self.files.add(file)
        if not code.co_name.startswith("<") and code.co_flags & inspect.CO_NEWLOCALS:
            self.calls[file, name] += 1


def count(command: str) -> dict[str, Any]:
    """Run a command in this process; its calls by function, and its files."""
    import selfsent
    from selfsent.cli import main

    profile = Counting(Path(selfsent.__file__).parent, UNTIL.get(command))
    threading.setprofile(profile)
    sys.setprofile(profile)
    with suppress(SystemExit):
        main(COMMANDS[command].split())
    sys.setprofile(None)
    functions = [[*key, times] for key, times in profile.calls.most_common()]
    return {"calls": profile.calls.total(), "files": len(profile.files), "functions": functions}


def main() -> None:
    """Count the commands that are named, and print a line for each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("commands", nargs="*", default=[*COMMANDS])
    parser.add_argument("--functions", type=int, default=0, help="show so many functions that are called most")
    parser.add_argument("--here", type=Path, help=argparse.SUPPRESS)  # in the process that counts
    options = parser.parse_args()
    if options.here:
        options.here.write_text(json.dumps(count(options.commands[0])))
        return
    for name in options.commands:
        with tempfile.TemporaryDirectory() as folder:
            write_corpus(Path(folder))
            if name in BEFORE:
                before = [sys.executable, "-m", "selfsent", *BEFORE[name].split()]
                subprocess.run(before, cwd=folder, check=True, capture_output=True)  # nosec B603
            result = Path(folder) / "calls.json"
            again = [sys.executable, str(Path(__file__).resolve()), name, "--here", str(result)]
            subprocess.run(again, cwd=folder, check=True, capture_output=True)  # nosec B603
            found = json.loads(result.read_text())
        print(f"{name}: {found['calls']:,} calls in {found['files']} files")
        for file, function, times in found["functions"][: options.functions]:
            print(f"{times:8,}  {file} {function}")


if __name__ == "__main__":
    main()
