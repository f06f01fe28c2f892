"""A batch that goes through an encoder in parts, of which vectors alone are kept until their gradient is known."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

from selfsent.distributed import world_size


def in_parts(encode: Callable[[slice], Tensor], count: int, size: int, weights: Sequence[Tensor]) -> Tensor:
    """(count, d) vectors, made `size` at a time.

    In the backward pass each part is computed again, with the same random numbers, when the gradient of its vectors has
    come back. Loss and gradient equal one pass over all (GradCache: Gao et al., 2021, arXiv:2101.06983).

    Args:
        encode: makes the vectors of some, (part, d).
        count: of all vectors.
        size: of a part.
        weights: the parameters of `encode`, on its device.
    """
    parts = [slice(start, min(start + size, count)) for start in range(0, count, size)]
    if not torch.is_grad_enabled():
        return torch.cat([encode(part) for part in parts])
    vectors: Tensor = _Cached.apply(encode, parts, *weights)  # type: ignore[no-untyped-call]  # torch's own
    return vectors


class _Cached(torch.autograd.Function):
    """With several processes the gradients are handed back as those of the weights, and so reduced as any other.

    With one they are added to what is there, so that no second block of all of them is held: `torch.utils.checkpoint`
    holds one, and the graph of the first pass (peak memory 1.33 times that of a small batch, in place of 1.24).
    """

    @staticmethod
    def forward(ctx: Any, encode: Callable[[slice], Tensor], parts: Sequence[slice], *weights: Tensor) -> Tensor:
        device, kind = weights[0].device, weights[0].device.type
        ctx.encode, ctx.parts, ctx.weights, ctx.states = encode, parts, weights, []
        ctx.precision = kind, torch.get_autocast_dtype(kind), torch.is_autocast_enabled(kind)
        vectors = []
        for part in parts:
            ctx.states.append((torch.get_rng_state(), torch.cuda.get_rng_state(device) if kind == "cuda" else None))
            with _precision(ctx):
                vectors.append(encode(part))
        return torch.cat(vectors)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        sums: list[Tensor | None] = [None] * len(ctx.weights)
        for part, state in zip(ctx.parts, ctx.states, strict=True):
            with torch.enable_grad(), _precision(ctx), _random_numbers(ctx.weights[0].device, state):
                vectors = ctx.encode(part)
            if world_size() == 1:
                torch.autograd.backward(vectors, grads[0][part].to(vectors.dtype))
                continue
            found = torch.autograd.grad(vectors, ctx.weights, grads[0][part].to(vectors.dtype), allow_unused=True)
            both = zip(sums, found, strict=True)
            sums = [new if old is None else old if new is None else old.add_(new) for old, new in both]
        return None, None, *sums


def _precision(ctx: Any) -> Any:
    """The precision of the first pass, without its copies of weights in few bits, which have no gradient."""
    kind, dtype, enabled = ctx.precision
    return torch.autocast(kind, dtype, enabled, cache_enabled=False)


@contextmanager
def _random_numbers(device: torch.device, state: tuple[Tensor, Tensor | None]) -> Iterator[None]:
    """Within the block, the random numbers from this state on."""
    with torch.random.fork_rng([device] if device.type == "cuda" else []):
        torch.set_rng_state(state[0])
        if state[1] is not None:
            torch.cuda.set_rng_state(state[1], device)
        yield
