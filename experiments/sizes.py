"""Vectors of several sizes from a table: trained for them (matryoshka), or turned afterwards.

    python experiments/sizes.py --output docs/results/quality/sizes.json
    python experiments/sizes.py --output docs/results/quality/sizes.json --table

`bundled` learns the documents of each set of `retrieval/` in the data mirror, titles beside texts, without its queries,
as in `search_training.py`. What is trained is cut as it is, and turned to its principal axes (`whitening`, strength 0,
fitted on the same documents). Scores are nDCG@10 x 100 of the first numbers, by the cosine and with words; dev queries
of counsel and scitldr to choose by, and the test queries of all four sets. Rows that are there are not computed again.
"""

from __future__ import annotations

import argparse
import os
import shutil
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from search_training import CHOSEN_BY, SETS, corpus_of, keep, kept

from selfsent import train
from selfsent.data.corpus import Corpus
from selfsent.evaluation.tasks.beir import read_task
from selfsent.models.loading import load_encoder
from selfsent.scorers.lexical import Hybrid
from selfsent.scorers.load_scorer import scorer_of

SIZES = (384, 256, 128, 64, 32)
TRAINED: dict[str, dict[str, Any]] = {
    "untrained": {},
    "trained": {"positives": "title,document", "whiten": 0.0},
    "for sizes": {"positives": "title,document", "matryoshka": "256,128,64,32"},
}
WAYS = {
    "untrained": ("untrained", None),
    "untrained, turned": ("untrained", 0.0),
    "trained": ("trained", None),
    "trained, turned": ("trained", 0.0),
    "trained, whitened by 0.1 (default)": ("trained", 0.1),
    "trained for sizes": ("for sizes", None),
    "trained for sizes, turned": ("for sizes", 0.0),
}
"""What is trained, and the strength of the whitening after it; None for none."""
QUIET: dict[str, Any] = {"hold_out": 0, "overwrite": True, "quiet": True, "precision": "float32"}


def model_of(corpus: Corpus, way: str, runs: Path, seed: int) -> str:
    """The model of a way; what was trained before is not trained again."""
    trained, strength = WAYS[way]
    place = runs / trained.replace(" ", "-")
    if trained != "untrained" and not (place / "model").exists():
        how = {"learning_rate": 0.016, "epochs": 3, "seed": seed, **TRAINED[trained], **QUIET}
        train(corpus, "neighbours", "bundled", place, **how)
    base = "bundled" if trained == "untrained" else str(place)
    if strength is None:
        return base
    ridge = 0.1 if strength else 0.0
    train(corpus, "whitening", base, runs / "turned", strength=strength, ridge=ridge, seed=seed, **QUIET)
    return str(runs / "turned")


def measured(model: str, folder: Path) -> dict[str, dict[str, float]]:
    """nDCG@10 x 100 by split, measure and size."""
    found: dict[str, dict[str, float]] = {}
    splits = {"test": ("test",), **({"dev": ("train", "dev")} if folder.name in CHOSEN_BY else {})}
    for size in SIZES:
        encoder = load_encoder(model)
        encoder.cut(size)
        cosine = scorer_of(encoder, "model")
        for split, parts in splits.items():
            tasks = [read_task(folder, split=part) for part in parts]
            for name, one in (("cosine", cosine), ("words", Hybrid(cosine))):
                values = [100 * metrics[0] for task in tasks for metrics in task._measured(one)]
                found.setdefault(f"{split}, {name}", {})[str(size)] = round(float(np.mean(values)), 3)
    return found


def table(rows: list[dict[str, Any]]) -> str:
    """The means over sets and seeds as Markdown."""
    lines = []
    for split, sets in (("dev", CHOSEN_BY), ("test", SETS)):
        lines += [f"{split}: cosine / with words", "", f"| | {' | '.join(map(str, SIZES))} |", "|---" * 6 + "|"]
        for way in WAYS:
            cells = []
            for size in map(str, SIZES):
                pair = []
                for name in ("cosine", "words"):
                    found = [row[f"{split}, {name}"][size] for row in rows if row["way"] == way and row["set"] in sets]
                    pair.append(f"{np.mean(found):.2f}" if found else "")
                cells.append(" / ".join(pair))
            lines.append(f"| {way} | {' | '.join(cells)} |")
        lines.append("")
    return "\n".join(lines)


def main() -> None:
    """Fill the output, or print it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("SELFSENT_DATA", ".")) / "retrieval")
    parser.add_argument("--runs", type=Path, default=Path("runs/sizes"))
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--table", action="store_true")
    options = parser.parse_args()
    warnings.filterwarnings("ignore")
    if options.table:
        print(table(kept(options.output)))
        return
    for seed in range(options.seeds):
        for name in SETS:
            corpus, runs = corpus_of(options.data / name), options.runs / f"{name}-{seed}"
            for way in WAYS:
                row = {"set": name, "way": way, "seed": seed}
                if any(row.items() <= other.items() for other in kept(options.output)):
                    continue
                keep(options.output, row | measured(model_of(corpus, way, runs, seed), options.data / name))
                print(row, flush=True)
            shutil.rmtree(runs, ignore_errors=True)


if __name__ == "__main__":
    main()
