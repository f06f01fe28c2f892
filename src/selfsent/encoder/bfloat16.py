"""An encoder that is only run: its transformer in bfloat16, its weights laid out once as the processor reads them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

if TYPE_CHECKING:
    from selfsent.encoder.model import Encoder

ROWS = 2048
"""For which the layout of the weights is chosen; it serves any other number, too."""


class LaidOutLinear(nn.Linear):
    """`nn.Linear` that is only run; oneDNN lays a weight out anew at every call where it is not kept laid out."""

    laid_out: Tensor

    def forward(self, input: Tensor) -> Tensor:
        """(..., in) to (..., out)."""
        return _product(input, self.laid_out, self.bias)


def _product(states: Tensor, laid_out: Tensor, bias: Tensor | None) -> Tensor:
    result: Tensor = torch.ops.mkldnn._linear_pointwise(states, laid_out, bias, "none", [], "")
    return result


def into_bfloat16(model: Encoder) -> Encoder:
    """Let an encoder compute its token states in bfloat16 from now on; it can be run, and not be trained any more.

    Weights, products and what stands between layers are bfloat16. What makes a sentence's vector of its token states
    stays as it is: means are taken in float32.

    Args:
        model: an encoder on the device that it is to be run on. It is changed, and returned.
    """
    model.requires_grad_(False).eval()
    # Parameters alone: rotary frequencies are buffers, and rounded ones turn the end of a long text by radians.
    for parameter in model.transformer.parameters():
        parameter.data = parameter.data.to(torch.bfloat16)
    if model.device.type == "cpu":
        for part in model.transformer.modules():
            if type(part) is nn.Linear:
                _lay_out(part)
    return model


@torch.inference_mode()
def _lay_out(layer: Any) -> None:
    """Keep the weight of a linear layer as oneDNN wants it, where this torch has it and it computes the same."""
    try:
        laid_out = torch.ops.mkldnn._reorder_linear_weight(layer.weight, ROWS)
        probe = torch.ones(2, layer.in_features, dtype=layer.weight.dtype)
        same = torch.allclose(_product(probe, laid_out, layer.bias), layer(probe), atol=1e-2, rtol=1e-2)
    except (AttributeError, RuntimeError, NotImplementedError):
        return
    if same:
        layer.__class__, layer.laid_out = LaidOutLinear, laid_out
