"""A few steps of every method, by one process or, started by torchrun with a folder of bases and a recipe, by two."""

import sys
from pathlib import Path

import torch
from safetensors.torch import save_file

sys.path.insert(0, str(Path(__file__).parents[1]))

from cells import Cell

import tiny
from selfsent import train_stages
from selfsent.distributed import rank, world_size
from selfsent.models.encoder import Encoder
from selfsent.settings import Settings
from selfsent.training.loop import Loop
from selfsent.training.run_config import RunConfig
from selfsent.training.run_directory import RunDirectory

ARCHITECTURES = ("bert", "modernbert", tiny.STATIC)
"""The first for every run; the second for tsdae, whose decoder it changes; a table of token vectors for some."""
SENTENCES = tiny.make_sentences(48, seed=6)
# Adam divides a gradient by its size: with an epsilon below rounding errors it would blow those up to whole steps.
# Within rounding errors of 0, a ReLU of a predictor may take one side in one process and the other in two: with this
# seed none of them is given anything nearer to 0 than 3e-4.
SETTINGS = Settings(batch_size=12, learning_rate=1e-2, steps=4, warmup=0, epsilon=1e-2, seed=14).replace(
    precision="float32", max_length=tiny.LONGEST
)
NETWORKS = {"delete_words": 0.3, "width": 2, "momentum": 0.5}
RUNS = {
    **{name: {} for name in ("tsdae", "tsdae, accumulated", "neighbours", "mlm")},
    **{name: {} for name in ("ct-inbatch", "softmax, accumulated", "cosine", "triplet", "distil")},
    "neighbours, spans": {"span": 3, "within": 2, "overlap": True},
    "simcse": {"delete_words": 0.3},
    "simcse of surroundings": {"positives": "surroundings", "within": 2},
    "ct": {"negatives": 2},  # groups of three, so that either process has whole ones
    "infomax": {"filters": 8},
    "infomax of products": {"filters": 8, "average": "sum", "temperature": 0.0},
    "bootstrap": NETWORKS,
    "ntxent": NETWORKS,
    "mnrl": {"hard_negatives": True, "both_directions": True},
    "cross-encoder": {"both_orders": True},
    "distil by mse": {"objective": "mse"},
    "neighbours, cached": {},
    "simcse, cached": {"delete_words": 0.3},
    "ct, cached": {"negatives": 2},
    "ct-inbatch, cached": {},
    "bootstrap, cached": NETWORKS,
    "ntxent, cached": NETWORKS,
    "mnrl, cached": {"hard_negatives": True, "both_directions": True},
    "distil, cached": {},
    "neighbours, of sizes": {"sizes": (tiny.SIZE, 8)},
    "neighbours, of sizes, cached": {"sizes": (tiny.SIZE, 8)},
    "tsdae, lora": {"lora": 4},
    "bootstrap, lora": {"lora": 4, **NETWORKS},
    "ct, lora": {"lora": 4, "negatives": 2},
    "mnrl, lora cached": {"lora": 4, "hard_negatives": True},
}
if not tiny.has_lora():
    RUNS = {name: options for name, options in RUNS.items() if "lora" not in options}
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
    *((tiny.STATIC, run) for run in ("neighbours", "simcse", "ct", "bootstrap", "softmax, accumulated", "distil")),
]
SOON = [
    *(("bert", run) for run in ("tsdae", "tsdae, accumulated", "simcse", "simcse, cached", "infomax", "mnrl")),
    *(("bert", run) for run in ("bootstrap", "bootstrap, cached", "ct", "distil", "mnrl, lora cached") if run in RUNS),
    ("bert", "softmax, accumulated"),
    (tiny.STATIC, "neighbours"),
]
"""What every run of the tests looks at: labels, queues, twins, caches and adapters; the rest is for `make contract`."""


def train(bases, places):
    """The learners' weights after a few steps at these places, and the losses of the last step."""
    weights = {}
    for architecture, run in places:
        cell = Cell(run.replace(",", "").split()[0], architecture)
        learner = cell.learner(bases / architecture, dropout=0.0, **RUNS[run])
        for part in learner.modules():
            if isinstance(part, Encoder) and "cached" in run:
                part.mini_batch_size = 5
        settings = SETTINGS.replace(accumulate=1 + ("accumulated" in run))
        batches = cell.batches(learner, settings, SENTENCES)
        loop = Loop(learner, batches, settings, RunDirectory(bases), RunConfig())
        for step in range(SETTINGS.steps):
            total, count, *_ = loop.advance(step)
        for name, parameter in learner.named_parameters():
            weights[f"{architecture}/{run}/{name}"] = parameter.detach().clone()
        weights[f"{architecture}/{run}/loss"] = torch.tensor(total / count)
    return weights


def write_recipe(folder, base):
    """A recipe of two stages with its corpora: sentences, then pairs of two classes."""
    rows = [f"{a}\t{b}\t{'ny'[a < b]}" for a, b in zip(SENTENCES[:24], SENTENCES[24:], strict=True)]
    (folder / "sentences.txt").write_text("\n".join(SENTENCES))
    (folder / "pairs.tsv").write_text("\n".join(["first\tsecond\tkind", *rows]))
    (folder / "recipe.yaml").write_text(RECIPE.format(base=base, folder=folder))


def main(place, places):
    """The work of one of two processes: weights and stages in the folder."""
    found = train(place, places)
    assert world_size() == 2
    train_stages(place / "recipe.yaml", place / "stages")
    save_file(found, place / f"rank{rank()}.safetensors")
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main(Path(sys.argv[1]), PLACES)
