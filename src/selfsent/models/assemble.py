"""Adding one of the heads that a user can choose to an encoder, and freezing parts of it."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from selfsent.errors import SettingsError
from selfsent.models.encoder import Encoder
from selfsent.models.heads.options import CNN_POOL, NgramOptions


def put_head(model: Encoder, options: Any) -> None:
    """Give an encoder the head that options describe, with fresh weights, unless it has the same one already.

    Args:
        model: the encoder.
        options: `NgramOptions` or `CnnPoolOptions`.

    Raises:
        BaseEncoderError: it has no token states.
        SettingsError: it has such a head of another shape.
    """
    model.require_transformer("a head reads the states of a transformer")
    if isinstance(options, NgramOptions):
        from selfsent.models.heads.ngram_cnn import ngram_modules

        windows = [int(size) for size in options.windows.split(",")]
        relu, vocabulary = options.activation == "relu", model.vocabulary_size
        modules = ngram_modules(model.hidden_size, windows, options.filters, vocabulary, options.masked, relu)
        if not model.token_modules:
            model.put_before_pooling(modules, options.filters * len(windows))
        elif list(map(_shape, model.token_modules)) != list(map(_shape, modules)):
            problem = "this base has an n-gram CNN of another shape: give the options that it was trained with"
            raise SettingsError(problem)
    elif model.pooling != CNN_POOL:
        from selfsent.models.heads.cnn_pool import CnnPool

        model.put_pooling(CnnPool(model.pooling_module.embedding_dimension, options.stride))
    elif model.pooling_module.stride != options.stride:
        own = model.pooling_module.stride
        raise SettingsError(f"this base has a CNN pooling of another stride: give stride={own}")


def _shape(module: nn.Module) -> tuple[str, list[torch.Size]]:
    return type(module).__name__, [parameter.shape for parameter in module.parameters()]


def freeze_after_tokens(model: Encoder) -> None:
    """Freeze everything after transformer or table, for a method that trains these alone.

    Several processes would wait for its gradients, which never come.
    """
    for module in list(model.sentence_transformer)[1:]:
        module.requires_grad_(False)
