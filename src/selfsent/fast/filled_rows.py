"""Rows that are a little longer than they need be, so that their products have shapes that were computed before.

oneDNN compiles a product of matrices in bfloat16 for its very shape, which takes 1.5 ms where the processor has AMX. A
packed row is hardly ever as long as another one, so that a step of training would compile some twenty products anew.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

_DIGITS = 4
"""Binary digits of a length that are not zero: a row gets longer by an eighth at most, by a sixteenth in the mean."""
_SHORTEST = 8


def filled(rows: Tensor) -> Tensor:
    """(n, ...) with zeros behind them, in training in bfloat16 on a CPU; as they are elsewhere.

    Whoever asks for this cuts what comes of the zeros off again, so that no gradient comes back from there.
    """
    spare = _length(len(rows)) - len(rows) if _compiles(rows.device) else 0
    return F.pad(rows, (0, 0) * (rows.dim() - 1) + (0, spare)) if spare else rows


def _length(rows: int) -> int:
    step = max(_SHORTEST, 1 << max(0, rows.bit_length() - _DIGITS))
    return -(-rows // step) * step


def _compiles(device: torch.device) -> bool:
    """Whether products are compiled for their shapes: when run only, far larger ones take most of the time."""
    low = torch.is_autocast_enabled("cpu") and torch.get_autocast_dtype("cpu") == torch.bfloat16
    return low and device.type == "cpu" and torch.is_grad_enabled()
