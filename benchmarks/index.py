r"""An index of this build beside one of the build before: how it is built, asked by words alone, and added to.

    python benchmarks/index.py build --before ../before/src --texts passages.csv
    python benchmarks/index.py words --before ../before/src --texts passages.csv
    python benchmarks/index.py upserts --before ../before/src --index million --rows rows/*.csv

Files have the columns id and text. The sides alternate, each in a process of its own; medians of seconds of the
processor are compared. Results go into docs/results/speed/index.json, one entry a kind.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from sides import machine
from without_torch import measured

from selfsent.files import read_json, write_json
from selfsent.index import Index
from selfsent.index.files import IndexFiles

OUTPUT = Path(__file__).parents[1] / "docs" / "results" / "speed" / "index.json"
COLUMNS = ("--text-column", "text", "--id-column", "id", "--language", "english")
TOP, QUERIES = 10, 1000


def build_command(texts: Path, output: Path) -> list[str]:
    """The command that makes an index."""
    return [sys.executable, "-m", "selfsent", "index", "bundled", str(texts), *COLUMNS, "--output", str(output)]


def recall(index: Index) -> dict[str, float]:
    """Recall of the ten nearest of a thousand texts at the index's own number of lists, and the texts compared."""
    ivf = IndexFiles(index.path).ivf
    assert ivf is not None
    vectors, draw = ivf.take(np.arange(len(ivf))), np.random.default_rng(5)
    rows = np.sort(draw.permutation(len(ivf))[:QUERIES])
    found = ivf.search(vectors[rows], TOP + 1)[1]
    near = np.argpartition(-(vectors[rows] @ vectors.T), TOP, axis=1)[:, : TOP + 1]
    shared = [len({*a} & {*b} - {row}) for a, b, row in zip(found.tolist(), near.tolist(), rows.tolist(), strict=True)]
    return {"recall@10": float(np.mean(shared)) / TOP, "lists": ivf.nlist, "visited": ivf.nprobe}


def build(given: argparse.Namespace, sides: dict[str, dict[str, str]], folder: Path) -> dict[str, Any]:
    """Whole commands, the size on disk and the recall."""
    seconds: dict[str, list[float]] = {side: [] for side in sides}
    for _ in range(given.rounds):
        for side, environment in sides.items():
            shutil.rmtree(folder / side, ignore_errors=True)
            seconds[side].append(measured(build_command(given.texts, folder / side), environment, folder)[0])
            print(side, seconds[side][-1], file=sys.stderr)
    about = {side: recall(Index(folder / side)) for side in sides}
    size = {side: sum(file.stat().st_size for file in (folder / side).iterdir()) for side in sides}
    return {"seconds": seconds, "bytes": size, "neighbours": about}


def words(given: argparse.Namespace, sides: dict[str, dict[str, str]], folder: Path) -> dict[str, Any]:
    """A thousand queries of six words, one by one, of each build's index, and of tantivy."""
    indexes = given.index or folder
    for side, environment in sides.items():
        if not given.index:
            measured(build_command(given.texts, folder / side), environment, folder)
    seconds: dict[str, list[float]] = {}
    hits: dict[str, Any] = {}
    for _ in range(given.rounds):
        for side in (*sides, "tantivy"):
            command = [sys.executable, str(Path(__file__).with_name("index_words.py")), str(given.texts)]
            command += [] if side == "tantivy" else [str(indexes / side)]
            environment = {**sides.get(side, sides["new"]), "OMP_NUM_THREADS": "1"}
            found = json.loads(subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE).stdout)
            seconds.setdefault(side, []).append(found["seconds"])
            hits[side] = found["hits"]
    both = [(new, old) for a, b in zip(hits["new"], hits["before"], strict=True) for new, old in zip(a, b, strict=True)]
    alike = {
        "hits": len(both),
        "same row": sum(new[0] == old[0] for new, old in both),
        "same lexical score, bit by bit": sum(new[1] == old[1] for new, old in both),
        "largest difference of a cosine": max(abs(new[2] - old[2]) for new, old in both),
    }
    return {"seconds": seconds, "new beside before": alike}


def upserts(given: argparse.Namespace, sides: dict[str, dict[str, str]], folder: Path) -> dict[str, Any]:
    """Whole commands that add the rows of one file after the other to a copy of each index, which replace others."""
    seconds: dict[str, list[float]] = {side: [] for side in sides}
    for side in sides:
        shutil.copytree(given.index / side, folder / side)
    for number, rows in enumerate(given.rows):
        for side, environment in sides.items():
            command = [sys.executable, "-m", "selfsent", "index", "bundled", str(rows.resolve()), *COLUMNS[:4]]
            found = measured([*command, "--add", "--output", str(folder / side)], environment, folder)[0]
            if number:  # the first write to a copy verifies all of its files
                seconds[side].append(found)
            print(side, found, file=sys.stderr)
    return {"seconds": seconds, "files of rows": len(given.rows)}


def main() -> None:
    """Measure one of these."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("build", "words", "upserts"))
    parser.add_argument("--before", type=Path, help="the src folder of the build before")
    parser.add_argument("--texts", type=Path, help="a .csv file with id and text")
    parser.add_argument("--index", type=Path, help="a folder with the indexes `new` and `before`, made before")
    parser.add_argument("--rows", type=Path, nargs="*", help="files with id and text, for upserts")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--output", type=Path, default=OUTPUT)
    given = parser.parse_args()
    given.texts = given.texts and given.texts.resolve()
    own = Path(__file__).resolve().parents[1] / "src"
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        # As pip installs them: without this, a shell may ask that every file is compiled each time.
        compiled = {**os.environ, "PYTHONPYCACHEPREFIX": str(folder / "compiled"), "PYTHONDONTWRITEBYTECODE": ""}
        sides = {
            side: {**compiled, "PYTHONPATH": str(src), "SELFSENT_CACHE": str(folder / f"{side}-cache")}
            for side, src in {"new": own, "before": given.before.resolve()}.items()
        }
        found = {"build": build, "words": words, "upserts": upserts}[given.what](given, sides, folder)
    medians = {side: statistics.median(values) for side, values in found["seconds"].items()}
    found |= {f"{side} / new": round(median / medians["new"], 2) for side, median in medians.items() if side != "new"}
    found |= {"load of the machine at the end": os.getloadavg()[0]}
    print(json.dumps(found, indent=1))
    write_json(given.output, {**read_json(given.output), given.what: found, "machine": machine()})


if __name__ == "__main__":
    main()
