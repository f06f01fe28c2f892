"""The n-gram CNN: convolutions of several window sizes side by side, between the token states and the pooling.

It is made of sentence-transformers' own modules, so that a model that has it loads everywhere:

* `CNN`, the convolutions (Zhang et al. 2020, section 3.2);
* before it, where padding is to be masked, `WordWeights` with a weight of 1 for every token: it sets the states of
  padding to zero, which is what a convolution sees beyond a border anyway;
* after it, where there is an activation, a `Dense` of the identity with that activation.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from sentence_transformers.base.modules import Dense
from sentence_transformers.sentence_transformer.modules import CNN, WordWeights
from torch import Tensor, nn
from torch.nn import functional as F

from selfsent.data.packed import Packed


def ngram_modules(
    size: int, windows: Sequence[int], filters: int, vocabulary: int, masked: bool = True, relu: bool = False
) -> list[nn.Module]:
    """The modules of an n-gram CNN with fresh weights.

    Args:
        size: width of a token state.
        windows: tokens that a convolution sees, odd, one number for each.
        filters: channels of each convolution.
        vocabulary: token ids the transformer knows.
        masked: whether padding counts as zero; otherwise a vector depends on the longest sentence of its batch.
        relu: whether a ReLU follows.
    """
    modules: list[nn.Module] = [CNN(size, filters, list(windows))]
    if masked:
        modules.insert(0, WordWeights([""] * vocabulary, {}, unknown_word_weight=1.0).requires_grad_(False))
    if relu:
        width = filters * len(windows)
        identity = Dense(width, width, False, nn.ReLU(), torch.eye(width), module_input_name="token_embeddings")
        modules.append(identity.requires_grad_(False))
    return modules


def is_known(module: nn.Module) -> bool:
    """Whether a module between transformer and pooling is one of the above."""
    if isinstance(module, WordWeights):
        return bool((module.emb_layer.weight == 1).all())
    if isinstance(module, Dense):
        return bool(module.module_input_name == module.module_output_name == "token_embeddings")
    return isinstance(module, CNN) and set(module.stride_sizes) == {1} and all(k % 2 for k in module.kernel_sizes)


def reads_padding(modules: Sequence[nn.Module]) -> bool:
    """Whether the output depends on the padding of the batch: an unmasked convolution wider than one token."""
    masked = False
    for module in modules:
        if isinstance(module, CNN) and not masked and max(module.kernel_sizes) > 1:
            return True
        masked = isinstance(module, WordWeights)
    return False


def forward_packed(modules: Sequence[nn.Module], states: Tensor, packed: Packed) -> Tensor:
    """(tokens, e) from (tokens, d) states in packed order: the same as in a block padded with zeros."""
    for module in modules:
        if isinstance(module, CNN):
            states = convolve(module, states, packed)
        elif isinstance(module, Dense):
            states = module({"token_embeddings": states})["token_embeddings"]
    return states


def convolve(cnn: Any, states: Tensor, packed: Packed) -> Tensor:
    """The convolutions over packed tokens, never across the border of a sentence.

    One matrix product gives the contribution of every token to every position in every window. Neighbours in a
    sentence are neighbours in the packed row, so the sum over a window is a sum of shifted rows.

    Args:
        cnn: sentence-transformers' module.
        states: (tokens, d).
        packed: the batch they belong to.

    Returns:
        (tokens, windows x filters).
    """
    taps = [convolution.weight.permute(2, 0, 1).flatten(0, 1) for convolution in cnn.convs]
    contributions = torch.split(F.linear(states, torch.cat(taps)), [len(tap) for tap in taps], dim=-1)
    last = packed.lengths[packed.sentence] - 1 - packed.positions
    windows = []
    for convolution, window, size in zip(cnn.convs, contributions, cnn.kernel_sizes, strict=True):
        parts = window.chunk(size, dim=-1)
        total = parts[size // 2] + convolution.bias.to(window.dtype)
        for distance in range(1, size // 2 + 1):
            before, after = parts[size // 2 - distance], parts[size // 2 + distance]
            total = total + _shifted(before, distance) * (packed.positions >= distance)[:, None]
            total = total + _shifted(after, -distance) * (last >= distance)[:, None]
        windows.append(total)
    return torch.cat(windows, dim=-1)


def _shifted(rows: Tensor, distance: int) -> Tensor:
    """Row i is row i − distance of `rows`, zero where there is none."""
    kept = rows[: max(0, len(rows) - distance)] if distance > 0 else rows[min(len(rows), -distance) :]
    empty = len(rows) - len(kept)
    return F.pad(kept, (0, 0, empty, 0) if distance > 0 else (0, 0, 0, empty))
