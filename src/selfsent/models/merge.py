"""Interpolation of the weights of a base and of a model trained from it (WiSE-FT, arXiv:2109.01903)."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from selfsent.errors import BaseEncoderError
from selfsent.models.encoder import Encoder
from selfsent.renamed import warn_renamed


class WeightInterpolation:
    """The encoders (1 − α) · base + α · trained, weight by weight.

    Whitening turns all vectors, which no cosine sees, but a weight halfway between two bases would mean nothing. So a
    rotation and a scale are taken off first: a table is turned to where it is nearest to that of the base (Procrustes).
    An appended `Dense` is merged with the identity: of W = Q P, the polar decomposition, P ÷ (its mean eigenvalue) is
    left.

    Args:
        base: before training.
        trained: afterwards. Its weights are overwritten by `at`.

    Raises:
        BaseEncoderError: they differ in architecture, pooling, size of vectors, or vocabulary.

    Examples:
        >>> interpolation = WeightInterpolation(load_encoder("bundled"), load_encoder("runs/tickets"))
        >>> interpolation.at(0.5).save(Path("half"))
    """

    def __init__(self, base: Encoder, trained: Encoder) -> None:
        before, after = list(base.sentence_transformer), list(trained.sentence_transformer)
        appended = after[len(before) :]
        if [*map(_kind, before)] != [*map(_kind, after[: len(before)])] or base.pooling != trained.pooling:
            raise _refused("other modules")
        if len(appended) > 1 or (appended and _kind(appended[0]) != "Dense"):
            raise _refused("more than one module after those of the base")
        if base.embedding_size != trained.embedding_size:
            raise _refused(f"vectors of {trained.embedding_size} numbers, and the base of {base.embedding_size}")
        if base.tokenizer.get_vocab() != trained.tokenizer.get_vocab():
            raise _refused("another vocabulary")
        old = dict(base.named_parameters())
        new = {name: weight for name, weight in trained.named_parameters() if name in old}
        if any(weight.shape != old[name].shape for name, weight in new.items()):
            raise _refused("weights of other shapes")
        self.base, self._merged = base, trained
        pairs = [(weight, old[name].detach(), weight.detach().clone()) for name, weight in new.items()]
        if base.is_static and all(_kind(module) == "Normalize" for module in after[1:]):
            pairs = [(weight, before, turned(after, before)) for weight, before, after in pairs]
        for dense in appended:
            linear = dense.linear
            weight, bias = without_rotation(linear.weight.detach(), linear.bias.detach())
            eye = torch.eye(len(weight), device=weight.device)
            pairs += [(linear.weight, eye, weight), (linear.bias, torch.zeros_like(bias), bias)]
        self._pairs: list[tuple[nn.Parameter, Tensor, Tensor]] = pairs

    @torch.no_grad()
    def at(self, alpha: float) -> Encoder:
        """The encoder with this weight of the trained model: the same object at every call, with other weights."""
        for weight, base, trained in self._pairs:
            weight.copy_(torch.lerp(base, trained, alpha))
        return self._merged


def turned(table: Tensor, target: Tensor) -> Tensor:
    """The table (rows, d) times the rotation and the scale that bring it nearest to another one of this shape."""
    left, scales, right = torch.linalg.svd(table.double().T @ target.double())
    scale = scales.sum() / table.double().square().sum().clamp_min(1e-12)
    nearest: Tensor = scale * (table.double() @ left @ right)
    return nearest.float()


def without_rotation(weight: Tensor, bias: Tensor) -> tuple[Tensor, Tensor]:
    """The map with the same cosines that is nearest to a multiple of the identity, divided by that multiple.

    Args:
        weight: (d, d).
        bias: (d,).
    """
    left, scales, right = torch.linalg.svd(weight.double())
    back = (left @ right).T  # of weight = (left right) (right' scales right)
    scale = scales.mean()
    symmetric = right.T @ torch.diag(scales) @ right
    return (symmetric / scale).float(), (back @ bias.double() / scale).float()


def _kind(module: object) -> str:
    return type(module).__name__


def _refused(what: str) -> BaseEncoderError:
    problem = f"the trained model has {what}, so its weights cannot be merged with those of the base"
    return BaseEncoderError(f"{problem}: leave out the warranty")


def __getattr__(name: str) -> Any:
    """Read the old name, with a warning."""
    if name != "Between":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    warn_renamed(f"{__name__}.Between", "WeightInterpolation")
    return WeightInterpolation
