"""Table 3 of BSL in small: what aligns the languages of a small multilingual encoder, and what an English teacher adds.

    python benchmarks/languages.py --data DIR --rates --output docs/results/multilingual_rates.json --processor-time
    python benchmarks/languages.py --data DIR --output docs/results/multilingual.json --processor-time
    python benchmarks/languages.py --output docs/results/multilingual.json --table

There is no multilingual encoder to start from without a network, so one is pretrained first, on the sentences of the
pairs in random order: it sees no sentence beside its translation. The teacher is the same encoder after English labels.
Corpora, and what they leave out, are those of recipes/multilingual.yaml. --rates compares rates on development pairs;
all other scores are on tests. What the output holds already is not done again.
"""

from __future__ import annotations

import argparse
import json
import random
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from selfsent import read_corpus
from selfsent.api import train
from selfsent.corpus import Corpus
from selfsent.errors import TrainingError
from selfsent.evaluation.tasks import evaluate
from selfsent.files import whole_file, write_json
from selfsent.pretraining.pretrain import pretrain
from selfsent.recipes import read_recipe
from selfsent.recipes.parts import placed
from selfsent.training.run_directory import versions

RECIPE = Path(__file__).parents[1] / "recipes" / "multilingual.yaml"
PRETRAINING: dict[str, Any] = {
    **{"layers": 1, "hidden_size": 64, "heads": 4, "feed_forward": 256, "vocabulary_size": 24_000},
    **{"batch_size": 16, "max_length": 128, "learning_rate": 3e-3, "budget": 25},
}
BUDGET, PAIRS = 20.0, 100_000
"""Seconds of a row, and pairs drawn for it: it sees fewer."""
SMALL: dict[str, Any] = {"batch_size": 64, "max_length": 64, "dropout": 0.0}
METHODS: dict[str, dict[str, Any]] = {
    "mlm": {"method": "mlm", "learning_rate": 1e-3},
    "nli": {"method": "softmax", "learning_rate": 2e-3},
    "stsb": {"method": "cosine", "learning_rate": 2e-3, "scale": 5},
    "bsl": {"method": "bootstrap", "columns": True, "learning_rate": 2e-3, "predictor_rate": 1.0},
    "bsl-99": {"method": "bootstrap", "columns": True, "learning_rate": 3e-3, "predictor_rate": 1.0, "momentum": 0.99},
    "bsl-6": {"method": "bootstrap", "columns": True, "learning_rate": 1e-3, "predictor_rate": 5.0, "momentum": 0.99},
    "distil": {"method": "distil", "learning_rate": 5e-3},
}
VARIANTS = {"mlm": "mBERT, mlm", "nli": "mBERT-nli-stsb", "stsb": "mBERT-nli-stsb"}
"""The variant of the recipe that has the stage; BSL-sup for all others."""
ROWS: dict[str, tuple[tuple[str, float], ...]] = {
    "mean pooling": (),
    "nli-stsb": (("nli", 0.7), ("stsb", 0.3)),
    "BSL-uns": (("bsl", 1.0),),
    "BSL-uns, momentum 0.99": (("bsl-99", 1.0),),
    "distil": (("distil", 1.0),),
    "BSL-sup": (("distil", 1.0), ("bsl", 1.0)),
    "mlm": (("mlm", 1.0),),
    "BSL-uns, six times as long": (("bsl-6", 6.0),),
}
"""The stages of each row, and their share of the budget."""
SEEDED = ("distil", "BSL-sup")
RATES: dict[str, dict[str, dict[str, Any]]] = {
    "bsl": {"2e-3": {}, "1e-3": {"learning_rate": 1e-3}},
    "distil": {"5e-3": {}, "2e-3": {"learning_rate": 2e-3}},
}
STS17 = tuple(f"sts17-{pair}" for pair in ("en-en", "es-es", "ar-ar", "en-ar", "en-tr", "es-en"))
TESTS = (*STS17, *(f"stsb-en-{other}" for other in ("de", "es", "fr")))
TESTS += tuple(f"tatoeba-{other}" for other in ("ar", "de", "es", "fr", "tr"))
DEVELOPMENT = ("stsb-en-de-dev", "stsb-en-es-dev", "stsb-en-fr-dev")


