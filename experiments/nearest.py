"""Do nearest neighbours by the base teach anything, where sentences have no documents?

    python experiments/nearest.py TEXT.txt --base BASE --output docs/results/quality/nearest.json

Each sentence's partner is the nearest other one by the base's own cosines, if each is the other's nearest (the guard
against collapse: a hub is nobody's partner but one's). `mnrl` learns to find partners, with --keep-base 1 and without.
Scored on development data alone, beside the base as it is and the default for single sentences.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))  # what benchmarks and experiments share
from grid import finished, keep, score_row, table

import selfsent
from selfsent.models.encoding import encode
from selfsent.models.loading import load_encoder
from selfsent.search.tables import write_table

TASKS = ["stsb-dev", "banking77-dev", "newsgroups-dev", "counsel-topics-dev"]


def mutual(vectors: np.ndarray, least: float) -> np.ndarray:
    """(pairs, 2) rows that are each other's nearest, with a cosine of so much at least.

    Args:
        vectors: (n, d).
        least: the smallest cosine.
    """
    unit = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
    cosines = unit @ unit.T
    np.fill_diagonal(cosines, -1)
    nearest = cosines.argmax(1)
    rows = np.arange(len(unit))
    good = (nearest[nearest] == rows) & (rows < nearest) & (cosines[rows, nearest] >= least)
    return np.stack([rows[good], nearest[good]], axis=1)


def main() -> None:
    """Run what is missing, and print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("text", type=Path)
    parser.add_argument("--base", required=True)
    parser.add_argument("--name", help="of the base, in the output")
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--runs", type=Path, default=Path("runs/nearest"))
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    name = options.name or options.base
    corpus = selfsent.read_corpus(options.text)
    texts = list(dict.fromkeys(corpus.texts(np.arange(len(corpus)))))
    model = load_encoder(options.base)
    pairs = mutual(encode(model, texts), 0.0)
    options.runs.mkdir(parents=True, exist_ok=True)
    paired = options.runs / "pairs.jsonl"
    write_table(
        ({"text1": texts[a], "text2": texts[b]} for a, b in pairs.tolist()), {"text1": str, "text2": str}, paired
    )
    print(f"{len(texts):,} sentences, {len(pairs):,} pairs of mutual nearest ones", flush=True)
    mnrl: dict[str, Any] = {"method": "mnrl", "steps": options.steps, "max_length": 64}
    rows: dict[str, dict[str, Any]] = {
        "untrained": {},
        "nearest": mnrl,
        "nearest, keep base": {**mnrl, "keep_base": 1.0},
        "default": {"steps": options.steps, "max_length": 64},
    }
    for title, told in rows.items():
        key = f"{options.text.stem} | {name} | {title} | seed 0"
        if key in finished(options.output):
            continue
        base = options.base
        if told:
            source = selfsent.read_corpus(paired, text_columns=["text1", "text2"]) if "method" in told else options.text
            run = selfsent.train(source, base=base, output=options.runs / "run", overwrite=True, quiet=True, **told)
            base = str(run.directory)
        scores = score_row(base, None, {}, TASKS, None)
        keep(options.output, Path(__file__).name, key, {**told, "pairs": len(pairs), "scores": scores})
        print(key, {task: score[0] for task, score in scores.items()}, flush=True)
    print(table(finished(options.output)))


if __name__ == "__main__":
    main()
