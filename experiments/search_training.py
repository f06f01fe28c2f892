"""What training on the documents of a search adds to it: views, mined negatives and a list as a teacher.

    python experiments/search_training.py --output docs/results/quality/search_training.json --base bundled
    python experiments/search_training.py --output docs/results/quality/search_training.json --base bundled --tests
    python experiments/search_training.py --output docs/results/quality/search_training.json --table

The sets are those of `retrieval/` in the data mirror. Every way of `WAYS` is trained on the documents of a set, without
its queries, and scored by nDCG@10 x 100 of its judged queries, by the cosine and as `search` ranks (with words). Rate
and passes are chosen on the train and dev queries of counsel and scitldr (`GRIDS`): the largest mean gain over the
untrained base, as `search` ranks. `--tests` trains each way with what was chosen, for three seeds, and scores the
test queries of all four sets, once. Transformers read and learn 128 tokens. Rows that are there are not computed again;
several of these may fill one output side by side, each with a part of the ways (--ways). `--base minilm=DIR` gives a
directory a name.
"""

from __future__ import annotations

import argparse
import os
import shutil
import time
import warnings
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from grid import alone_at

from selfsent import read_corpus, train
from selfsent.data.corpus import Corpus
from selfsent.evaluation.tasks.beir import read_task
from selfsent.files import read_json, write_json
from selfsent.models.bases import resolve
from selfsent.models.encoder import Encoder
from selfsent.models.loading import load_encoder
from selfsent.models.saved import is_static
from selfsent.scorers.lexical import Hybrid
from selfsent.scorers.load_scorer import scorer_of
from selfsent.training.run_directory import versions

CHOSEN_BY, SETS = ("counsel", "scitldr"), ("cranfield", "cisi", "counsel", "scitldr")
LONGEST, RESAMPLES = 128, 2000
WAYS: dict[str, dict[str, Any]] = {
    "neighbours": {},
    "document": {"positives": "document"},
    "words of a sentence": {"positives": "document", "crop_words": 1.0},
    "title": {"positives": "title"},
    "title,document": {"positives": "title,document"},
    "document,neighbours": {"positives": "document,neighbours"},
    "title,document, not whitened": {"positives": "title,document", "whiten": 0.0},
    "title,document, mined": {"positives": "title,document", "mined": 2},
    "title,document, mined by words": {"positives": "title,document", "mined": 2, "retriever": "words"},
    "title,document, list": {"positives": "title,document", "mined": 4, "teacher": "search", "teacher_scale": 8.0},
    "title,document,neighbours": {"positives": "title,document,neighbours"},
    "whitened in part": {"method": "whitening", "strength": 0.25, "ridge": 0.1},
}
"""Options of each way, beside those of `neighbours`; whitening has no steps, and ignores the rate and the passes."""
GRIDS = {"table": ((0.004, 0.016), (3,)), "small": ((5e-5, 5e-4), (1,)), "strong": ((5e-6, 2e-5), (1,))}
"""Rates and passes, by kind of base."""


def kept(output: Path) -> list[dict[str, Any]]:
    """The rows that the output holds."""
    found: list[dict[str, Any]] = read_json(output).get("rows", []) if output.is_file() else []
    return found


def keep(output: Path, row: dict[str, Any]) -> None:
    """Add a row to the output, which others may be filling too."""
    with alone_at(output):
        write_json(output, {"versions": versions(), "rows": [*kept(output), row]})


def kind_of(base: str) -> str:
    """The grid of a base."""
    return "table" if is_static(resolve(base)) else "small" if base.startswith("bundled") else "strong"


def corpus_of(folder: Path) -> Corpus:
    """The documents of a set, title first."""
    rows = pq.read_table(folder / "corpus.parquet").to_pylist()
    return read_corpus(rows, text_column=["title", "text"], split_sentences=True)


def load(model: str | Path) -> Encoder:
    """An encoder that reads no more than `LONGEST` tokens, unless it is a table."""
    encoder = load_encoder(str(model))
    if not encoder.is_static:
        encoder.tokenizer.model_max_length = min(LONGEST, encoder.tokenizer.model_max_length)
    return encoder


def measured(model: str | Path, folder: Path, split: str) -> dict[str, np.ndarray]:
    """nDCG@10 x 100 of each query, by the cosine and with words."""
    encoder, splits = scorer_of(load(model), "model"), ("train", "dev") if split == "dev" else (split,)
    found: dict[str, list[float]] = {"cosine": [], "words": []}
    for task in (read_task(folder, split=each) for each in splits):
        for name, one in (("cosine", encoder), ("words", Hybrid(encoder))):
            found[name] += [100 * metrics[0] for metrics in task._measured(one)]
    return {name: np.array(values) for name, values in found.items()}


def trial(base: str, folder: Path, way: str, rate: float, epochs: float, seed: int, runs: Path) -> Path:
    """The model of one way, trained."""
    given = dict(WAYS[way])
    corpus, place = corpus_of(folder), runs / f"{os.getpid()}"
    if kind_of(base) != "table":
        given["max_length"] = LONGEST
    given |= {"learning_rate": rate, "epochs": epochs, "seed": seed, "precision": "float32"}
    method = given.pop("method", "neighbours")
    train(corpus, method, base, place, hold_out=0, overwrite=True, quiet=True, **given)
    return place


