"""Near-copies among many short texts: `pairs --approximate` beside semhash on the same vectors, and rensa on the texts.

    python -m pip install semhash rensa
    python benchmarks/near_duplicates.py --text TEXT --count 200000

A tenth of the texts are planted copies: other signs and capitals, or letters mistyped in a twelfth of the words and the
end cut. Each side works in a process of its own, of which the seconds of the processor without the reading of texts and
vectors are compared, and the most memory. A copy is found if it or its original is named as a near-copy. Rows that the
results hold are not measured again.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

RESULTS = Path(__file__).parents[1] / "docs" / "results" / "speed" / "near_duplicates.json"
SOURCES = ("wikipedia", "openstax", "blogs", "nltk-mix", "imdb-reviews", "novels-eltec", "podcasts-changelog")
COSINE, JACCARD, PERMUTATIONS = 0.9, 0.7, 128
FEWEST, MOST = 6, 25
"""Words of a text."""


def made(folder: Path, text: Path, count: int) -> Path:
    """A folder with the texts, the rows of copies and their originals, and the vectors by `bundled`; made once."""
    from dedup import copy

    from selfsent.models.encoding import encode
    from selfsent.models.opening import open_encoder

    found = folder / f"short-{count}"
    if (found / "vectors.npy").exists():
        return found
    found.mkdir(parents=True, exist_ok=True)
    lines: dict[str, None] = {}
    for name in SOURCES:
        raw = subprocess.run(["zstd", "-dc", text / f"{name}.txt.zst"], capture_output=True, check=True).stdout.decode()
        lines |= dict.fromkeys(line for line in raw.split("\n") if FEWEST <= len(line.split()) <= MOST)
    drawn = random.Random(0)
    origins = drawn.sample(list(lines), count - count // 10)
    texts = [*origins]
    planted = []
    for place, row in enumerate(drawn.sample(range(len(origins)), count // 10)):
        planted.append((row, len(texts)))
        texts.append(copy(origins[row], 1 + place % 2, drawn, row, ""))
    (found / "texts.json").write_text(json.dumps(texts))
    np.save(found / "planted.npy", np.array(planted))
    model = open_encoder("bundled")
    vectors = np.concatenate([encode(model, texts[at : at + 4096]) for at in range(0, len(texts), 4096)])
    vectors /= np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
    np.save(found / "vectors.npy", vectors.astype(np.float32))
    return found


def by_selfsent(texts: Sequence[str], vectors: Any) -> set[int]:
    """The rows of all pairs with this cosine."""
    from selfsent.search.pairs import approximate_pairs

    pairs, recall = approximate_pairs(vectors, 10 * len(texts), COSINE)
    print(f"{len(pairs)} pairs, recall on a sample {recall}", file=sys.stderr)
    return {row for pair in pairs for row in pair[1:3]}


def by_semhash(texts: Sequence[str], vectors: Any, backend: str = "usearch") -> set[int]:
    """The rows that semhash leaves out, and those that it keeps for them; by `basic` it compares all."""
    from semhash import SemHash

    class Encoder:
        def encode(self, sentences: Any, **_: Any) -> Any:
            raise NotImplementedError

    records = [f"{row} {text}" for row, text in enumerate(texts)]
    index = SemHash.from_embeddings(np.asarray(vectors), records, Encoder(), ann_backend=backend)
    found = index.self_deduplicate(COSINE).filtered
    named = [record for each in found for record in (each.record, each.duplicate_of)]
    return {int(str(record).split(" ", 1)[0]) for record in named}


def by_rensa(texts: Sequence[str], vectors: Any) -> set[int]:
    """The rows that share a band, and whose estimated Jaccard index is high enough."""
    from rensa import RMinHash, RMinHashLSH

    hashes = RMinHash.from_token_sets([text.lower().split() for text in texts], PERMUTATIONS, 0)
    index = RMinHashLSH(JACCARD, PERMUTATIONS, 16)
    for row, each in enumerate(hashes):
        index.insert(row, each)
    found = set[int]()
    for row, each in enumerate(hashes):
        near = [other for other in index.query(each) if other != row and each.jaccard(hashes[other]) >= JACCARD]
        found |= {row, *near} if near else set()
    return found


SIDES: dict[str, Callable[[Sequence[str], Any], set[int]]] = {
    "selfsent": by_selfsent,
    "semhash": by_semhash,
    "semhash, basic": partial(by_semhash, backend="basic"),
    "rensa": by_rensa,
}


def measured(side: str, folder: Path) -> dict[str, Any]:
    """The figures of a side, in this process."""
    texts, vectors = json.loads((folder / "texts.json").read_text()), np.load(folder / "vectors.npy", mmap_mode="r")
    planted = np.load(folder / "planted.npy").tolist()
    begin, wall = time.process_time(), time.perf_counter()
    found = SIDES[side](texts, vectors)
    seconds = {"processor": round(time.process_time() - begin, 1), "wall": round(time.perf_counter() - wall, 1)}
    recalled = [bool({origin, row} & found) for origin, row in planted]
    [most] = re.findall(r"VmHWM:\s+(\d+)", Path("/proc/self/status").read_text())
    return {
        **{"seconds": seconds, "megabytes": round(int(most) / 1024), "rows named": len(found)},
        "recall of copies": {kind: float(np.mean(recalled[at::2])) for at, kind in enumerate(("signs", "letters"))},
        "load of the machine": os.getloadavg()[0],
    }


def main() -> None:
    """Measure what is not measured yet."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--text", type=Path, help="the folder with the texts")
    parser.add_argument("--count", type=int, default=200_000)
    parser.add_argument("--folder", type=Path, default=Path("near-duplicates"), help="of texts and vectors")
    parser.add_argument("--side", choices=SIDES, help="one alone, in this process")
    parser.add_argument("--again", action="store_true", help="measure what is measured, too")
    parser.add_argument("--output", type=Path, default=RESULTS)
    given = parser.parse_args()
    if given.side:
        print(json.dumps(measured(given.side, given.folder)))
        return
    from sides import machine

    from selfsent.files import read_json, write_json

    folder = made(given.folder, given.text, given.count)
    for side in SIDES:
        if given.again or side not in read_json(given.output).get(str(given.count), {}):
            command = [sys.executable, __file__, "--side", side, "--folder", str(folder)]
            row = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
            rows = read_json(given.output)
            rows[str(given.count)] = {**rows.get(str(given.count), {}), side: row}
            write_json(given.output, {**rows, "machine": machine()})
            print(side, row)


if __name__ == "__main__":
    main()
