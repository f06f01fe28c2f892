"""A normalising flow after the pooling: Glow (Kingma and Dhariwal 2018) on single vectors, as in BERT-flow."""

from __future__ import annotations

import math
from typing import Any, cast

import torch
from torch import Tensor, nn

from selfsent.models.heads.module import OwnModule

_FLAT = 1e-5
"""Relative standard deviation below which a dimension holds nothing but rounding errors."""


class ActNorm(nn.Module):
    """y = exp(3ℓ) (x + b) for each dimension; the 3 makes ℓ learn faster."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.shift = nn.Parameter(torch.zeros(size))
        self.log_scale = nn.Parameter(torch.zeros(size))

    def forward(self, x: Tensor) -> Tensor:
        """(n, d) to (n, d)."""
        return (3 * self.log_scale).exp() * (x + self.shift)

    @torch.no_grad()
    def start(self, x: Tensor) -> None:
        """Initialise so that (n, d) vectors like these come out with mean 0 and standard deviation 1.

        A constant dimension, which some encoders have, keeps its scale: a factor of a million in every norm would
        overflow.
        """
        self.shift.copy_(-x.mean(0))
        spread = x.std(0, correction=0)
        still = spread <= _FLAT * spread.max()
        self.log_scale.copy_(-(spread + 1e-6).where(~still, 1.0).log() / 3)

    def log_determinant(self) -> Tensor:
        """The logarithm of |det ∂y/∂x|, a scalar: the same for every x."""
        return 3 * self.log_scale.sum()


class Coupling(nn.Module):
    """y₁ = x₁, y₂ = x₂ + m(x₁): keeps the volume. m has two hidden layers with ActNorm and begins as zero."""

    def __init__(self, size: int, width: int) -> None:
        super().__init__()
        self.sizes = [size - size // 2, size // 2]
        self.hidden = nn.Sequential(
            nn.Linear(self.sizes[0], width, bias=False),
            ActNorm(width),
            nn.ReLU(),
            nn.Linear(width, width, bias=False),
            ActNorm(width),
            nn.ReLU(),
        )
        self.output = nn.Linear(width, self.sizes[1])
        self.log_scale = nn.Parameter(torch.zeros(self.sizes[1]))
        for layer in self.hidden:
            if isinstance(layer, nn.Linear):
                nn.init.normal_(layer.weight, std=0.05)
        nn.init.zeros_(self.output.weight)
        nn.init.zeros_(self.output.bias)

    def shift(self, x: Tensor) -> Tensor:
        """m(x₁), (n, d₂) from (n, d₁)."""
        return cast(Tensor, self.output(self.hidden(x)) * (3 * self.log_scale).exp())

    def forward(self, x: Tensor) -> Tensor:
        """(n, d) to (n, d)."""
        first, second = torch.split(x, self.sizes, dim=-1)
        return torch.cat([first, second + self.shift(first)], dim=-1)


class Step(nn.Module):
    """ActNorm, the dimensions in reverse order, coupling."""

    def __init__(self, size: int, width: int) -> None:
        super().__init__()
        self.norm, self.coupling = ActNorm(size), Coupling(size, width)

    def forward(self, x: Tensor) -> Tensor:
        """(n, d) to (n, d)."""
        return cast(Tensor, self.coupling(self.norm(x).flip(-1)))


class Flow(OwnModule):
    """An invertible map of (n, d) vectors, trained to make them standard normal.

    After every level but the last, half of the dimensions is split off as finished.

    Args:
        size: d.
        levels: how often the vector is halved, plus one.
        depth: steps in a level.
        width: hidden units of the couplings.
    """

    config_keys = ("size", "levels", "depth", "width")

    def __init__(self, size: int, levels: int = 3, depth: int = 3, width: int = 32) -> None:
        super().__init__()
        self.size, self.levels, self.depth, self.width = size, levels, depth, width
        self.sizes = [size]
        for _ in range(levels - 1):
            self.sizes.append(self.sizes[-1] - self.sizes[-1] // 2)
        self.steps = nn.ModuleList(nn.ModuleList(Step(each, width) for _ in range(depth)) for each in self.sizes)

    def forward(self, features: dict[str, Any], **_: Any) -> dict[str, Any]:
        """As a module of a SentenceTransformer: replaces the sentence vector."""
        features["sentence_embedding"] = self.transformed(features["sentence_embedding"])
        return features

    def transformed(self, x: Tensor) -> Tensor:
        """(n, d) to (n, d), in float32 always."""
        with torch.autocast(x.device.type, enabled=False):
            x, done = x.float(), []
            for level, steps in enumerate(self.steps):
                for step in cast(nn.ModuleList, steps):
                    x = step(x)
                if level < self.levels - 1:
                    x, part = torch.split(x, [self.sizes[level + 1], self.sizes[level] // 2], dim=-1)
                    done.append(part)
            return torch.cat([*done, x], dim=-1)

    def log_determinant(self) -> Tensor:
        """The logarithm of |det ∂z/∂x|, a scalar: only the steps' ActNorms change the volume, for every x alike."""
        steps = [cast(Step, step) for level in self.steps for step in cast(nn.ModuleList, level)]
        return torch.stack([step.norm.log_determinant() for step in steps]).sum()

    def log_likelihood(self, x: Tensor) -> Tensor:
        """(n,) log densities of (n, d) vectors: log N(z; 0, I) + log |det ∂z/∂x|, in nats."""
        z = self.transformed(x)
        normal = -0.5 * (z.square().sum(-1) + self.size * math.log(2 * math.pi))
        return normal + self.log_determinant()

    @torch.no_grad()
    def start(self, x: Tensor) -> None:
        """Initialise every ActNorm from its inputs for (n, d) vectors."""
        norms = [module for module in self.modules() if isinstance(module, ActNorm)]
        hooks = [norm.register_forward_pre_hook(lambda norm, given: norm.start(*given)) for norm in norms]
        self.transformed(x)
        for hook in hooks:
            hook.remove()

    def get_embedding_dimension(self) -> int:
        """Length of the vectors that come out."""
        return self.size
