"""Giving an encoder one of the heads a user can choose, and leaving parts of it as they are."""

from __future__ import annotations

import dataclasses
from typing import Any

import torch
from torch import nn

from selfsent.errors import BaseEncoderError, SettingsError
from selfsent.models.encoder import Encoder
from selfsent.models.heads.options import CNN_POOL, CnnPoolOptions, NgramOptions


def put_head(model: Encoder, options: Any) -> None:
    """Give an encoder the head that options describe, with fresh weights; one like it that is there already is kept.

    Args:
        model: the encoder.
        options: `NgramOptions` or `CnnPoolOptions`.

    Raises:
        BaseEncoderError: it has no token states.
        SettingsError: it has such a head of another shape, or one that this does not go with.
    """
    if model.is_static:
        raise BaseEncoderError(
            "this base is a table of token vectors, and takes their mean: what looks at single tokens needs a"
            " transformer, such as --base bundled-raw"
        )
    if isinstance(options, NgramOptions):
        _put_ngram_cnn(model, options)
    else:
        _put_cnn_pool(model, options)


def freeze_behind_tokens(model: Encoder) -> None:
    """Leave what stands behind transformer or table as it is, for a method that trains these alone.

    Several processes would wait for its gradients, which never come.
    """
    for module in list(model.sentence_transformer)[1:]:
        module.requires_grad_(False)


def _put_ngram_cnn(model: Encoder, options: NgramOptions) -> None:
    from selfsent.models.heads.ngram_cnn import ngram_modules

    windows = [int(size) for size in options.windows.split(",")]
    vocabulary = model.vocabulary_size
    modules = ngram_modules(
        model.hidden_size, windows, options.filters, vocabulary, options.masked, options.activation == "relu"
    )
    if not model.token_modules:
        model.put_before_pooling(modules, options.filters * len(windows))
    elif [_shape(module) for module in model.token_modules] != [_shape(module) for module in modules]:
        raise SettingsError(
            "this base has an n-gram CNN of another shape: give its --windows, --filters, --activation and --masked"
        )


def _shape(module: nn.Module) -> tuple[str, list[torch.Size]]:
    return type(module).__name__, [parameter.shape for parameter in module.parameters()]


def _put_cnn_pool(model: Encoder, options: CnnPoolOptions) -> None:
    from selfsent.models.heads.cnn_pool import CnnPool

    chosen = dataclasses.asdict(options)
    if model.pooling == CNN_POOL:
        if not model.pooling_module.like(chosen):
            raise SettingsError("this base has a CNN pooling with other options: give its --stride, --masked, --length")
        return
    if options.length:
        _fix_length(model, options.length)
    model.put_pooling(CnnPool(model.pooling_module.embedding_dimension, **chosen))


def _fix_length(model: Encoder, length: int) -> None:
    """Let every sentence be cut and, by sentence-transformers too, padded to so many tokens."""
    limit = int(model.tokenizer.model_max_length)
    if length > limit:
        raise SettingsError(f"--length is {length}; this base reads at most {limit} tokens")
    transformer = model.sentence_transformer[0]
    transformer.max_seq_length = length
    transformer.processing_kwargs = {"text": {"padding": "max_length"}}
