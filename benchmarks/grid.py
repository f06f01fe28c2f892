"""Train and score a grid of settings, one table of a recipe file; what is done already is not done again.

    python benchmarks/grid.py recipes/demo_dev.yaml --output docs/results/demo_dev.json

The recipe names a corpus, what all rows share, and the rows; each row is trained for each seed and scored on the
recipe's tasks. Files of the corpus are looked for in --text; a base may be a name that --base gives a directory to.
`context: dev` scores on documents kept apart for choosing settings, `context: test` on those that
`selfsent evaluate --documents` uses. A row without a method is the untrained base.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from selfsent import read_corpus
from selfsent.api import HoldOut, scored
from selfsent.corpus import Corpus
from selfsent.encoder import load_encoder
from selfsent.evaluation.context import ContextTask
from selfsent.evaluation.tasks import evaluate
from selfsent.files import write_json
from selfsent.methods import get_method
from selfsent.recipes import read_document
from selfsent.settings import parse_duration
from selfsent.training.fit import asked, fit, make_plan
from selfsent.training.loop import Habits
from selfsent.training.run_directory import RunDirectory, versions


def open_corpus(recipe: dict[str, Any], text: Path) -> tuple[Corpus, HoldOut]:
    """The recipe's corpus, thinned to so many sentences where it says so, and its hold-out."""
    source = recipe["corpus"]
    corpus = read_corpus(source if isinstance(source, str) else [text / name for name in source])
    hold_out = HoldOut.of(corpus, dev=recipe.get("context") == "dev", notice=print)
    return corpus, hold_out.thinned(recipe.get("sentences"))


def train_row(
    row: dict[str, Any], seed: int, corpus: Corpus, rows: np.ndarray, runs: Path
) -> tuple[str, dict[str, Any]]:
    """Train one row; the model's directory and what is worth keeping of the run."""
    row = dict(row)
    if "method" not in row:
        return row["base"], {}
    if "budget" in row:
        row = {**row, "budget": parse_duration(str(row["budget"]))}
        row.pop("steps", None)
    method, base = row.pop("method"), row.pop("base")
    plan = make_plan(
        get_method(method),
        base,
        row.pop("preset", None),
        row.pop("pooling", None),
        row.pop("dropout", None),
        seed=seed,
        **row,
    )
    directory = RunDirectory(runs)
    directory.check(resume=False, overwrite=True)
    directory.match(asked(plan, corpus, rows))
    directory.begin()
    start = time.perf_counter()
    fit(corpus, rows, plan, directory, Habits(checkpoint_every=10**9), notice=print)
    losses = [entry["loss"] for entry in directory.metrics() if "loss" in entry]
    kept = {"steps": directory.record["steps"], "seconds": round(time.perf_counter() - start, 1), "loss": losses[-1:]}
    return str(directory.model), kept


def score_row(
    model: str, recipe: dict[str, Any], corpus: Corpus, hold_out: HoldOut, data: str | None
) -> dict[str, Any]:
    """The scores of a model on the recipe's tasks, context last."""
    encoder = scored(load_encoder(model), model)
    scores: dict[str, Any] = {}
    if recipe.get("tasks"):
        result = evaluate(encoder, task=recipe["tasks"], data=data)
        scores = {name: [score.score, score.low, score.high] for name, score in result.scores.items()}
    if recipe.get("context"):
        held = hold_out.dev if recipe["context"] == "dev" else hold_out.test
        task = ContextTask(corpus, held)
        score = task.score(encoder)
        scores["context"] = [score.score, score.low, score.high]
        scores["context of TF-IDF"] = [task.tfidf.score, task.tfidf.low, task.tfidf.high]
    return scores


def main() -> None:
    """Run what is missing of a recipe and print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("recipe", type=Path)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--runs", type=Path, default=Path("runs/grid"))
    parser.add_argument("--data", help="mirror of the evaluation data sets (default: SELFSENT_DATA)")
    parser.add_argument("--text", type=Path, default=Path(), metavar="DIR", help="where the files of the corpus are")
    parser.add_argument("--base", action="append", default=[], metavar="NAME=DIR", help="the directory of a named base")
    options = parser.parse_args()
    bases = dict(given.split("=", 1) for given in options.base)
    warnings.simplefilter("ignore")
    recipe = read_document(options.recipe)
    done: dict[str, Any] = json.loads(options.output.read_text())["rows"] if options.output.is_file() else {}
    corpus, hold_out = open_corpus(recipe, options.text)
    recipe.setdefault("seeds", [0])
    for seed in recipe["seeds"]:
        for title, row in recipe["rows"].items():
            key = f"{title} | seed {seed}"
            if key in done or (seed != recipe["seeds"][0] and "method" not in (row or {})):
                continue  # an untrained base is the same with any seed
            settings = {**(recipe.get("all", {}) if row and "method" in row else {}), **(row or {})}
            name = settings.get("base", "bundled")
            placed = {**settings, "base": bases.get(name, name)}
            model, kept = train_row(placed, seed, corpus, hold_out.train, options.runs / options.recipe.stem)
            done[key] = {**settings, **kept, "scores": score_row(model, recipe, corpus, hold_out, options.data)}
            write_json(options.output, {"recipe": options.recipe.name, "versions": versions(), "rows": done})
            figures = "  ".join(f"{task} {score[0]:.2f}" for task, score in done[key]["scores"].items())
            print(f"{key}: {figures}", flush=True)


if __name__ == "__main__":
    main()
