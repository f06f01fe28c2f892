"""Table 3 of BSL in small: what aligns the languages of a small multilingual encoder, and what an English teacher adds.

    python experiments/languages.py --data DIR --rates --output docs/results/quality/multilingual_rates.json
    python experiments/languages.py --data DIR --output docs/results/quality/multilingual.json
    python experiments/languages.py --data DIR --apart --output docs/results/quality/multilingual_apart.json
    python experiments/languages.py --output docs/results/quality/multilingual.json --table

There is no multilingual encoder to start from without a network, so one is pretrained first, by masked words: on every
sentence with its translation behind it (translation language modelling: Conneau and Lample, 2019, "Cross-lingual
Language Model Pretraining"), or with --apart on the sentences alone, in random order. The teacher is that encoder after
English labels. Corpora, and what they leave out, are those of the recipe multilingual. --rates compares settings on
development pairs; all other scores are on tests. What the output holds already is not done again, and several of these
may fill one output (--only), on one thread each.
"""

from __future__ import annotations

import argparse
import json
import random
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from grid import finished, keep, spread

from selfsent import read_corpus
from selfsent.api import train
from selfsent.data.corpus import Corpus
from selfsent.errors import TrainingError
from selfsent.evaluation.suites import evaluate
from selfsent.files import whole_file
from selfsent.papers.outline import shipped
from selfsent.pretraining.pretrain import pretrain
from selfsent.recipes import read_recipe
from selfsent.recipes.parts import placed

RECIPE = shipped()["multilingual"]
PRETRAINING: dict[str, Any] = {
    **{"layers": 2, "hidden_size": 192, "heads": 6, "feed_forward": 768, "vocabulary_size": 20_000},
    **{"batch_size": 48, "max_length": 128, "learning_rate": 2e-3, "steps": 2200},
}
PAIRS = 20_000
"""Pairs drawn of each language: no row sees them all. (There are 28 thousand of Arabic and 101 thousand of French.)"""
SMALL: dict[str, Any] = {"batch_size": 64, "max_length": 64, "dropout": 0.0}
METHODS: dict[str, dict[str, Any]] = {
    "mlm": {"method": "mlm", "learning_rate": 1e-3, "steps": 300},
    "nli": {"method": "softmax", "learning_rate": 1e-3, "steps": 300},
    "stsb": {"method": "cosine", "learning_rate": 1e-3, "scale": 5, "steps": 180},
    "bsl": {"method": "bootstrap", "columns": True, "learning_rate": 3e-3, "predictor_rate": 10.0, "steps": 800},
    "bsl-direct": {"method": "bootstrap", "columns": True, "learning_rate": 3e-3, "width": 0, "steps": 800},
    "bsl-sup": {"method": "bootstrap", "columns": True, "learning_rate": 1e-3, "predictor_rate": 1.0, "steps": 800},
    "distil": {"method": "distil", "learning_rate": 5e-3, "steps": 800},
    "zscore": {"method": "zscore", "sentences": 20_000},
}
VARIANTS = {"mlm": "mBERT, mlm", "nli": "mBERT-nli-stsb", "stsb": "mBERT-nli-stsb"}
"""The variant of the recipe that has the stage; BSL-sup for all others."""
TEACHER = ("nli", "stsb")
TRAINED: dict[str, tuple[str, ...]] = {
    "mean pooling": (),
    "mlm": ("mlm",),
    "nli-stsb": TEACHER,
    "BSL-uns": ("bsl",),
    "BSL-uns, no predictor": ("bsl-direct",),
    "distil": ("distil",),
    "BSL-sup": ("distil", "bsl-sup"),
}
ROWS = TRAINED | {f"{row}, z-scored": (*stages, "zscore") for row, stages in TRAINED.items()}
"""The stages of each row."""
SEEDED = tuple(row for row in ROWS if row.startswith(("BSL", "distil")))
RATE_STEPS = 200
RATES: dict[str, dict[str, dict[str, Any]]] = {
    "bsl": {
        "1e-3": {"learning_rate": 1e-3, "predictor_rate": 1.0},
        "3e-3": {"learning_rate": 3e-3, "predictor_rate": 1.0},
        "3e-3, predictor at 10 times": {"learning_rate": 3e-3, "predictor_rate": 10.0},
        "1e-3, momentum 0.99": {"learning_rate": 1e-3, "predictor_rate": 1.0, "momentum": 0.99},
    },
    "bsl-direct": {
        "1e-3": {"learning_rate": 1e-3},
        "3e-3": {"learning_rate": 3e-3},
        "1e-3, momentum 0.99": {"learning_rate": 1e-3, "momentum": 0.99},
        "1e-3, momentum 0.9999": {"learning_rate": 1e-3, "momentum": 0.9999},
    },
    "distil": {"2e-3": {"learning_rate": 2e-3}, "5e-3": {"learning_rate": 5e-3}},
    "distil, bsl": {
        "1e-3": {"learning_rate": 1e-3, "predictor_rate": 1.0},
        "3e-3": {"learning_rate": 3e-3, "predictor_rate": 1.0},
        "3e-3, predictor at 10 times": {"learning_rate": 3e-3, "predictor_rate": 10.0},
    },
    "distil, bsl-direct": {"1e-3": {"learning_rate": 1e-3}, "3e-3": {"learning_rate": 3e-3}},
}
STS17 = tuple(f"sts17-{pair}" for pair in ("en-en", "es-es", "ar-ar", "en-ar", "en-tr", "es-en"))
TESTS = (*STS17, *(f"stsb-en-{other}" for other in ("de", "es", "fr")))
TESTS += tuple(f"tatoeba-{other}" for other in ("ar", "de", "es", "fr", "tr"))
DEVELOPMENT = ("stsb-en-de-dev", "stsb-en-es-dev", "stsb-en-fr-dev")


