"""An affine map behind the pooling, as the module of sentence-transformers, so that it loads without selfsent."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn


def affine(weight: Tensor, bias: Tensor) -> Any:
    """The `Dense` module that maps a vector u to weight u + bias, in float32.

    Args:
        weight: (k, d).
        bias: (k,).
    """
    from sentence_transformers.base.modules import Dense

    k, d = weight.shape
    module = Dense(d, k, bias=True, activation_function=nn.Identity())
    with torch.no_grad():
        module.linear.weight.copy_(weight)
        module.linear.bias.copy_(bias)
    return module.to(weight.device)
