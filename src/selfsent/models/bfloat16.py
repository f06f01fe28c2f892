"""Inference in bfloat16, with weights converted once."""

from __future__ import annotations

import functools
from types import MethodType
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from selfsent.foreign.torch import laid_out, lays_out_bfloat16, linear_laid_out
from selfsent.foreign.transformers import is_conv1d

if TYPE_CHECKING:
    from selfsent.models.encoder import Encoder

ROWS = 2048
"""Rows for which the layout of the weights is chosen; any other number works too."""


class LaidOutLinear(nn.Linear):
    """`nn.Linear` for inference in bfloat16, with its weight already in oneDNN's layout."""

    laid_out: Tensor

    def forward(self, input: Tensor) -> Tensor:
        """(..., in) to (..., out)."""
        states = input.to(torch.bfloat16)
        return linear_laid_out(states, self.laid_out, self.bias)


def into_bfloat16(model: Encoder) -> Encoder:
    """Switch an encoder to token states in bfloat16, for inference only.

    Products are bfloat16, as under autocast, which would cast the weights for every batch. States between layers and
    the modules from the pooling on stay float32: that moves scores of the suite `sts` by 0.01 points, all of it in
    bfloat16 by 0.08.

    Args:
        model: an encoder on its final device. It is changed, and returned.
    """
    model.requires_grad_(False).eval()
    transformer = model.transformer
    for part in transformer.modules():
        if type(part) is nn.Linear or is_conv1d(part):
            part.to(torch.bfloat16)
        if type(part) is nn.Linear and model.device.type == "cpu" and lays_out_bfloat16():
            part.__class__ = LaidOutLinear
            with torch.inference_mode():
                part.laid_out = laid_out(part.weight, ROWS)
    in_bfloat16(transformer)
    return model


def in_bfloat16(transformer: Any) -> None:
    """Compute a transformer under autocast for any caller, with results in float32."""
    from accelerate.utils.operations import convert_to_fp32

    forward = type(transformer).forward

    @functools.wraps(forward)
    def under_autocast(self: Any, *args: Any, **kwargs: Any) -> Any:
        with torch.autocast(self.device.type, torch.bfloat16):
            return convert_to_fp32(forward(self, *args, **kwargs))

    transformer.forward = MethodType(under_autocast, transformer)