def row_of(row: dict[str, Any], base: str, data: Path, runs: Path, before: dict[str, np.ndarray]) -> dict[str, Any]:
    """A row with its scores, and its gains over the base with 95 % intervals over queries."""
    start, folder = time.process_time(), data / row["set"]
    place = trial(base, folder, row["way"], row["rate"], row["epochs"], row["seed"], runs)
    seconds = round(time.process_time() - start, 1)
    found = {"seconds": seconds}
    for name, after in measured(place / "model", folder, row["split"]).items():
        gains = after - before[name]
        drawn = np.random.default_rng(0).integers(0, len(gains), (RESAMPLES, len(gains)))
        ends = np.percentile(gains[drawn].mean(1), [2.5, 97.5])
        found[name] = round(float(after.mean()), 3)
        found[f"{name}_gain"] = [round(float(value), 3) for value in (gains.mean(), *ends)]
    shutil.rmtree(place)
    return {**row, **found}


def chosen(rows: list[dict[str, Any]], base: str, way: str) -> tuple[float, float] | None:
    """The rate and passes with the largest mean gain on the dev queries, with words; None before both sets are done."""
    gains: dict[tuple[float, float], list[float]] = {}
    for row in rows:
        if (row["base"], row["way"], row["split"]) == (base, way, "dev") and "words_gain" in row:
            gains.setdefault((row["rate"], row["epochs"]), []).append(row["words_gain"][0])
    done = {setting: np.mean(found) for setting, found in gains.items() if len(found) == len(CHOSEN_BY)}
    return max(done, key=lambda setting: done[setting]) if done else None


def wanted(
    base: str, grid: Any, ways: list[str], tests: bool, seeds: range, rows: list[dict[str, Any]]
) -> Iterator[dict[str, Any]]:
    """The rows to compute."""
    for way, name in product(ways, SETS if tests else CHOSEN_BY):
        settings = [chosen(rows, base, way)] if tests else list(product(*grid))
        for (rate, epochs), seed in product(filter(None, settings), seeds):
            split = "test" if tests else "dev"
            yield {"base": base, "set": name, "way": way, "split": split, "rate": rate, "epochs": epochs, "seed": seed}


def table(rows: list[dict[str, Any]], split: str) -> str:
    """The rows of a split as Markdown: the mean over seeds of each way with what was chosen."""
    sets = CHOSEN_BY if split == "dev" else SETS
    columns = " | ".join(f"{name}, cosine | with words" for name in sets)
    lines = [f"| base | way | rate, passes | {columns} | mean gain with words |"]
    lines.append("|---|---|---|" + "--:|" * (2 * len(sets) + 1))
    for base, way in dict.fromkeys((row["base"], row["way"]) for row in rows):
        best = chosen(rows, base, way)
        cells, gains = [], []
        for name in sets:
            found = [
                row
                for row in rows
                if (row["base"], row["way"], row["set"], row["split"]) == (base, way, name, split)
                and (way == "untrained" or (row["rate"], row["epochs"]) == best)
            ]
            for measure in ("cosine", "words"):
                cells.append(f"{np.mean([row[measure] for row in found]):.1f}" if found else "")
                if found and way != "untrained":
                    gain = np.mean([row[f"{measure}_gain"][0] for row in found])
                    cells[-1] += f" ({gain:+.1f})"
                    gains += [gain] if measure == "words" else []
        setting = f"{best[0]:g}, {best[1]:g}" if best else ""
        mean = f"{np.mean(gains):+.2f}" if gains else ""
        if any(cells):
            lines.append(f"| {' | '.join([base, way, setting, *cells, mean])} |")
    return "\n".join(lines)


def main() -> None:
    """Fill the output, or print it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("SELFSENT_DATA", ".")) / "retrieval")
    parser.add_argument("--runs", type=Path, default=Path("runs/search_training"))
    parser.add_argument("--base", default="bundled", help="a base, or NAME=DIRECTORY")
    parser.add_argument("--ways", nargs="+", default=list(WAYS), choices=list(WAYS))
    parser.add_argument("--rates", nargs="+", type=float, help="in place of those of the grid")
    parser.add_argument("--epochs", nargs="+", type=float, help="in place of those of the grid")
    parser.add_argument("--tests", action="store_true")
    parser.add_argument("--seeds", type=int, default=3, help="of --tests")
    parser.add_argument("--table", action="store_true")
    options = parser.parse_args()
    warnings.filterwarnings("ignore")
    if options.table:
        print("\n\n".join(table(kept(options.output), split) for split in ("dev", "test")))
        return
    name, _, directory = options.base.partition("=")
    base, split = directory or name, "test" if options.tests else "dev"
    before, grid = dict[str, dict[str, np.ndarray]](), GRIDS[kind_of(base)]
    grid = (options.rates or grid[0], options.epochs or grid[1])
    seeds = range(options.seeds if options.tests else 1)
    for row in wanted(name, grid, options.ways, options.tests, seeds, kept(options.output)):
        known = kept(options.output)
        if any(row.items() <= other.items() for other in known):
            continue
        if row["set"] not in before:
            before[row["set"]] = measured(base, options.data / row["set"], split)
            untrained = {"base": name, "set": row["set"], "way": "untrained", "split": split}
            if not any(untrained.items() <= other.items() for other in known):
                scores = {each: round(float(values.mean()), 3) for each, values in before[row["set"]].items()}
                keep(options.output, untrained | scores)
        done = row_of(row, base, options.data, options.runs, before[row["set"]])
        keep(options.output, done)
        shown = ("set", "way", "rate", "epochs", "seed", "words_gain", "cosine_gain")
        print({each: done[each] for each in shown}, flush=True)


if __name__ == "__main__":
    main()
