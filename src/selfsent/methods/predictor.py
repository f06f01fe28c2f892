"""The predictor of self-distillation methods, and batch norm that sees the batches of all processes."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from selfsent.distributed import gather, world_size


class BatchNorm(nn.Module):
    """Batch norm over the rows of all processes, in float32.

    It keeps no running statistics: a predictor is used in training only. (torch's synchronised one runs on CUDA alone.)
    """

    def __init__(self, size: int, epsilon: float = 1e-5) -> None:
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.ones(size)), nn.Parameter(torch.zeros(size))
        self.epsilon = epsilon

    def forward(self, rows: Tensor) -> Tensor:
        """(n, d) to (n, d); every process has as many rows."""
        return standardised(rows, self.epsilon) * self.weight + self.bias


def standardised(rows: Tensor, epsilon: float = 1e-5) -> Tensor:
    """(n, d) rows with each column at mean 0 and variance 1 over the rows of all processes, in float32."""
    rows = rows.float()
    total = len(rows) * world_size()
    centred = rows - gather(rows.sum(0, keepdim=True)).sum(0) / total
    variance = gather(centred.square().sum(0, keepdim=True)).sum(0) / total
    return centred * (variance + epsilon).rsqrt()


class Predictor(nn.Sequential):
    """d → kd → kd → d, with batch norm and ReLU between (Zhang et al. 2021, section 3), perhaps several in a row.

    Args:
        size: d.
        width: k; with 0 there is no predictor at all.
        chained: how many in a row.
        first_only: batch norm behind the first linear layer only, as in the authors' code.
    """

    def __init__(self, size: int, width: int = 8, chained: int = 1, first_only: bool = False) -> None:
        layers: list[nn.Module] = []
        inner = width * size
        for _ in range(chained if width else 0):
            second = [nn.Linear(inner, inner), *([] if first_only else [BatchNorm(inner)]), nn.ReLU()]
            layers += [nn.Linear(size, inner), BatchNorm(inner), nn.ReLU(), *second, nn.Linear(inner, size)]
        super().__init__(*layers)
