"""Learning rates over a run, the optimiser, and scaling of its gradients."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor

from selfsent.fast.rows_in_use import RowsInUse
from selfsent.foreign.torch import scale_all, scale_on_the_way, without_compiler
from selfsent.methods import Learner
from selfsent.models.static import StaticEncoder
from selfsent.settings import Settings


def rate_at(step: float, steps: int, settings: Settings) -> float:
    """The share of the peak learning rate at a step, counted from 0, of a run of `steps` steps.

    It rises linearly over the warm-up; then it stays, falls to zero on a line or along half a cosine, or falls in steps
    (Carlsson et al. 2021): by a fifth every 500 steps, until a fifth is left.
    """
    warmup = settings.warmup if settings.warmup >= 1 else settings.warmup * steps
    if step < warmup:
        return (step + 1) / (warmup + 1)
    if settings.schedule == "step":
        return (5 - min(4, step // 500)) / 5
    if settings.schedule == "constant":
        return 1.0
    left = (steps - step) / max(1.0, steps - warmup)
    return left if settings.schedule == "linear" else 0.5 * (1 - math.cos(math.pi * left))


def make_optimizer(learner: Learner, settings: Settings, rows: RowsInUse | None = None) -> torch.optim.Optimizer:
    """The optimiser over the learner's parameter groups; a group may bring its own rate, which is scaled alike.

    Args:
        learner: the learner.
        settings: optimiser and rates.
        rows: trained in place of their table.
    """
    groups: list[dict[str, Any]] = learner.parameter_groups(settings)
    for group in groups:
        if rows:
            group["params"] = [rows.in_place_of(each) for each in group["params"]]
        group["peak"] = group.setdefault("lr", settings.learning_rate)
    if settings.optimizer == "rmsprop":
        return without_compiler(torch.optim.RMSprop)(groups, alpha=settings.alpha, eps=settings.epsilon, foreach=True)
    if settings.optimizer == "sgd":
        return without_compiler(torch.optim.SGD)(groups, foreach=True)
    fused = next(learner.parameters()).device.type in {"cpu", "cuda"}
    adam = without_compiler(torch.optim.AdamW)
    optimizer = adam(groups, betas=(0.9, settings.beta2), eps=settings.epsilon, fused=fused)
    for part in learner.modules():
        if isinstance(part, StaticEncoder) and part.table.weight.requires_grad:
            _step_by_length(optimizer, part.table.weight, rows)
    if rows:
        rows.train_by(optimizer)
    return optimizer


def _step_by_length(optimizer: torch.optim.Optimizer, table: Tensor, rows: RowsInUse | None = None) -> None:
    """Give each row of a table a step in proportion to its length at the start: one of mean length steps by the rate.

    Adam moves all rows alike: short rows, which say little, such as punctuation's, soon outweighed words.
    """
    lengths = table.detach().norm(dim=1, keepdim=True)
    share = lengths / lengths.mean()
    if rows and table is rows.weight:
        table, share = rows.part, share[rows.used]
    before = torch.empty_like(table.data)

    def remember(*_: Any) -> None:
        before.copy_(table.data)  # which is in another place since it was shared out to processes

    def resize(*_: Any) -> None:
        torch.lerp(before, table.data, share, out=table.data)

    optimizer.register_step_pre_hook(remember)
    optimizer.register_step_post_hook(resize)


def scale_and_clip(optimizer: torch.optim.Optimizer, parameters: Iterable[Tensor], scale: float, clip: float) -> float:
    """Turn summed gradients into the mean's and bound their norm; one pass over the gradients, or none.

    Args:
        optimizer: a fused one divides the gradients in its next step, others get new gradients.
        parameters: with the sums as gradients.
        scale: factor that turns sums into means.
        clip: largest norm of the means; 0 for none.

    Returns:
        The norm of the means before it was bounded; where it is not finite, nothing is done.
    """
    gradients = [each.grad for each in parameters if each.grad is not None]
    norm = float(torch.nn.utils.get_total_norm(gradients)) * scale
    if not math.isfinite(norm):
        return norm
    factor = scale * (min(1.0, clip / max(norm, 1e-12)) if clip else 1.0)
    if optimizer.defaults.get("fused"):
        scale_on_the_way(optimizer, gradients, factor)
    else:
        scale_all(gradients, factor)
    return norm
