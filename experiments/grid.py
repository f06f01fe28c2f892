"""Train and score a grid of settings, one table of a recipe file; what is done already is not done again.

    python experiments/grid.py experiments/demo_dev.yaml --output docs/results/quality/demo_dev.json
    python experiments/grid.py experiments/demo_dev.yaml --output docs/results/quality/demo_dev.json --table

The recipe names a corpus, what all rows share, and the rows; each row is trained for each seed and scored on the
recipe's tasks. A run that goes wrong is a row with its reason. --table prints what the output holds as Markdown.
Files of the corpus are looked for in --text; a base may be a name that --base gives a directory to. `sentences: N`
thins the training rows at random; with `balanced: true` each file of the corpus gives as many, or all it has. A row
may have a smaller number of `sentences` of its own. Instead of one
`corpus` a recipe may have several `corpora` by name, and instead of one base several `bases`: every row is then done
for each of them. Tasks are those of `selfsent evaluate` and the labelled domains of experiments/domain.py; `tasks_of`
adds some for single corpora. With `fast: true` scores are computed in bfloat16 where the processor is fast at it.
`context: dev` scores on documents kept apart for choosing settings, `context: test` on those that `selfsent evaluate
--documents` uses. A row without a method is the untrained base; it and what takes no steps are the same with any
seed, and done once.

Several of these may fill one output side by side, each with a part of the rows (--part 1/2, --part 2/2). Budgets then
had better be --processor-time, on one thread each (OMP_NUM_THREADS=1), so that no run takes another one's time.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))  # what benchmarks and experiments share
from domain import DOMAIN, score_domain
from harness import Row, fill, parser_of, spread

from selfsent import read_corpus
from selfsent.data.corpus import Corpus
from selfsent.errors import SettingsError, TrainingError
from selfsent.evaluation.hold_out import HoldOut
from selfsent.evaluation.suites import evaluate
from selfsent.evaluation.tasks.context import ContextTask
from selfsent.methods import get_method
from selfsent.models.encoder import Encoder
from selfsent.models.heads.options import Pooling
from selfsent.models.loading import load_encoder
from selfsent.models.precision import inference_device, quicken, resolve_precision
from selfsent.progress import Shown
from selfsent.recipes import read_document
from selfsent.scorers.load_scorer import scorer_of
from selfsent.settings import DURATIONS, parse_duration
from selfsent.training.fit import fit
from selfsent.training.plan import Plan, config_of
from selfsent.training.prepared import PreparedRun
from selfsent.training.run_config import RunConfig
from selfsent.training.run_directory import RunDirectory

STS = ("sts12", "sts13", "sts14", "sts15")


def open_corpus(recipe: dict[str, Any], source: str | list[str], text: Path) -> tuple[Corpus, HoldOut]:
    """A corpus of the recipe, thinned to so many sentences where it says so, and its hold-out."""
    corpus = read_corpus(source if isinstance(source, str) else [text / name for name in source])
    if corpus.documents is None:
        return corpus, HoldOut(np.arange(len(corpus)), None, None).thinned(recipe.get("sentences"))
    hold_out = HoldOut.of(corpus, dev=recipe.get("context") == "dev")
    if not recipe.get("balanced"):
        return corpus, hold_out.thinned(recipe.get("sentences"))
    sizes = [len(read_corpus(text / name)) for name in source]
    if sum(sizes) != len(corpus):
        raise SystemExit("the files of the corpus share sentences, so that rows cannot be told apart by file")
    return corpus, replace(hold_out, train=balanced(hold_out.train, sizes, recipe["sentences"]))


def balanced(rows: np.ndarray, sizes: list[int], count: int) -> np.ndarray:
    """So many rows, drawn at random: an equal share from each file, and more from the others where one has less.

    Args:
        rows: (n,) those to draw from.
        sizes: rows of each file of the corpus, in order.
        count: how many.
    """
    drawn = np.random.default_rng(0).permutation(rows)
    file = np.searchsorted(np.cumsum(sizes), drawn, side="right")
    place = np.empty_like(file)  # of a row among the drawn rows of its file
    for number in range(len(sizes)):
        place[file == number] = np.arange(np.count_nonzero(file == number))
    return np.sort(drawn[np.argsort(place, kind="stable")[:count]])


def train_row(
    row: dict[str, Any], seed: int, corpus: Corpus, rows: np.ndarray, runs: Path
) -> tuple[str, dict[str, Any]]:
    """Train one row; the model's directory and what is worth keeping of the run.

    Args:
        row: its settings.
        seed: of everything random.
        corpus: the sentences.
        rows: (sentences,) those of them to train on.
        runs: the run directory, which is begun anew.
    """
    row = dict(row)
    if "method" not in row:
        return row["base"], {}
    if "budget" in row:
        row = {**row, "budget": parse_duration(str(row["budget"]))}
    method, base = row.pop("method"), row.pop("base")
    plan = Plan.resolve(get_method(method), base, seed=seed, **row)
    directory = RunDirectory(runs)
    directory.check(resume=False, overwrite=True)
    directory.match(config_of(plan, corpus, rows))
    start = time.perf_counter()
    fit(PreparedRun.of(corpus, plan.on(corpus), rows), directory, RunConfig(checkpoint_every=10**9), Shown())
    losses = [entry["loss"] for entry in directory.metrics() if "loss" in entry]
    seconds = round(time.perf_counter() - start, 1)
    return str(directory.model), {"steps": directory.record["steps"], "seconds": seconds, "loss": losses[-1:]}


def score_row(
    model: str, pooling: Pooling | None, recipe: dict[str, Any], tasks: list[str], context: ContextTask | None
) -> dict[str, Any]:
    """The scores of a model on these tasks, context last; `pooling` instead of its own, where one is given."""
    encoder = quicken(load_encoder(model, pooling), fast=recipe.get("fast", False), int8=False)
    scores = score_tasks(encoder, tasks, recipe.get("data"))
    if context is not None:
        score, tfidf = context.score(scorer_of(encoder, model)), context.lexical["tfidf"]
        scores["context"] = [score.score, score.low, score.high]
        scores["context of TF-IDF"] = [tfidf.score, tfidf.low, tfidf.high]
    return scores


def score_tasks(model: Encoder, tasks: list[str], data: str | None) -> dict[str, Any]:
    """Score and interval of each task."""
    encoder = scorer_of(model, "the encoder")
    scores: dict[str, Any] = {}
    if general := [task for task in tasks if task not in DOMAIN]:
        result = evaluate(encoder, task=general, data=data)
        scores = {name: [score.score, score.low, score.high] for name, score in result.scores.items()}
    return scores | {task: score_domain(task, encoder, data) for task in tasks if task in DOMAIN}


def table(rows: dict[str, Any]) -> str:
    """The rows as Markdown: mean and, over several seeds, standard deviation; the mean of STS12 to 15 as a column."""
    columns = list(dict.fromkeys(task for row in rows.values() for task in figures(row)))
    lines = [f"| | steps | {' | '.join(columns)} |", "|---|--:|" + "--:|" * len(columns)]
    for title, runs in titled(rows).items():
        good = [run for run in runs if "failed" not in run]
        lines += failure(title, runs, len(columns))
        if good:
            steps = f"{np.mean([run['steps'] for run in good]):.0f}" if "steps" in good[0] else ""
            cells = [spread([figures(run)[task] for run in good if task in figures(run)]) for task in columns]
            lines.append(f"| {title} | {steps} | {' | '.join(cells)} |")
    return "\n".join(lines)


def titled(rows: dict[str, Row]) -> dict[str, list[Row]]:
    """The runs of each title, whatever their seed."""
    found: dict[str, list[Row]] = {}
    for key, row in rows.items():
        found.setdefault(key.rpartition(" | seed ")[0].replace(" | ", ", "), []).append(row)
    return found


def failure(title: str, runs: list[Row], columns: int) -> list[str]:
    """A line of the table that says why runs failed, where any did."""
    reasons = [run["failed"] for run in runs if "failed" in run]
    return [f"| {title} | {len(reasons)} of {len(runs)} failed: {reasons[0]} |" + " |" * columns] if reasons else []


def figures(row: dict[str, Any]) -> dict[str, float]:
    """The score of each task, and the mean of STS12 to 15."""
    found = {task: float(score[0]) for task, score in row.get("scores", {}).items()}
    if set(STS) <= found.keys():
        found["mean of sts12-15"] = float(np.mean([found[task] for task in STS]))
    return found


def merged(shared: dict[str, Any], row: dict[str, Any]) -> dict[str, Any]:
    """A row's settings over those that all share; how long one trains is said by steps, epochs or budget."""
    if "method" not in row:
        return dict(row)
    left = set(DURATIONS) if row.keys() & set(DURATIONS) else set()
    return {**{name: value for name, value in shared.items() if name not in left}, **row}