class Trials:
    """Trains and scores, and keeps what came out."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.runs: Path = options.runs
        self.done: dict[str, Any] = {}
        if options.output.exists():
            self.done = json.loads(options.output.read_text(encoding="utf-8"))["rows"]

    def corpus(self, stage: str) -> Corpus:
        """The corpus of a stage of the recipe."""
        recipe = read_recipe(RECIPE, VARIANTS.get(stage, "BSL-sup"), "bundled")
        found = next(each for each in recipe.stages if each.name == stage)
        reading, data = dict(found.reading), self.options.data
        if "without" in reading:
            reading["without"] = placed(reading["without"], data)
        return read_corpus(placed(found.source, data), **reading)

    def base(self) -> Path:
        """The multilingual encoder, pretrained if it is not there."""
        directory = self.runs / "base"
        if not (directory / "model").is_dir():
            texts = self.corpus("mlm").texts()
            random.Random(0).shuffle(texts)
            pretrain(texts, directory, notice=print, resume=directory.exists(), **PRETRAINING)
        return directory / "model"

    def drawn(self, stage: str) -> Corpus:
        """As many rows of a stage's corpus as can be used, drawn at random; pairs as sentences for `mlm`."""
        if stage in ("nli", "stsb"):
            return self.corpus(stage)
        file = self.runs / "pairs.parquet"
        if not file.is_file():
            corpus = self.corpus("bsl")
            rows = np.sort(np.random.default_rng(0).permutation(len(corpus))[:PAIRS])
            columns = {name: corpus.texts(rows, name) for name in corpus.text_columns}
            with whole_file(file) as temporary:
                pq.write_table(pa.table(columns), temporary)
        return read_corpus(file, text_columns=("first", "second"), stack=stage == "mlm")

    def stage(self, name: str, base: Path, place: Path, seed: int, budget: float, **changes: Any) -> dict[str, Any]:
        """Train one stage; what is worth keeping of it."""
        settings = {**SMALL, **METHODS[name], **changes, "seed": seed, "budget": budget}
        if name == "distil":
            settings["teacher"] = str(self.runs / "nli-stsb-0" / "model")
        start = time.perf_counter()
        run = train(
            self.drawn(name), settings.pop("method"), base, place, overwrite=True, checkpoint_every=10**9, **settings
        )
        known = {"steps": run.record["steps"], "seconds": round(time.perf_counter() - start, 1)}
        return known

    def score(self, model: Path, tasks: tuple[str, ...]) -> dict[str, Any]:
        """Scores with their intervals."""
        result = evaluate(str(model), task=list(tasks), data=self.options.data)
        return {name: [score.score, score.low, score.high] for name, score in result.scores.items()}

    def row(self, name: str, seed: int) -> dict[str, Any]:
        """Train the stages of a row, each from the model of the one before, and score the last."""
        model, stages = self.base(), {}
        for number, (stage, share) in enumerate(ROWS[name]):
            place = self.runs / "-".join([each for each, _ in ROWS[name][: number + 1]] + [str(seed)])
            if not (place / "model").is_dir():
                stages[stage] = self.stage(stage, model, place, seed, share * self.options.budget)
            model = place / "model"
        return {"stages": stages, "scores": self.score(model, TESTS)}

    def rate(self, stage: str, name: str) -> dict[str, Any]:
        """Train one stage with other settings, and score it on development pairs."""
        place = self.runs / "rate"
        known = self.stage(stage, self.base(), place, 0, self.options.budget, **RATES[stage][name])
        return {**known, "scores": self.score(place / "model", DEVELOPMENT)}

    def keep(self, name: str, make: Any) -> None:
        """Make an entry unless it is there; one that goes wrong is kept with its reason."""
        if name in self.done:
            return
        try:
            self.done[name] = make()
        except TrainingError as error:
            self.done[name] = {"failed": str(error)}
        about = {
            "pretraining": PRETRAINING,
            "budget": self.options.budget,
            "pairs": PAIRS,
            "small": SMALL,
            "methods": METHODS,
        }
        write_json(self.options.output, {"about": {**about, "versions": versions()}, "rows": self.done})
        print(name, json.dumps(self.done[name]), flush=True)


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
        runs = [entry["scores"] for name, entry in done.items() if name.rpartition(" ")[0] == row and "scores" in entry]
        if not runs:
            continue
        cells = []
        for tasks in columns.values():
            values = [float(np.mean([run[task][0] for task in tasks])) for run in runs]
            spread = f" ± {np.std(values, ddof=1):.1f}" if len(values) > 1 else ""
            cells.append(f"{np.mean(values):.1f}{spread}")
        lines.append(f"| {row} | {len(runs)} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main() -> None:
    """Train, score and write what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", metavar="DIR", help="mirror of the data sets")
    parser.add_argument("--runs", type=Path, default=Path("runs/languages"), metavar="DIR")
    parser.add_argument("--output", type=Path, required=True, metavar="FILE")
    parser.add_argument("--budget", type=float, default=BUDGET, metavar="SECONDS", help="of each row")
    parser.add_argument("--seeds", type=int, default=3, metavar="N", help="of the rows that claims are made on")
    parser.add_argument("--rates", action="store_true", help="compare settings on development pairs")
    parser.add_argument("--processor-time", action="store_true", help="seconds are the processor's")
    parser.add_argument("--table", action="store_true", help="print what the output holds")
    options = parser.parse_args()
    warnings.simplefilter("ignore", UserWarning)
    trials = Trials(options)
    if options.table:
        print(table(trials.done))
        return
    if options.processor_time:
        time.perf_counter = time.process_time
    if options.rates:
        for stage, settings in RATES.items():
            for name in settings:
                trials.keep(f"{stage} {name}", lambda: trials.rate(stage, name))  # noqa: B023, called at once
        return
    for row in ROWS:
        for seed in range(options.seeds if row in SEEDED else 1):
            trials.keep(f"{row} {seed}", lambda: trials.row(row, seed))  # noqa: B023, called at once


if __name__ == "__main__":
    main()
