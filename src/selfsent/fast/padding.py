"""Rows padded to few lengths, so that products of matrices reuse compiled shapes.

oneDNN compiles a bfloat16 product for its very shape, in 1.5 ms on a processor with AMX. Packed rows hardly ever have
the same length twice, so that a training step would compile some twenty products.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

_DIGITS = 4
"""Binary digits of a padded length that are not zero: padding is an eighth at most, a sixteenth on average."""
_SHORTEST = 8


def pad_rows(rows: Tensor) -> Tensor:
    """(n, ...) with zeros after them in bfloat16 training on a CPU; unchanged elsewhere.

    The caller cuts off the results of the zeros, so that no gradient comes back from there.
    """
    spare = _length(len(rows)) - len(rows) if compiles(rows.device) else 0
    return F.pad(rows, (0, 0) * (rows.dim() - 1) + (0, spare)) if spare else rows


def _length(rows: int) -> int:
    step = max(_SHORTEST, 1 << max(0, rows.bit_length() - _DIGITS))
    return -(-rows // step) * step


def compiles(device: torch.device) -> bool:
    """Whether products are compiled for their shapes; without gradients they are larger, and compiling is cheap."""
    low = torch.is_autocast_enabled("cpu") and torch.get_autocast_dtype("cpu") == torch.bfloat16
    return low and device.type == "cpu" and torch.is_grad_enabled()
