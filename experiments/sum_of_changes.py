"""Two methods, one encoder: the changes each makes to the weights of a base, added or averaged.

    python experiments/sum_of_changes.py --text TEXT --base DIR --corpora newsgroups wikipedia --output OUT.json

`neighbours` learns a domain, and `bootstrap` with 16 words picked lifts what has nothing to do with it
(docs/comparison.md). Each is trained for 120 steps of 64 from the same base; scored on development data.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import torch

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))  # what benchmarks and experiments share
from grid import context_task, finished, keep, open_corpus, score_row, train_row

from selfsent.models.loading import load_encoder

CORPORA = {
    "newsgroups": ["forum-newsgroups.txt.zst"],
    "wikipedia": ["wikipedia-recent.txt.zst"],
    "counsel": ["forum-counsel.txt.zst"],
}
TASKS = ["stsb-dev", "banking77-dev", "newsgroups-dev", "counsel-topics-dev"]
TESTS = ["stsb", "sts12", "sts13", "sts14", "sts15", "twitterpara", "ukp-aspect"]
METHODS: dict[str, dict[str, Any]] = {
    "neighbours": {"method": "neighbours"},
    "bootstrap": {"method": "bootstrap", "pick_words": 16},
}
COMMON = {"max_length": 64, "steps": 120}
SUMS = {"sum": (1.0, 1.0), "average": (0.5, 0.5), "sum, bootstrap by half": (1.0, 0.5)}


def summed(base: str, first: Path, second: Path, weights: tuple[float, float], place: Path) -> Path:
    """The base with so much of the changes of both, as a model."""
    model, parts = load_encoder(base), [load_encoder(first), load_encoder(second)]
    states = [dict(part.sentence_transformer.named_parameters()) for part in parts]
    with torch.no_grad():
        for name, weight in model.sentence_transformer.named_parameters():
            start = weight.clone()
            for state, share in zip(states, weights, strict=True):
                weight += share * (state[name] - start)
    model.save(place)
    return place


def main() -> None:
    """Do what is missing."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--text", type=Path, required=True)
    parser.add_argument("--base", required=True)
    parser.add_argument("--corpora", nargs="+", default=list(CORPORA), choices=CORPORA)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--runs", type=Path, default=Path("runs/sums"))
    parser.add_argument("--test", action="store_true", help="score on tests, when all is chosen")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    recipe = {"context": "test" if options.test else "dev", "data": None}
    for name in options.corpora:
        corpus, hold_out = open_corpus(recipe, CORPORA[name], options.text)
        context = context_task(recipe, corpus, hold_out)
        places = {method: options.runs / recipe["context"] / name / method for method in METHODS}
        for method, settings in METHODS.items():
            if not (places[method] / "model").is_dir():
                train_row({**settings, **COMMON, "base": options.base}, 0, corpus, hold_out.train, places[method])
        models = {"untrained": Path(options.base), **places}
        for title, weights in SUMS.items():
            place = options.runs / recipe["context"] / name / title
            if not place.is_dir():
                summed(options.base, places["neighbours"], places["bootstrap"], weights, place)
            models[title] = place
        for title, model in models.items():
            key = f"{name} | {title}"
            if key not in finished(options.output):
                scores = score_row(str(model), None, recipe, TESTS if options.test else TASKS, context)
                keep(options.output, "sum_of_changes.py", key, {"scores": scores})
                said = "  ".join(f"{task} {figures[0]:.2f}" for task, figures in scores.items())
                print(time.strftime("%H:%M:%S"), key, said, flush=True)


if __name__ == "__main__":
    main()