def is_same_with_any_seed(row: dict[str, Any]) -> bool:
    """Whether a row leaves nothing to chance."""
    return "method" not in row or get_method(row["method"]).closed_form


def context_task(recipe: dict[str, Any], corpus: Corpus, hold_out: HoldOut) -> ContextTask | None:
    """The label-free task on the documents that the recipe names, where it does and where enough can be kept apart."""
    held = {"dev": hold_out.dev, "test": hold_out.test}.get(recipe.get("context", ""))
    return None if held is None else ContextTask(corpus, held)


def runs_of(options: argparse.Namespace, runs: Path) -> Iterator[tuple[str, Callable[[], Row]]]:
    """The key of every row for each corpus, seed and base, and what trains and scores it."""
    recipe: dict[str, Any] = {"seeds": [0], "data": options.data, **read_document(options.recipe)}
    bases = dict(given.split("=", 1) for given in options.base)
    for name, source in recipe.get("corpora", {"": recipe.get("corpus")}).items():
        corpus, hold_out = open_corpus(recipe, source, options.text)
        context = context_task(recipe, corpus, hold_out)
        tasks = [*recipe.get("tasks", []), *recipe.get("tasks_of", {}).get(name, [])]

        def run(base: str | None, title: str, seed: int) -> Row:
            row = recipe["rows"][title] or {}
            settings = merged(recipe.get("all", {}), row)
            settings = {**settings, "base": base or settings.get("base", "bundled-raw")}
            if "method" in row:
                settings["precision"] = resolve_precision(settings.get("precision", "auto"), inference_device())
            placed = {**settings, "base": bases.get(settings["base"], settings["base"])}
            rows = hold_out.thinned(placed.pop("sentences", None)).train  # noqa: B023 — run before the next corpus
            pooling = None if "method" in settings else settings.get("pooling")  # a trained model has its own
            try:
                model, about = train_row(placed, seed, corpus, rows, runs)  # noqa: B023
                return {**settings, **about, "scores": score_row(model, pooling, recipe, tasks, context)}  # noqa: B023
            except (TrainingError, SettingsError) as error:
                return {**settings, "failed": str(error).partition(": ")[0]}  # what follows is for who can resume

        for seed, base, title in product(recipe["seeds"], recipe.get("bases", [None]), recipe["rows"]):
            if seed == recipe["seeds"][0] or not is_same_with_any_seed(recipe["rows"][title] or {}):
                key = f"{' | '.join(part for part in (name, base, title) if part)} | seed {seed}"
                yield key, partial(run, base, title, seed)


def main() -> None:
    """Run what is missing of a recipe, or print the table."""
    parser = parser_of(__doc__, Path("runs/grid"))
    parser.add_argument("--text", type=Path, default=Path(), metavar="DIR", help="where the files of the corpus are")
    parser.add_argument("--base", action="append", default=[], metavar="NAME=DIR", help="the directory of a named base")
    parser.add_argument("--processor-time", action="store_true", help="budgets count the processor's time")
    options = parser.parse_args()
    if options.processor_time:
        time.perf_counter = time.process_time
    fill(options, lambda runs: runs_of(options, runs), figures, table)


if __name__ == "__main__":
    main()
