"""A run's model with the share of its training that the warranty keeps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.table import Table

from selfsent.display import change, table_of
from selfsent.evaluation.exam import Exam
from selfsent.evaluation.warranty import warranty
from selfsent.models.loading import load_encoder
from selfsent.models.merge import Between
from selfsent.training.models import save_model
from selfsent.training.plan import Plan
from selfsent.training.run_config import Notice, RunConfig
from selfsent.training.run_directory import RunDirectory


def keep_warranted(directory: RunDirectory, plan: Plan, exam: Exam, config: RunConfig, notice: Notice) -> None:
    """Replace the model of a run by the share of its training that an exam warrants; the record tells it.

    What was trained stays in `trained/`, so that a run that was cut short begins this again.

    Args:
        directory: of a run that is trained.
        plan: of the run.
        exam: of held-out documents.
        config: how many points general sentences may lose, and the mirror of evaluation data sets.
        notice: receives the result in a few sentences.

    Raises:
        BaseEncoderError: the weights cannot be merged. The run stays as it is.
    """
    if "warranty" in directory.record:
        return
    aside = directory.path / "trained"
    trained = load_encoder(aside if aside.is_dir() else directory.model)
    between = Between(load_encoder(plan.base, prompts=plan.prompts), trained)
    found = warranty(between, exam, config.data, most=config.warranty or 0.0)
    if not aside.is_dir():
        directory.model.rename(aside)
    kept = between.at(found.share) if found.chosen else between.base
    save_model(directory.model, kept.save, kept)
    directory.update(warranty=found.to_json())
    notice(f"warranty: {found.line} All of the training is in {aside}")


def warranty_table(found: Mapping[str, Any]) -> Table:
    """Every share of the training with its gains on both halves of the exam, and its loss on the guard."""
    rows = []
    for each in found["tried"][1:]:
        gains = [change(*(each[half][name] for name in ("gain", "low", "high"))) for half in ("dev", "test")]
        rows.append([f"{each['share']:.0%}", *gains, f"{each['loss']:.2f}"])
    return table_of(
        ("share", "gain where chosen", "gain on the other half", "lost"),
        rows,
        title="Warranty: nDCG@10 × 100 over the base, as search ranks, with 95 % intervals; lost on " + found["guard"],
        caption=f"{found['line']} Asked: {found['exam']}; half of the queries chose.",
        styles={f"{found['share']:.0%}": "bold"},
    )
