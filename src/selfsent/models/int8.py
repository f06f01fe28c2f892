"""Inference in 8 bits, on a CPU with AVX-512 VNNI."""

from __future__ import annotations

import threading
from collections import defaultdict
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from selfsent.data.packed import Packed
from selfsent.errors import BaseEncoderError
from selfsent.foreign.transformers import is_conv1d

if TYPE_CHECKING:
    from selfsent.models.encoder import Encoder

TEXTS, WORDS = 128, 14
"""Random texts, and tokens drawn for each, on which states are measured."""
ALPHA = 0.65
"""Share of a channel's range that moves from the states to the weights (Xiao et al. 2023, equation 4)."""
MARGIN = 1.1
"""Range of the states relative to the measured one."""
LEVELS = 255
MIN_COSINE = 0.999
"""Mean cosine to the float32 vectors of the random texts below which an encoder is not left in 8 bits."""


class Latest(threading.local):
    """The last conversion of an encoder's states in this thread: its `Int8States`, the states, and their bytes."""

    made: tuple[Int8States, Tensor, Tensor] | None = None


class Int8States(nn.Module):
    """Token states in 8 bits, for all layers that read them: q = round(x · `multiplier` + `zero`), within 0 to 255.

    Args:
        least: (in,) smallest number of each channel that was met.
        most: (in,) the largest.
        channels: (in,) by what each channel is divided first.
        latest: cache of the encoder's last conversion.
    """

    multiplier: Tensor
    shift: Tensor

    def __init__(self, least: Tensor, most: Tensor, channels: Tensor, latest: Latest) -> None:
        super().__init__()
        low, high = MARGIN * float((least / channels).amin()), MARGIN * float((most / channels).amax())
        low, high = min(low, 0.0), max(high, 0.0)
        self.scale = max(high - low, 1e-12) / LEVELS
        self.zero = round(-low / self.scale)
        self.register_buffer("multiplier", 1 / (channels * self.scale))
        # To whole numbers torch rounds down, these being positive.
        self.register_buffer("shift", torch.full_like(channels, self.zero + 0.5))
        self.latest = latest

    def forward(self, states: Tensor) -> Tensor:
        """(..., in) to the same in unsigned bytes; computed once for layers that are given the same tensor."""
        made = self.latest.made
        if made is None or made[0] is not self or made[1] is not states:
            moved = torch.addcmul(self.shift, states.float(), self.multiplier).clamp_(0, LEVELS + 0.5)
            # By way of 16 bits, torch takes a quarter of the time.
            made = self.latest.made = self, states, moved.to(torch.int16).to(torch.uint8)
        return made[2]


class Int8Linear(nn.Module):
    """A linear layer with a scale for each output, of states with a scale for all.

    Args:
        weight: (out, in) in float32.
        bias: (out,), or None.
        channels: (in,) by what the states' channels were divided.
        states: makes their bytes.
    """

    scales: Tensor

    def __init__(self, weight: Tensor, bias: Tensor | None, channels: Tensor, states: Int8States) -> None:
        super().__init__()
        self.out_features, self.in_features = weight.shape
        scaled = weight * channels
        self.register_buffer("scales", scaled.abs().amax(1).clamp_min(1e-12) / 127)
        whole = (scaled / self.scales[:, None]).round().to(torch.int8)
        # A parameter, so that the fingerprint of the model includes it.
        self.weight = nn.Parameter(whole, requires_grad=False)
        self.zeros = torch.zeros(len(whole), dtype=torch.int64)
        self.bias = None if bias is None else nn.Parameter(bias.float(), requires_grad=False)
        self.states = states
        self.laid_out = torch.ops.onednn.qlinear_prepack(whole, None)

    def forward(self, input: Tensor) -> Tensor:
        """(..., in) to (..., out), in bfloat16 under autocast and else in float32."""
        kind = torch.bfloat16 if torch.is_autocast_enabled("cpu") else torch.float32
        given = self.states(input), self.states.scale, self.states.zero
        weights = self.laid_out, self.scales, self.zeros, self.bias
        return cast(Tensor, torch.ops.onednn.qlinear_pointwise(*given, *weights, 1.0, 0, kind, "none", [], ""))


