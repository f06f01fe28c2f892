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
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import AlbertConfig, AlbertForMaskedLM, AutoTokenizer, BertConfig, BertForMaskedLM

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))  # what benchmarks and experiments share
from sides import keep, kept, spread

from selfsent import train_stages
from selfsent.errors import TrainingError
from selfsent.models.bases import resolve
from selfsent.recipes import Recipe, read_document, read_recipe
from selfsent.training.run_directory import RunDirectory

STS = ("sts12", "sts13", "sts14", "sts15")
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
    variants: dict[str, list[dict[str, Any]]] = {}
    for key, row in rows.items():
        variants.setdefault(key.rpartition(" | seed ")[0], []).append(row)
    tasks = list(dict.fromkeys(name.partition(": ")[2] for row in rows.values() for name in figures(row)))
    lines = [f"| | after | {' | '.join(tasks)} |", "|---|---|" + "--:|" * len(tasks)]
    for variant, runs in variants.items():
        if reasons := [run["failed"] for run in runs if "failed" in run]:
            lines.append(f"| {variant} | {len(reasons)} of {len(runs)} failed: {reasons[0]} |" + " |" * len(tasks))
        good = [figures(run) for run in runs if "failed" not in run]
        for stage in dict.fromkeys(name.partition(": ")[0] for run in good for name in run):
            cells = [spread([run[f"{stage}: {task}"] for run in good if f"{stage}: {task}" in run]) for task in tasks]
            lines.append(f"| {variant} | {stage} | {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    """Run what is missing of a recipe's variants, or print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("recipe", type=Path)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--runs", type=Path, default=Path("runs/labels"))
    parser.add_argument("--data", help="mirror of the data sets (default: SELFSENT_DATA)")
    parser.add_argument("--seeds", type=int, default=1, help="so many seeds of every variant, from 0")
    parser.add_argument("--only", nargs="+", metavar="VARIANT", help="run these variants and no others")
    parser.add_argument("--part", default="1/1", metavar="I/N", help="of N parts of the variants, run the I-th")
    parser.add_argument("--table", action="store_true", help="print what the output holds as Markdown, and run nothing")
    options = parser.parse_args()
    if options.table:
        print(table(kept(options.output)))
        return
    warnings.simplefilter("ignore")
    part, parts = map(int, options.part.split("/"))
    runs = options.runs / options.recipe.stem / str(part)
    runs.mkdir(parents=True, exist_ok=True)
    for seed in range(options.seeds):
        for place, variant in enumerate(options.only or read_document(options.recipe).section("variants")):
            key = f"{variant} | seed {seed}"
            if place % parts == part - 1 and key not in kept(options.output):
                row = run_variant(options.recipe, variant, seed, runs, options.data)
                keep(options.output, options.recipe.name, key, row)
                said = "  ".join(f"{name} {score:.2f}" for name, score in figures(row).items())
                print(f"{key}: {row.get('failed', said)}", flush=True)


if __name__ == "__main__":
    main()
