r"""Whole commands with a table, from the shell to the answer: this build, the one before, and a script of model2vec.

    python benchmarks/without_torch.py --before ../before/src --texts titles.txt --documents tickets.csv \
        --peer ../peer/bin/python --output docs/results/speed/without_torch.json

Every command is a process of its own; the sides alternate, and medians are compared: seconds of the processor and the
most memory, as the kernel counts them for the process.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import Any

QUERY = "printer does not answer"
SCRIPT = """
import csv, sys
from model2vec import StaticModel
model = StaticModel.from_pretrained(sys.argv[1])
with open(sys.argv[2], newline="") as file:
    texts = [row["text"] for row in csv.DictReader(file)]
vectors, query = model.encode(texts), model.encode([sys.argv[3]])[0]
vectors /= (vectors**2).sum(1, keepdims=True) ** 0.5 + 1e-12
for row in (-(vectors @ query)).argsort()[:10]:
    print(texts[row])
"""
"""What one would write: it reads the texts, encodes them with the same table, and ranks by the cosine alone."""


def measured(command: list[str], environment: dict[str, str], folder: Path) -> tuple[float, float]:
    """Seconds of the processor and megabytes at most of a command."""
    with Path(os.devnull).open("w") as nothing:
        process = subprocess.Popen(command, env=environment, cwd=folder, stdout=nothing, stderr=nothing)
        _, status, usage = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"{' '.join(command)} ended with {status}")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def served(command: list[str], environment: dict[str, str], folder: Path) -> tuple[float, float]:
    """Seconds of the processor until a service has answered a query, and its megabytes at rest."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}/search", json.dumps({"query": QUERY}).encode(), {"content-type": "application/json"}
    )
    with Path(os.devnull).open("w") as nothing:
        process = subprocess.Popen([*command, "--port", str(port)], env=environment, cwd=folder, stderr=nothing)
        try:
            for _ in range(600):
                time.sleep(0.1)
                try:
                    urllib.request.urlopen(request, timeout=60).read()
                    break
                except OSError:
                    if process.poll() is not None:
                        raise SystemExit(f"{' '.join(command)} ended") from None
            spent = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
            memory = Path(f"/proc/{process.pid}/status").read_text().partition("VmRSS:")[2].split()[0]
        finally:
            process.terminate()
            process.wait()
    ticks = os.sysconf("SC_CLK_TCK")
    return (int(spent[11]) + int(spent[12])) / ticks, int(memory) / 1024


def main() -> None:
    """Measure, and write the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--before", required=True, type=Path, help="the src folder of the build before")
    parser.add_argument("--texts", required=True, type=Path, help="a text on each line")
    parser.add_argument("--documents", required=True, type=Path, help="a .csv file with title and text, for the exam")
    parser.add_argument("--count", type=int, default=1000, help="texts that are searched")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", nargs="*", help="commands to measure (default: all)")
    parser.add_argument("--peer", help="a Python that has model2vec, for the script beside `search`")
    parser.add_argument("--output", type=Path)
    given = parser.parse_args()
    own = Path(__file__).resolve().parents[1] / "src"
    table = own / "selfsent" / "models" / "bundled" / "static"
    before = given.before.resolve()
    documents, texts = given.documents.resolve(), given.texts.read_text(encoding="utf-8").splitlines()[: given.count]
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        with (folder / "texts.csv").open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([["id", "text"], *enumerate(texts)])
        (folder / "script.py").write_text(SCRIPT)
        run = [sys.executable, "-m", "selfsent"]
        exam = [*run, "exam", str(documents), "--title-column", "title", "--output", "SIDE-exam", "--overwrite"]
        commands = {
            "search --index": [*run, "search", "--index", "SIDE.index", QUERY],
            "search": [*run, "search", "bundled", "texts.csv", QUERY],
            "encode": [*run, "encode", "bundled", "texts.csv", "--output", "SIDE.npy"],
            "exam": [*exam, "--models", "bundled,bm25"],
            "serve": [*run, "serve", "SIDE.index"],
            "import selfsent": [sys.executable, "-c", "import selfsent"],
            "selfsent --help": [*run, "--help"],
        }
        chosen = {name: command for name, command in commands.items() if not given.only or name in given.only}
        # As pip installs them: without this, a shell may ask that every file is compiled each time.
        compiled = {**os.environ, "PYTHONPYCACHEPREFIX": str(folder / "compiled"), "PYTHONDONTWRITEBYTECODE": ""}
        sides = {"new": own, "before": before}
        environments = {
            side: {**compiled, "PYTHONPATH": str(src), "SELFSENT_CACHE": str(folder / f"{side}-cache")}
            for side, src in sides.items()
        }
        for side, environment in environments.items():
            index = [*run, "index", "bundled", "texts.csv", "--id-column", "id", "--output", f"{side}.index"]
            measured(index, environment, folder)
        found: dict[str, dict[str, list[tuple[float, float]]]] = {}
        for number in range(given.rounds + 1):  # the first one warms the file system's cache
            for name, command in chosen.items():
                for side, environment in environments.items():
                    own_command = [part.replace("SIDE", side) for part in command]
                    way = served if name == "serve" else measured
                    one = way(own_command, environment, folder)
                    found.setdefault(name, {}).setdefault(side, []).extend([one] * (number > 0))
                if name == "search" and given.peer:
                    script = [given.peer, "script.py", str(table), "texts.csv", QUERY]
                    one = measured(script, {**compiled, "PYTHONPATH": ""}, folder)
                    found[name].setdefault("model2vec", []).extend([one] * (number > 0))
    result: dict[str, Any] = {"texts": len(texts), "rounds": given.rounds, "cores": os.cpu_count(), "commands": {}}
    for name, each in found.items():
        medians = {
            side: [statistics.median(values) for values in zip(*runs, strict=True)] for side, runs in each.items()
        }
        ratios = [new / old for new, old in zip(medians["new"], medians["before"], strict=True)]
        about = {side: {"seconds": round(cpu, 3), "megabytes": round(most, 1)} for side, (cpu, most) in medians.items()}
        about["new / before"] = {"seconds": round(ratios[0], 3), "megabytes": round(ratios[1], 3)}
        result["commands"][name] = about
        print(f"{name:18s}", json.dumps(about))
    if given.output:
        given.output.write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