class Trials:
    """Trains and scores, and keeps what came out."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.runs: Path = options.runs / ("apart" if options.apart else "beside")

    def reading(self, stage: str) -> tuple[Any, dict[str, Any]]:
        """What a stage of the recipe reads, and how."""
        recipe = read_recipe(RECIPE, VARIANTS.get(stage, "BSL-sup"), "bundled-raw")
        found = next(each for each in recipe.stages if each.name == stage)
        reading, data = dict(found.reading), self.options.data
        if "without" in reading:
            reading["without"] = placed(reading["without"], data)
        return placed(found.source, data), reading

    def corpus(self, stage: str) -> Corpus:
        """The corpus of a stage of the recipe."""
        source, reading = self.reading(stage)
        return read_corpus(source, **reading)

    def languages(self) -> list[Corpus]:
        """The pairs of each language."""
        sources, reading = self.reading("bsl")
        return [read_corpus([source], **reading) for source in sources]

    def base(self) -> Path:
        """The multilingual encoder, pretrained if it is not there."""
        directory = self.runs / "base"
        if not (directory / "model").is_dir():
            draw = random.Random(0)
            if self.options.apart:
                texts = self.corpus("mlm").texts()
            else:
                pairs = self.corpus("bsl")
                columns = [pairs.texts(column=name) for name in pairs.text_columns]
                texts = [" ".join(draw.sample(pair, 2)) for pair in zip(*columns, strict=True)]
            draw.shuffle(texts)
            pretrain(texts, directory, resume=directory.exists(), **PRETRAINING)
        return directory / "model"

    def drawn(self, stage: str) -> Corpus:
        """As many rows of a stage's corpus as can be used, drawn at random; pairs as sentences where one is enough."""
        if stage in ("nli", "stsb"):
            return self.corpus(stage)
        file = self.runs / "pairs.parquet"
        if not file.is_file():
            draw = np.random.default_rng(0)
            columns: dict[str, list[str]] = {"first": [], "second": []}
            for corpus in self.languages():
                rows = np.sort(draw.permutation(len(corpus))[:PAIRS])
                for texts, name in zip(columns.values(), corpus.text_columns, strict=True):
                    texts += corpus.texts(rows, name)
            with whole_file(file) as temporary:
                pq.write_table(pa.table(columns), temporary)
        return read_corpus(file, text_columns=("first", "second"), stack=stage in ("mlm", "zscore"))

    def stage(self, name: str, base: Path, place: Path, seed: int, **changes: Any) -> int:
        """Train one stage; the steps it took."""
        settings = {**SMALL, **METHODS[name], **changes, "seed": seed}
        if name == "distil":
            settings["teacher"] = str(self.train(TEACHER, 0))
        method = settings.pop("method")
        run = train(self.drawn(name), method, base, place, overwrite=True, checkpoint_every=10**9, **settings)
        return int(run.record["steps"])

    def train(self, stages: tuple[str, ...], seed: int) -> Path:
        """Train the stages, each from the model of the one before, where that is not done yet; the last model."""
        if not stages:
            return self.base()
        place = self.runs / "-".join([*stages, str(seed)])
        if not (place / "model").is_dir():
            self.stage(stages[-1], self.train(stages[:-1], seed), place, seed)
        return place / "model"

    def score(self, model: Path, tasks: tuple[str, ...]) -> dict[str, Any]:
        """Scores with their intervals."""
        result = evaluate(str(model), task=list(tasks), data=self.options.data)
        return {"scores": {name: [score.score, score.low, score.high] for name, score in result.scores.items()}}

    def row(self, row: str, seed: int) -> dict[str, Any]:
        """Train the stages of a row, and score the last model on the tests."""
        return self.score(self.train(ROWS[row], seed), TESTS)

    def rate(self, stages: str, name: str, changes: dict[str, Any]) -> dict[str, Any]:
        """Train the last of the stages with other settings, for fewer steps, and score it on development pairs."""
        *before, last = stages.split(", ")
        place = self.runs / f"rate {stages} {name}"
        self.stage(last, self.train(tuple(before), 0), place, 0, **{"steps": RATE_STEPS, **changes})
        return self.score(place / "model", DEVELOPMENT)

    def keep(self, key: str, make: Callable[[], dict[str, Any]]) -> None:
        """Make an entry unless it is there; one that goes wrong is kept with its reason."""
        if key in finished(self.options.output):
            return
        try:
            row = make()
        except TrainingError as error:
            row = {"failed": str(error)}
        keep(self.options.output, RECIPE.name, key, row)
        print(key, json.dumps(row), flush=True)


