"""An encoder that is only run: products in 8 bits, on a processor that multiplies bytes."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional
from transformers.pytorch_utils import Conv1D

from selfsent.errors import BaseEncoderError
from selfsent.packing import Packed

if TYPE_CHECKING:
    from selfsent.encoder.model import Encoder

TEXTS, WORDS = 128, 14
"""Random texts, and tokens drawn for each, on which states are measured."""
SMOOTHING = 0.65
"""How much of a channel's range goes from the states to the weights (the alpha of Xiao et al. 2023, equation 4)."""
MARGIN = 1.1
"""Range that states are given, relative to what was measured."""
LEVELS = 255
LEAST = 0.999
"""Mean cosine to the float32 vectors of the random texts below which an encoder is not left in 8 bits."""


class Latest:
    """What was last put into bytes in an encoder: by which `Int8States`, which states, and their bytes."""

    made: tuple[Int8States, Tensor, Tensor] | None = None


class Int8States(nn.Module):
    """Token states in 8 bits, for all layers that read them: q = round(x · `multiplier` + `zero`), within 0 to 255.

    Args:
        states: (tokens, in) examples.
        channels: (in,) by what each channel is divided first.
        latest: of the encoder; what is in it is not computed again.
    """

    def __init__(self, states: Tensor, channels: Tensor, latest: Latest) -> None:
        super().__init__()
        scaled = states / channels
        least, most = (MARGIN * float(edge) for edge in (scaled.amin().clamp_max(0), scaled.amax().clamp_min(0)))
        self.scale = max(most - least, 1e-12) / LEVELS
        self.zero = round(-least / self.scale)
        self.multiplier = 1 / (channels * self.scale)
        # To whole numbers torch rounds down, these being positive.
        self.shift = torch.full_like(channels, self.zero + 0.5)
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

    def __init__(self, weight: Tensor, bias: Tensor | None, channels: Tensor, states: Int8States) -> None:
        super().__init__()
        self.out_features, self.in_features = weight.shape
        scaled = weight * channels
        self.scales = scaled.abs().amax(1).clamp_min(1e-12) / 127
        whole = (scaled / self.scales[:, None]).round().to(torch.int8)
        # Only what tells one model from another reads it: a resumed `encode`.
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
def into_int8(model: Encoder) -> Encoder:
    """Let an encoder on a CPU compute some of its products in 8 bits; it can be run, and not be trained any more.

    These are the linear layers with more outputs than inputs, layers that read the same states taken together: queries,
    keys and values, and the first of a feed-forward part. What they read comes from a norm, so its range hardly depends
    on the text and is measured on random tokens; the range is moved from channels of the states to the weights as in
    SmoothQuant (Xiao et al. 2023). The others, whose range does depend on the text, stay as they are.

    Args:
        model: an encoder in float32. It is changed, and returned.

    Raises:
        BaseEncoderError: its vectors would be too far from those of float32.
    """
    model.requires_grad_(False).eval()
    examples = _examples(model)
    exact, together = _read_together(model, examples)
    latest = Latest()
    for layers, states in together:
        weights = {name: _weight(layer) for name, layer in layers.items()}
        outputs, inputs = sum(map(len, weights.values())), states.shape[-1]
        if outputs <= inputs:
            continue
        of_states = states.abs().amax(0).clamp_min(1e-5)
        of_weights = torch.stack([weight.abs().amax(0) for weight in weights.values()]).amax(0).clamp_min(1e-5)
        channels = of_states**SMOOTHING / of_weights ** (1 - SMOOTHING)
        shared = Int8States(states, channels, latest)
        for name, layer in layers.items():
            quick = Int8Linear(weights[name], layer.bias, channels, shared)
            model.transformer.set_submodule(name, quick)
    cosine = float(functional.cosine_similarity(exact, model(examples)).mean())
    if not cosine >= LEAST:
        raise BaseEncoderError(
            f"8 bits are too few for this encoder (cosine to float32: {cosine:.4f}): leave out --int8"
        )
    return model


def _weight(layer: Any) -> Tensor:
    """As (out, in)."""
    weight: Tensor = layer.weight.T if isinstance(layer, Conv1D) else layer.weight
    return weight.float().contiguous()


def _read_together(model: Encoder, examples: Packed) -> tuple[Tensor, list[tuple[dict[str, Any], Tensor]]]:
    """Vectors of examples; and linear layers by name, those together that read the same states, with these.

    The states are (tokens, in).
    """
    read: dict[str, list[Tensor]] = defaultdict(list)
    hooks = []
    layers = {name: part for name, part in model.transformer.named_modules() if type(part) in (nn.Linear, Conv1D)}
    for name, layer in layers.items():
        hooks.append(layer.register_forward_hook(lambda _, given, __, name=name: read[name].append(given[0])))
    try:
        vectors = model(examples)
    finally:
        for hook in hooks:
            hook.remove()
    together: dict[tuple[int, ...], list[str]] = defaultdict(list)
    for name, states in read.items():
        together[tuple(map(id, states))].append(name)
    return vectors, [
        ({name: layers[name] for name in names}, torch.cat([s.float().flatten(0, -2) for s in read[names[0]]]))
        for names in together.values()
    ]


def _examples(model: Encoder) -> Packed:
    """Texts of random tokens, without those that have a meaning to the encoder."""
    tokenizer, draw = model.tokenizer, np.random.default_rng(0)
    plain = sorted(set(range(len(tokenizer))) - set(tokenizer.all_special_ids))
    texts = [tokenizer.decode(draw.choice(plain, WORDS)) for _ in range(TEXTS)]
    limit = tokenizer.model_max_length
    ids = [tokenizer(text, truncation=True, max_length=limit)["input_ids"] for text in texts]
    ids = [np.asarray(one, np.int64) for one in ids if one]
    return Packed(np.concatenate(ids), np.fromiter(map(len, ids), np.int64, len(ids)), device=model.device)
