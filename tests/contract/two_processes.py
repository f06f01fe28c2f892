"""A few steps of every method, by one process or, started by torchrun with BASES, OUTPUT and RECIPE, by several."""

import sys
from pathlib import Path

import torch
from safetensors.torch import save_file

sys.path.insert(0, str(Path(__file__).parents[1]))

from cells import Cell

import tiny
from selfsent import train_stages
from selfsent.distributed import rank, world_size
from selfsent.settings import Settings
from selfsent.training.loop import Loop, Meter
from selfsent.training.run_config import RunConfig
from selfsent.training.run_directory import RunDirectory

ARCHITECTURES = ("bert", "modernbert", tiny.STATIC)
"""The first for every run; the second for tsdae, whose decoder it changes; a table of token vectors for some."""
SENTENCES = tiny.make_sentences(48, seed=6)
# Adam divides a gradient by its size: with an epsilon below rounding errors it would blow those up to whole steps.
# Within rounding errors of 0, a ReLU of a predictor may take one side in one process and the other in two: with this
# seed none of them is given anything nearer to 0 than 3e-4.
SETTINGS = Settings(
    batch_size=12,
    learning_rate=1e-2,
    steps=4,
    warmup=0,
    epsilon=1e-2,
    precision="float32",
    max_length=tiny.LONGEST,
    seed=14,
)
RUNS = {
    "tsdae": ({}, 1),
    "tsdae, accumulated": ({}, 2),
    "sdae": ({}, 1),
    "skip-thoughts": ({}, 1),
    "neighbours": ({}, 1),
    "neighbours, spans": ({"span": 3, "within": 2, "overlap": True}, 1),
    "simcse of surroundings": ({"positives": "surroundings", "within": 2}, 1),
    "simcse": ({"delete_words": 0.3}, 1),
    "simcse with mlm": ({"delete_words": 0.3, "mlm_weight": 0.1}, 1),
    "mlm": ({}, 1),
    "ct": ({"negatives": 2}, 1),  # groups of three, so that either process has whole ones
    "ct anchored": ({"negatives": 2, "anchored": True, "reduction": "sum"}, 1),
    "ct-inbatch": ({}, 1),
    "infomax": ({"filters": 8}, 1),
    "infomax of products": ({"filters": 8, "average": "sum", "temperature": 0.0}, 1),
    "bootstrap": ({"delete_words": 0.3, "width": 2, "momentum": 0.5}, 1),
    "softmax": ({}, 2),
    "cosine": ({}, 1),
    "triplet": ({}, 1),
    "mnrl": ({"hard_negatives": True, "both_directions": True}, 1),
    "cross-encoder": ({"both_orders": True}, 1),
    "distil": ({}, 1),
    "distil by mse": ({"objective": "mse"}, 1),
    "ntxent": ({"delete_words": 0.3, "width": 2, "momentum": 0.5}, 1),
}
RECIPE = """\
base: {base}
all:
  {{batch_size: 8, steps: 3, max_length: 32, precision: float32, dropout: 0, learning_rate: 1e-2, warmup: 0,
  epsilon: 1e-2}}
stages:
  sentences: {{corpus: {folder}/sentences.txt, method: simcse, delete_words: 0.3}}
  pairs:
    corpus: {{source: {folder}/pairs.tsv, text_columns: [first, second], label_column: kind}}
    method: softmax
    head: ngram-cnn
    filters: 4
"""
PLACES = [
    *((ARCHITECTURES[0], run) for run in RUNS),
    (ARCHITECTURES[1], "tsdae"),
    *((tiny.STATIC, run) for run in ("neighbours", "simcse", "ct", "bootstrap", "softmax", "distil")),
]


def train(bases):
    """The learners' weights after a few steps at every place, and the losses of the last step."""
    weights = {}
    for architecture, run in PLACES:
        options, accumulate = RUNS[run]
        cell = Cell(run.replace(",", "").split()[0], architecture)
        learner = cell.learner(bases / architecture, dropout=0.0, **options)
        settings = SETTINGS.but(accumulate=accumulate)
        batches = cell.batches(learner, settings, SENTENCES, **options)
        loop = Loop(learner, batches, settings, RunDirectory(bases), RunConfig())
        for _ in range(SETTINGS.steps):
            meter = Meter()
            loop._take_step(meter)
        for name, parameter in learner.named_parameters():
            weights[f"{architecture}/{run}/{name}"] = parameter.detach().clone()
        weights[f"{architecture}/{run}/loss"] = torch.tensor(meter.figures()["loss"])
    return weights


def write_recipe(folder, base):
    """A recipe of two stages with its corpora: sentences, then pairs of two classes."""
    rows = [f"{a}\t{b}\t{'ny'[a < b]}" for a, b in zip(SENTENCES[:24], SENTENCES[24:], strict=True)]
    (folder / "sentences.txt").write_text("\n".join(SENTENCES))
    (folder / "pairs.tsv").write_text("\n".join(["first\tsecond\tkind", *rows]))
    (folder / "recipe.yaml").write_text(RECIPE.format(base=base, folder=folder))
    return folder / "recipe.yaml"


if __name__ == "__main__":
    found = train(Path(sys.argv[1]))
    assert world_size() == 2
    train_stages(sys.argv[3], Path(sys.argv[2]) / "stages")
    save_file(found, str(Path(sys.argv[2]) / f"rank{rank()}.safetensors"))
    torch.distributed.destroy_process_group()
