"""Mean and covariance of a stream of vectors, in float64, over all processes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import torch
from torch import Tensor

from selfsent.distributed import gather
from selfsent.fast.packing import Packed
from selfsent.models.dropout import without_dropout
from selfsent.models.encoder import Encoder


class Moments:
    """Count, mean and scatter matrix, merged part by part without cancellation (Chan et al. 1983, equation 2.1).

    Args:
        size: length of the vectors.
        device: where they are.
    """

    def __init__(self, size: int, device: torch.device | str = "cpu") -> None:
        self.count = 0.0
        self.mean = torch.zeros(size, dtype=torch.float64, device=device)
        self.scatter = torch.zeros(size, size, dtype=torch.float64, device=device)

    @property
    def covariance(self) -> Tensor:
        """(d, d) covariance of the vectors so far, divided by their count."""
        return self.scatter / max(self.count, 1.0)

    def add(self, vectors: Tensor) -> None:
        """Take in (n, d) vectors."""
        vectors = vectors.double()
        mean = vectors.mean(0)
        centred = vectors - mean
        self._merge(len(vectors), mean, centred.T @ centred)

    def _merge(self, count: float, mean: Tensor, scatter: Tensor) -> None:
        if not count:
            return
        total, shift = self.count + count, mean - self.mean
        self.scatter += scatter + torch.outer(shift, shift) * (self.count * count / total)
        self.mean += shift * (count / total)
        self.count = total

    def over_processes(self) -> Moments:
        """The moments of what all processes took in, the same on each."""
        together = Moments(len(self.mean), self.mean.device)
        counts = gather(self.mean.new_tensor([self.count])).tolist()
        for count, mean, scatter in zip(counts, gather(self.mean[None]), gather(self.scatter[None]), strict=True):
            together._merge(count, mean, scatter)
        return together


def vectors_of(model: Encoder, batches: Iterable[Sequence[Packed]]) -> Iterator[Tensor]:
    """(n, d) vectors of every view of every batch, without dropout and gradients."""
    with without_dropout(model):
        for views in batches:
            for view in views:
                with torch.no_grad():
                    vectors = model(view)
                yield vectors


def moments_of(model: Encoder, batches: Iterable[Sequence[Packed]]) -> Moments:
    """Mean and covariance of the vectors of all sentences, over all processes."""
    moments = Moments(model.embedding_size, model.device)
    for vectors in vectors_of(model, batches):
        moments.add(vectors)
    return moments.over_processes()
