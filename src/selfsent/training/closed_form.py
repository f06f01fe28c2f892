"""A run without steps: the method looks at every sentence once, and the model is done."""

from __future__ import annotations

import time
from collections.abc import Callable

import torch

from selfsent.data.batches import Batches
from selfsent.distributed import rank, wait, world_size
from selfsent.methods import Learner
from selfsent.models.encoder import Encoder
from selfsent.models.health import SENTENCES, probe
from selfsent.models.precision import autocast
from selfsent.settings import Precision
from selfsent.training.run_directory import RunDirectory
from selfsent.training.save import save_model


def fit_once(
    learner: Learner,
    batches: Batches,
    directory: RunDirectory,
    finish: Callable[[Encoder], None] = lambda encoder: None,
) -> None:
    """Prepare the learner, which is all its training, and save its model. A run that was cut short begins again.

    Args:
        learner: of a method that fits.
        batches: the sentences.
        directory: the run's directory.
        finish: what is done to the encoder at the end, before it is saved.
    """
    started = time.perf_counter()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    precision: Precision = "bfloat16" if batches.settings.precision == "bfloat16" else "float32"
    learner.to(device)
    directory.update(steps=0, precision=precision, processes=world_size())
    with autocast(device, precision):
        learner.prepare(batches.single_pass(device))
        finish(learner.model)
    if rank() == 0:
        views = batches.views_of(batches.rows[:SENTENCES], 0, device)
        directory.forget_after(-1)
        directory.log({"step": 0, **probe(learner.model, views).to_json()})
        save_model(directory.model, learner.model.save)
    directory.update(status="trained", seconds=time.perf_counter() - started)
    wait()