GROUPS = {
    "STS17 in one language": STS17[:3],
    "STS17 across": STS17[3:],
    "STS-B across": tuple(task for task in TESTS if task.startswith("stsb")),
    "Tatoeba": tuple(task for task in TESTS if task.startswith("tatoeba")),
}


def table(done: dict[str, Any]) -> str:
    """Rows over groups of tasks and over tasks as Markdown: means over the seeds, with their standard deviations."""
    columns = {**GROUPS, **{task: (task,) for task in TESTS}}
    lines = ["| row | seeds | " + " | ".join(columns) + " |", "|---|--:|" + "--:|" * len(columns)]
    for row in ROWS:
        runs = [done[key]["scores"] for key in done if key.startswith(f"{row} | ") and "scores" in done[key]]
        if not runs:
            continue
        cells = []
        for tasks in columns.values():
            values = [float(np.mean([run[task][0] for task in tasks])) for run in runs]
            cells.append(spread(values))
        lines.append(f"| {row} | {len(runs)} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main() -> None:
    """Train, score and write what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", metavar="DIR", help="mirror of the data sets")
    parser.add_argument("--runs", type=Path, default=Path("runs/languages"), metavar="DIR")
    parser.add_argument("--output", type=Path, required=True, metavar="FILE")
    parser.add_argument("--apart", action="store_true", help="pretrain without translations beside each other")
    parser.add_argument("--seeds", type=int, default=3, metavar="N", help="of the rows that claims are made on")
    parser.add_argument("--only", nargs="+", metavar="ROW", help="these rows (with --rates, these stages)")
    parser.add_argument("--rates", action="store_true", help="compare settings on development pairs")
    parser.add_argument("--table", action="store_true", help="print what the output holds")
    options = parser.parse_args()
    if options.table:
        print(table(finished(options.output)))
        return
    warnings.simplefilter("ignore", UserWarning)
    trials = Trials(options)
    if options.rates:
        for stages in options.only or RATES:
            for name, changes in RATES[stages].items():
                trials.keep(f"{stages} {name} | seed 0", partial(trials.rate, stages, name, changes))
        return
    for seed in range(options.seeds):
        for row in options.only or ROWS:
            if seed == 0 or row in SEEDED:
                trials.keep(f"{row} | seed {seed}", partial(trials.row, row, seed))


if __name__ == "__main__":
    main()
