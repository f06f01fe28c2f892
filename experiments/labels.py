"""Train and score every variant of a recipe of stages, with several seeds; what is done already is not done again.

    python experiments/labels.py experiments/labels_small.yaml --output docs/results/quality/labels.json --seeds 3
    python experiments/labels.py experiments/labels_small.yaml --output docs/results/quality/labels.json --table

Each variant is a run of `selfsent.train_stages`; one that was killed goes on in the middle of its stage. A
variant that names the base `tiny-bert` or `tiny-albert` starts from random weights of that architecture, made on the
spot with the bundled encoder's tokenizer.

As with grid.py, several of these may fill one output (--part 1/2, --part 2/2), on one thread each (OMP_NUM_THREADS=1).
All variants must say how long they train in steps or epochs, so that no run takes another one's time.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from harness import STS, Row, failure, fill, parser_of, titled
from sides import spread
from transformers import AlbertConfig, AlbertForMaskedLM, AutoTokenizer, BertConfig, BertForMaskedLM

from selfsent import train_stages
from selfsent.errors import TrainingError
from selfsent.models.bases import resolve
from selfsent.recipes import Recipe, read_document, read_recipe
from selfsent.training.run_directory import RunDirectory

TINY_BASES = ("tiny-bert", "tiny-albert")
TINY = {"hidden_size": 128, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 512}


def tiny_base(name: str, runs: Path) -> str:
    """A base of random weights, made where it is not there yet."""
    place = runs / name
    if not (place / "config.json").is_file():
        tokenizer = AutoTokenizer.from_pretrained(str(resolve("bundled-raw")))
        torch.manual_seed(0)
        shape = {**TINY, "vocab_size": len(tokenizer), "max_position_embeddings": 128}
        albert = name == "tiny-albert"
        model = AlbertForMaskedLM(AlbertConfig(embedding_size=128, **shape)) if albert else None
        (model or BertForMaskedLM(BertConfig(**shape))).save_pretrained(place)
        tokenizer.save_pretrained(place)
    return str(place)


def read_variant(path: Path, variant: str, seed: int, runs: Path) -> Recipe:
    """A variant of the recipe, its base made where it is one of random weights."""
    base = read_document(path).section("variants").section(variant).get("base")
    return read_recipe(path, variant, tiny_base(str(base), runs) if base in TINY_BASES else None, seed)


def run_variant(path: Path, variant: str, seed: int, runs: Path, data: str | None) -> dict[str, Any]:
    """Every score of a variant, and what its stages took."""
    recipe = read_variant(path, variant, seed, runs)
    base = None if recipe.encoder else recipe.base
    place = runs / f"{variant}, seed {seed}"
    start = time.process_time()
    try:
        done = train_stages(path, place, variant=variant, base=base, seed=seed, resume=True, data=data)
    except TrainingError as error:
        return {"failed": error.reason}
    stages = {}
    for stage in recipe.stages if recipe.folds is None else ():
        directory = RunDirectory(place / "stages" / stage.name)
        directory.check(resume=True, overwrite=False)
        losses = [entry["loss"] for entry in directory.metrics() if "loss" in entry]
        stages[stage.name] = {"steps": directory.record.get("steps"), "loss": losses[-1:]}
    return {"scores": done.figures, "stages": stages, "seconds": round(time.process_time() - start, 1)}


def figures(row: dict[str, Any]) -> dict[str, float]:
    """The scores of each stage, STS12 to 15 as their mean."""
    found = {name: float(score) for name, score in row.get("scores", {}).items()}
    for stage in {name.partition(": ")[0] for name in found}:
        years = [found.pop(f"{stage}: {task}") for task in STS if f"{stage}: {task}" in found]
        if years:
            found[f"{stage}: mean of sts12-15"] = float(np.mean(years))
    return found


def table(rows: dict[str, Any]) -> str:
    """The rows as Markdown, a line for each stage that was scored: mean and, over several seeds, standard deviation."""
    tasks = list(dict.fromkeys(name.partition(": ")[2] for row in rows.values() for name in figures(row)))
    lines = [f"| | after | {' | '.join(tasks)} |", "|---|---|" + "--:|" * len(tasks)]
    for variant, runs in titled(rows).items():
        lines += failure(variant, runs, len(tasks))
        good = [figures(run) for run in runs if "failed" not in run]
        for stage in dict.fromkeys(name.partition(": ")[0] for run in good for name in run):
            cells = [spread([run[f"{stage}: {task}"] for run in good if f"{stage}: {task}" in run]) for task in tasks]
            lines.append(f"| {variant} | {stage} | {' | '.join(cells)} |")
    return "\n".join(lines)


def runs_of(options: argparse.Namespace, runs: Path) -> Iterator[tuple[str, Callable[[], Row]]]:
    """The key of every variant with each seed, and what runs it."""
    runs.mkdir(parents=True, exist_ok=True)
    for seed in range(options.seeds):
        for variant in options.only or read_document(options.recipe).section("variants"):
            yield f"{variant} | seed {seed}", partial(run_variant, options.recipe, variant, seed, runs, options.data)


def main() -> None:
    """Run what is missing of a recipe's variants, or print the table."""
    parser = parser_of(__doc__, Path("runs/labels"))
    parser.add_argument("--seeds", type=int, default=1, help="so many seeds of every variant, from 0")
    parser.add_argument("--only", nargs="+", metavar="VARIANT", help="run these variants and no others")
    options = parser.parse_args()
    fill(options, lambda runs: runs_of(options, runs), figures, table)


if __name__ == "__main__":
    main()
