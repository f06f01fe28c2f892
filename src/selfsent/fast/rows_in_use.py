"""Training of the rows of a table that the texts hold, in place of all of them: no other row ever moves."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn


class RowsInUse:
    """Some rows of a table as a parameter of their own, which is trained in place of the table.

    A corpus holds a fifth of the words of a large table, but gradients, their norm, moments and steps are computed for
    all rows. The gradients of a row without a text are zero, so that without weight decay it is unchanged.

    Args:
        weight: (n, d) the table, which is kept in step.
        used: (m,) the rows, ascending, so that sums over them round as sums over all do.

    Examples:
        >>> table = nn.Parameter(torch.ones(5, 2))
        >>> rows = RowsInUse(table, np.array([1, 3]))
        >>> rows.part.data += 1
        >>> rows.write()
        >>> table[:, 0].tolist()
        [1.0, 2.0, 1.0, 2.0, 1.0]
    """

    def __init__(self, weight: Tensor, used: np.ndarray) -> None:
        self.weight, self.used = weight, torch.from_numpy(used)
        self.place = torch.full((len(weight),), -1)
        """(n,) the row of `part` for each row of the table; -1, which no lookup takes, for those left out."""
        self.place[self.used] = torch.arange(len(used))
        self.part = nn.Parameter(weight.detach()[self.used])
        """(m, d) the rows."""

    def read(self) -> None:
        """Take the rows from the table, which was changed."""
        self.part.data.copy_(self.weight.detach()[self.used])

    def write(self) -> None:
        """Put the rows into the table."""
        self.weight.data.index_copy_(0, self.used, self.part.data)

    def in_place_of(self, weight: Tensor) -> Tensor:
        """The parameter that is trained for this one."""
        return self.part if weight is self.weight else weight

    def train_by(self, optimizer: torch.optim.Optimizer) -> None:
        """Keep the table in step, and moments in checkpoints those of the whole table, as if it were trained."""
        trained = [each for group in optimizer.param_groups for each in group["params"]]
        number = next(place for place, each in enumerate(trained) if each is self.part)

        def widen(_: Any, state: dict[str, Any]) -> None:
            moments = state["state"].get(number, {})
            state["state"] = {**state["state"], number: {name: self._whole(each) for name, each in moments.items()}}

        def narrow(_: Any, state: dict[str, Any]) -> None:
            moments = state["state"].get(number, {})
            for name, each in moments.items():
                moments[name] = each[self.used] if each.shape == self.weight.shape else each

        optimizer.register_step_post_hook(lambda *_: self.write())
        optimizer.register_state_dict_post_hook(widen)
        optimizer.register_load_state_dict_pre_hook(narrow)

    def _whole(self, moment: Tensor) -> Tensor:
        if moment.shape != self.part.shape:
            return moment
        return torch.zeros_like(self.weight).index_copy_(0, self.used, moment)
