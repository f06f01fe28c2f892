"""What pays in a small budget of pretraining: starts, shapes and rates, each trained for as many tokens and then tuned.

    python experiments/pretrain_trials.py TEXT... --output docs/results/quality/pretrain_trials.json
    python experiments/pretrain_trials.py TEXT... --output docs/results/quality/pretrain_objectives.json --steps 200 \
        --simcse-steps 100 --processor-time --all layers=2 vocabulary_size=8192 held_out=0.003 \
        --only counts look random 'counts, own words from the mean'

Every variant is pretrained from scratch with the same vocabulary, on the same text, for the same number of steps, and
then gets the same few steps of SimCSE; its STS-B dev scores before and after stand beside its held-out loss. A variant
that is in the output already is not trained again. Steps, not seconds, bound a trial, so that a busy machine does not
change the outcome; the seconds are noted, because a shape may be better and slower, and so is the held-out loss along
the way.

Of the objectives, "own words from the mean" adds to the masked-LM loss that of predicting each sentence's words
from the mean of its states, through the language-model head; "next words" those of the sentence behind it.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch
from torch import Tensor

from selfsent.api import train
from selfsent.data.corpus import Corpus, read_corpus
from selfsent.errors import TrainingError
from selfsent.evaluation.suites import evaluate
from selfsent.fast.packing import IGNORED, Packed
from selfsent.files import write_json
from selfsent.methods import Loss
from selfsent.models.loading import load_encoder
from selfsent.pretraining.learner import PretrainingLearner
from selfsent.pretraining.pretrain import pretrain
from selfsent.report.scoring import scored
from selfsent.training.run_directory import RunDirectory, versions

VARIANTS: dict[str, dict[str, Any]] = {
    "random": {"start": "random"},
    "look": {"start": "look"},
    "counts": {},
    "counts, embedding rate 0.2": {"embedding_rate": 0.2},
    "counts, embedding rate 1": {"embedding_rate": 1.0},
    "counts, embedding rate 0": {"embedding_rate": 1e-9},
    "counts, own words from the mean": {"words": "own"},
    "counts, next words from the mean": {"words": "next"},
    "counts, 2 layers": {"layers": 2},
    "counts, 6 layers of 192": {"layers": 6, "hidden_size": 192, "heads": 3, "feed_forward": 768},
    "counts, 2 layers of 320": {"layers": 2, "hidden_size": 320, "heads": 5, "feed_forward": 1280},
    "counts, 8,192 pieces": {"vocabulary_size": 8192},
}
SIMCSE: dict[str, Any] = {
    "batch_size": 64,
    "learning_rate": 1e-3,
    "pick_words": 16,
    "dropout": 0.0,
    "mlp": False,
    "pooling": "mean",
    "max_length": 64,
}


class BagLearner(PretrainingLearner):
    """Masked language modelling, and a sentence's bag of words from the mean of its states.

    Its loss is that of the masked words plus, for each of them, the mean over sentences of −Σ_w p(w) log q(w): p are
    the shares of the words in the sentence (`own`) or in the one behind it (`next`), q is what the language-model
    head makes of the mean state.
    """

    words = "own"

    def forward(self, views: Sequence[Packed], labels: Tensor | None = None) -> Loss:
        """The loss of one masked batch; held-out text is measured by its masked words alone."""
        if not self.training:
            return super().forward(views, labels)
        (masked,) = views
        states, head = self.model.states(masked), self.model.require_head("trials")
        chosen = masked.targets != IGNORED
        scores = head.output(head(states[chosen]))
        total = torch.nn.functional.cross_entropy(scores, masked.targets[chosen], reduction="sum")
        return Loss(total + int(chosen.sum()) * self.bag_loss(states, masked), int(chosen.sum()))

    def bag_loss(self, states: Tensor, masked: Packed) -> Tensor:
        """−Σ_w p(w) log q(w), the mean over the sentences that have words to predict."""
        ids = torch.where(masked.targets != IGNORED, masked.targets, masked.ids)
        ends = ids == int(self.model.tokenizer.sep_token_id)
        starts = torch.cat([ends.new_zeros(1), ends[:-1]]) | (masked.positions == 0)
        sentence = starts.cumsum(0) - 1
        real = (~ends & (masked.positions > 0)).float()
        sizes = torch.zeros(int(sentence[-1]) + 1).index_add_(0, sentence, real)
        means = torch.zeros(len(sizes), states.shape[1]).index_add_(0, sentence, states * real[:, None])
        head = self.model.require_head("trials")
        log_q = head.output(head(means / sizes.clamp_min(1)[:, None])).log_softmax(-1)
        source, share = sentence, real / sizes.clamp_min(1)[sentence]
        if self.words == "next":  # within a block: the first sentence of one follows none
            block = (masked.positions == 0).cumsum(0)
            same = torch.zeros(len(sizes), dtype=block.dtype).index_copy_(0, sentence, block)
            source = (sentence - 1).clamp_min(0)
            share = share * ((same[source] == block) & (sentence > 0))
        weight = torch.zeros(len(sizes)).index_add_(0, sentence, share)
        return -(share * log_q[source, ids]).sum() / weight.sum()


@contextmanager
def objective(words: str | None) -> Iterator[None]:
    """Pretrain with the words of a sentence as a second objective, where it is named."""
    learner = type("Learner", (BagLearner,), {"words": words}) if words else PretrainingLearner
    with patch("selfsent.pretraining.pretrain.PretrainingLearner", learner):
        yield


def dev_score(model: Path, data: str | None) -> float:
    """Spearman on the development set of STS-B."""
    return (
        evaluate(scored(load_encoder(model, "mean"), str(model)), task=["stsb-dev"], data=data).scores["stsb-dev"].score
    )


def trial(
    corpus: Corpus, variant: dict[str, Any], options: argparse.Namespace, tokenizer: Path | None
) -> dict[str, Any]:
    """Pretrain, score, tune, score again."""
    folder = options.runs / "pretrained"
    settings = {**options.shared, **variant}
    with objective(settings.pop("words", None)):
        made = pretrain(
            corpus,
            folder,
            tokenizer=None if "vocabulary_size" in variant else tokenizer,
            overwrite=True,
            steps=options.steps,
            batch_size=16,
            **settings,
        )
    result, model = made.record["result"], folder / "model"
    after: dict[str, Any] = {}
    if options.simcse_steps:
        try:
            tuned = train(corpus, "simcse", model, options.runs / "tuned", overwrite=True, **options.simcse)
            after["stsb_dev_after_simcse"] = dev_score(tuned.directory / "model", options.data)
        except TrainingError as error:  # an encoder that says the same of everything is no base
            after["failed"] = str(error).split(":")[0]
    return {
        **variant,
        "parameters": made.record["parameters"],
        "tokens": result["tokens"],
        "seconds": round(made.record["seconds"], 1),
        "held_out_loss": result["held_out_loss"],
        "bits_per_character": result["bits_per_character"],
        "curve": [
            [entry["tokens"], entry["held_out_loss"]]
            for entry in RunDirectory(made.directory).metrics()
            if "held_out_loss" in entry
        ],
        "stsb_dev": dev_score(model, options.data),
        **after,
    }


def main() -> None:
    """Run what is missing and print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("text", nargs="+")
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--simcse-steps", type=int, default=60, help="0 leaves it out")
    parser.add_argument(
        "--all",
        nargs="+",
        default=[],
        metavar="NAME=NUMBER",
        help="what all variants have in common",
    )
    parser.add_argument("--only", nargs="+", choices=VARIANTS, metavar="NAME", help="run these variants")
    parser.add_argument("--processor-time", action="store_true", help="seconds are the processor's")
    parser.add_argument("--runs", type=Path, default=Path("runs/pretrain_trials"))
    parser.add_argument("--data", help="mirror of the evaluation data sets (default: SELFSENT_DATA)")
    options = parser.parse_args()
    options.simcse = {**SIMCSE, "steps": options.simcse_steps}
    options.shared = {name: json.loads(value) for name, value in (given.split("=") for given in options.all)}
    if options.processor_time:
        time.perf_counter = time.process_time
    warnings.simplefilter("ignore")
    done: dict[str, Any] = json.loads(options.output.read_text())["trials"] if options.output.is_file() else {}
    corpus = read_corpus(options.text)
    vocabulary = options.runs / "vocabulary"
    if not vocabulary.is_dir():
        size = {name: value for name, value in options.shared.items() if name == "vocabulary_size"}
        pretrain(corpus, vocabulary, steps=1, batch_size=2, start="random", held_out=0.001, **size)
    for name in options.only or VARIANTS:
        if name not in done:
            done[name] = trial(corpus, VARIANTS[name], options, vocabulary / "model")
            text = [Path(part).name for part in options.text]
            about = {"text": text, "steps": options.steps, "all": options.shared, "simcse": options.simcse}
            write_json(options.output, {**about, "versions": versions(), "trials": done})
        print(f"{name}: {done[name]}", flush=True)


if __name__ == "__main__":
    main()