@torch.inference_mode()
def into_int8(model: Encoder, min_cosine: float = MIN_COSINE) -> Encoder:
    """Switch some products of an encoder on a CPU to 8 bits, for inference only.

    These are the linear layers with more outputs than inputs, layers that read the same states taken together: mostly
    queries, keys and values, and the first of a feed-forward part. Their inputs come from a norm, so their range
    hardly depends on the text and is measured on random tokens; the range is moved from channels of the states to the
    weights as in SmoothQuant (Xiao et al. 2023). The others, whose range does depend on the text, stay as they are.

    Args:
        model: an encoder in float32. It is changed, and returned.
        min_cosine: mean cosine to the float32 vectors of random texts, at least.

    Raises:
        BaseEncoderError: its vectors differ too much from float32.
    """
    model.requires_grad_(False).eval()
    examples = _examples(model)
    exact, together = _read_together(model, examples)
    latest = Latest()
    for names, least, most in together:
        layers = {name: model.transformer.get_submodule(name) for name in names}
        weights = {name: _weight(layer) for name, layer in layers.items()}
        if sum(map(len, weights.values())) <= len(most):
            continue
        of_states = torch.maximum(most, -least).clamp_min(1e-5)
        of_weights = torch.stack([weight.abs().amax(0) for weight in weights.values()]).amax(0).clamp_min(1e-5)
        channels = of_states**ALPHA / of_weights ** (1 - ALPHA)
        shared = Int8States(least, most, channels, latest)
        for name, layer in layers.items():
            model.transformer.set_submodule(name, Int8Linear(weights[name], layer.bias, channels, shared))
    cosine = float(functional.cosine_similarity(exact, model(examples)).mean())
    if not cosine >= min_cosine:
        raise BaseEncoderError(f"8 bits are too few for this encoder (cosine {cosine:.4f}): leave out `int8`")
    return model


def _weight(layer: Any) -> Tensor:
    """The weight of a layer as (out, in)."""
    weight: Tensor = layer.weight.T if is_conv1d(layer) else layer.weight
    return weight.float().contiguous()


def _read_together(model: Encoder, examples: Packed) -> tuple[Tensor, list[tuple[list[str], Tensor, Tensor]]]:
    """Vectors of examples; names of layers that read the same states, and the range of each channel of these."""
    read: dict[str, list[int]] = defaultdict(list)
    ranges: list[Tensor] = []
    latest: Tensor | None = None

    def note(name: str, states: Tensor) -> None:
        nonlocal latest
        if states is not latest:
            ranges.append(torch.stack(torch.aminmax(states.float().flatten(0, -2), dim=0)))
            latest = states
        read[name].append(len(ranges) - 1)

    hooks = [
        part.register_forward_hook(lambda _, given, __, name=name: note(name, given[0]))
        for name, part in model.transformer.named_modules()
        if type(part) is nn.Linear or is_conv1d(part)
    ]
    try:
        vectors = model(examples)
    finally:
        for hook in hooks:
            hook.remove()
    together: dict[tuple[int, ...], list[str]] = defaultdict(list)
    for name, calls in read.items():
        together[tuple(calls)].append(name)
    found = ((names, torch.stack([ranges[call] for call in calls])) for calls, names in together.items())
    return vectors, [(names, each[:, 0].amin(0), each[:, 1].amax(0)) for names, each in found]


def _examples(model: Encoder) -> Packed:
    """Texts of random tokens, without special ones."""
    tokenizer, draw = model.tokenizer, np.random.default_rng(0)
    plain = np.array(sorted(set(range(len(tokenizer))) - set(tokenizer.all_special_ids)))
    texts = [tokenizer.decode(draw.choice(plain, WORDS)) for _ in range(TEXTS)]
    ids = [one for one in tokenizer(texts, truncation=True, max_length=tokenizer.model_max_length)["input_ids"] if one]
    lengths = np.fromiter(map(len, ids), np.int64, len(ids))
    return Packed(np.concatenate(ids).astype(np.int64), lengths, device=model.device)
