"""Vectors of which the beginning is a vector, too: the loss of a method, summed over sizes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import torch
from torch import Tensor
from torch.nn import functional as F

from selfsent.data.packed import Packed
from selfsent.errors import SettingsError
from selfsent.methods.method import Learner, Loss
from selfsent.models.encoder import Encoder


class _Reading:
    """The vectors of one pass of a learner: computed once, read again for every size.

    Args:
        encoder: until `end`, it answers with this.
        whole: whether its vectors are never cut.
    """

    def __init__(self, encoder: Encoder, whole: bool) -> None:
        self._encoder, self._forward, self._whole = encoder, encoder.forward, whole
        self._found, self._at, self._size = list[Tensor](), 0, 0
        vars(encoder)["forward"] = self

    def begin(self, size: int) -> None:
        """Read from the start: the first `size` numbers of each vector, and zeros."""
        self._at, self._size = 0, size

    def __call__(self, packed: Packed, leave_out: int = 0) -> Tensor:
        """The next vectors, (sentences, d)."""
        if self._at == len(self._found):
            self._found.append(self._forward(packed, leave_out))
        vectors = self._found[self._at]
        self._at += 1
        return vectors if self._whole else F.pad(vectors[:, : self._size], (0, vectors.shape[1] - self._size))

    def end(self) -> None:
        """Give the encoder its own forward pass back."""
        del vars(self._encoder)["forward"]


class Matryoshka(Learner):
    """Σₘ L(u₁ … uₘ), m the model's sizes, L the loss of the learner it is put before (Kusupati et al. 2022, eq. 1).

    A cut vector has zeros in place of its end: its cosines, products and distances are those of the beginning alone,
    and layers of the learner that expect its width read it as well. The encoders themselves run once, whatever the
    number of sizes. `fixed` encoders are read whole: the knowledge of a base or a teacher is the aim for every size.

    Examples:
        >>> model.sizes = (384, 64)
        >>> learner = of_sizes(SimCSELearner)(model, SimCSE())
        >>> batch = pack(model, ["a cat sat", "dogs bark", "it rains"])
        >>> learner([batch, batch]).count
        3
    """

    def forward(self, views: Sequence[Packed], labels: Tensor | None = None) -> Loss:
        """The losses of all sizes, added; the count is of one of them."""
        trained = [part for part in self.modules() if isinstance(part, Encoder)]
        readings = [_Reading(each, whole=each in self.fixed) for each in (*trained, *self.fixed)]
        try:
            losses = []
            for size in self.model.sizes:
                for reading in readings:
                    reading.begin(size)
                losses.append(super().forward(views, labels))
        finally:
            for reading in readings:
                reading.end()
        return Loss(torch.stack([loss.total for loss in losses]).sum(), losses[0].count)


def of_sizes(kind: type[Learner]) -> type[Learner]:
    """The kind of learner whose loss is that of `kind`, summed over the sizes of its model."""
    return cast(type[Learner], type(kind.__name__, (Matryoshka, kind), {}))


def all_sizes(wanted: Sequence[int], width: int) -> tuple[int, ...]:
    """The sizes that are wanted, in descending order, after the whole width.

    Raises:
        SettingsError: a size is larger than the width.
    """
    if wanted and max(wanted) > width:
        raise SettingsError(f"matryoshka={max(wanted)} is too large: vectors of this encoder have {width} numbers")
    return (width, *sorted({*wanted} - {width}, reverse=True)) if wanted else ()
