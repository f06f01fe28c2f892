"""Averaging two layers' states for the pooling, by sentence-transformers' own module."""

from __future__ import annotations

from typing import Any, Literal

import torch
from torch import Tensor, nn

Layers = Literal["last", "first+last", "embeddings+last"]
"""`first` is the first transformer layer's output, `embeddings` its input.

BERT-flow's "avg-last-2" is `first+last`; its PyTorch port's and SimCSE's "first-last average" are `embeddings+last`.
"""


def layer_mean(size: int, layers: int, which: Layers) -> nn.Module:
    """The `WeightedLayerPooling` that averages two layers.

    Args:
        size: width of a token state.
        layers: number of layers of the transformer.
        which: `first+last` or `embeddings+last`.
    """
    from sentence_transformers.sentence_transformer.modules import WeightedLayerPooling

    weights = torch.zeros(layers + 1)
    weights[[1 if which == "first+last" else 0, layers]] = 1.0
    module: nn.Module = WeightedLayerPooling(size, layers, 0, nn.Parameter(weights, requires_grad=False))
    return module


def is_layer_mean(module: nn.Module) -> bool:
    """Whether a module is such a mean, of any layers."""
    return type(module).__name__ == "WeightedLayerPooling"


def mean_of(module: Any, hidden_states: tuple[Tensor, ...]) -> Tensor:
    """The weighted mean of the layers' states, each (batch, length, d); layers of weight zero are skipped."""
    share = module.layer_weights / module.layer_weights.sum()
    used = [layer for layer, weight in enumerate(share.tolist()) if weight]
    return torch.stack([share[layer] * hidden_states[module.layer_start + layer] for layer in used]).sum(0)
