"""Distillation into a table without steps: the rows that come nearest to a teacher's vectors of one's own texts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor
from torch.nn import functional as F

from selfsent.data.packed import Packed
from selfsent.data.views.view import View
from selfsent.distributed import gather
from selfsent.errors import SettingsError
from selfsent.methods.matryoshka import all_sizes
from selfsent.methods.method import ONE_PASS, AnyBase, Learner, Method, MethodOptions, require_table
from selfsent.models.bases import resolve
from selfsent.models.encoder import Encoder
from selfsent.models.loading import load_encoder
from selfsent.models.prompts import Prompts
from selfsent.models.static import StaticEncoder
from selfsent.naming import names
from selfsent.settings import setting

_COMMON = 0.5
"""Share of the mean of the teacher's vectors that is taken off: what all texts have in common tells none apart."""
_RIDGE = 0.01
"""Share of the mean square of a table's numbers that is added to each: of fewer texts than numbers, rounding would
decide on the map to the teacher's, and on all tokens that they do not have."""
_STEPS, _NEAR = 100, 1e-3
"""Steps of the solver at most, and the share of the first residual at which it ends."""
_TINY = 1e-20
"""Added up by no step of the solver: where few texts are solved exactly, it would divide by zero."""


@dataclass(frozen=True)
class LeastSquares(MethodOptions):
    """Knowledge distillation into a table of token vectors, by least squares.

    Σ ‖Σₜ wₜ ∕ √n − g‖² + λ Σₜ √cₜ ‖wₜ − bₜ‖², w the vectors of a text's n tokens, b those before, c how often a
    token occurs, g the teacher's vector.

    Reimers and Gurevych, 2020, whose loss is solved for. arXiv:2004.09813.
    """

    teacher: str = setting("", "the encoder to follow, or several with commas")
    stiffness: float = setting(0.2, "λ, by which token vectors stay near those before", above=0.0, maximum=1e6)
    dimensions: int = setting(0, "numbers of a vector, the widest directions; 0 for as many as before", minimum=0)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.teachers:
            raise SettingsError("least-squares follows another encoder: give teacher=ENCODER")

    @property
    def teachers(self) -> tuple[str, ...]:
        """The encoders to follow."""
        return tuple(filter(None, names(self.teacher)))

    def views(self) -> tuple[View, ...]:
        """The text, with the teacher's vector."""
        return (View(precomputed=True),)

    def check_base(self, base: AnyBase, dropout: float | None = None) -> None:
        """Reject a base that is no table of token vectors."""
        require_table("least-squares fits", base)


class Bags:
    """The matrix B of a token's weight in a text, its count over the root of the text's n tokens: texts are B W.

    Args:
        ids: (tokens,) the tokens of all texts, text after text.
        lengths: (texts,) tokens of each, none zero.
        vocabulary: number of different tokens.
    """

    def __init__(self, ids: Tensor, lengths: Tensor, vocabulary: int) -> None:
        texts = torch.arange(len(lengths), device=ids.device)
        places, counts = torch.unique(texts.repeat_interleave(lengths) * vocabulary + ids, return_counts=True)
        self._texts, self._ids = places // vocabulary, places % vocabulary
        self._weights = counts / lengths[self._texts].sqrt()
        self._order = self._ids.argsort(stable=True)
        self._starts = _starts(torch.bincount(self._texts, minlength=len(lengths)))
        self._back_starts = _starts(torch.bincount(self._ids, minlength=vocabulary))
        self.squares = total(self._weights.new_zeros(vocabulary).index_add(0, self._ids, self._weights.square()))
        """(vocabulary,) the diagonal of BᵀB, over all processes."""

    def of(self, table: Tensor) -> Tensor:
        """B W, (texts, d), of W (vocabulary, d)."""
        return F.embedding_bag(self._ids, table, self._starts, mode="sum", per_sample_weights=self._weights)

    def back(self, rest: Tensor) -> Tensor:
        """BᵀR, (vocabulary, d), of R (texts, d), over all processes."""
        ids, weights = self._texts[self._order], self._weights[self._order]
        return total(F.embedding_bag(ids, rest, self._back_starts, mode="sum", per_sample_weights=weights))


def _starts(counts: Tensor) -> Tensor:
    return counts.cumsum(0) - counts


def total(local: Tensor) -> Tensor:
    """The sum over all processes."""
    return gather(local[None]).sum(0)


def solve(bags: Bags, goals: Tensor, begin: Tensor, stiffness: float) -> Tensor:
    """The table W of the least ‖B W − G‖² + λ Σₜ √cₜ ‖wₜ − w₀ₜ‖², (vocabulary, d), c the diagonal of BᵀB.

    Conjugate gradients on the normal equations, divided by their diagonal; each of the d columns has its own steps.

    Args:
        bags: B, of the texts.
        goals: G, (texts, d).
        begin: W₀, (vocabulary, d).
        stiffness: λ.
    """
    weight = stiffness * bags.squares[:, None].sqrt()
    diagonal = bags.squares[:, None] + weight
    table = begin
    rest = bags.back(goals - bags.of(table))
    way = rest / diagonal
    size = first = (rest * way).sum(0)
    for _ in range(_STEPS):
        ahead = bags.back(bags.of(way)) + weight * way
        step = size / (way * ahead).sum(0).clamp_min(_TINY)
        table, rest = table + step * way, rest - step * ahead
        scaled = rest / diagonal
        size, before = (rest * scaled).sum(0), size
        if bool((size <= _NEAR**2 * first).all()):
            break
        way = scaled + size / before.clamp_min(_TINY) * way
    return table


class LeastSquaresLearner(Learner):
    """‖B W − G‖² + λ Σₜ √cₜ ‖wₜ − w₀ₜ‖²: a fit, without steps, of the table W to a teacher's vectors G of the texts.

    B has the weight of each token in each text, its count over the root of the number n of tokens. That is the mean of
    the tokens' vectors but for a factor √n, which the cosine does not see: vectors of long texts come out shorter.

    G are the teacher's vectors, of length 1 (of several teachers, side by side), less half of their mean, in their d
    widest directions. W₀ is the table before, led into them by u → M u of least squares, u the unit vectors of texts.
    c is the diagonal of BᵀB: the root is between a start that holds all tokens alike, by which rare ones hardly move,
    and one that holds each as firmly as its texts pull. Tokens that no text has keep their vector in W₀.

    | | shape | |
    |---|---|---|
    | `prepare` | all texts | packed, a batch at a time, once, with the teacher's vectors in `vectors`, (n, t) |
    | `forward` |  | is never called |

    Raises:
        BaseEncoderError: the base is no table of token vectors.
        SettingsError: more dimensions are asked for than the teachers' vectors have.

    Examples:
        >>> learner = LeastSquaresLearner(load_encoder("bundled"), LeastSquares(teacher="bundled"))
        >>> batch = pack(learner.model, ["a cat sat", "dogs bark", "it rains", "wet"])
        >>> batch.vectors = learner.features(batch)
        >>> learner.prepare([[batch]])
    """

    options: LeastSquares
    model: StaticEncoder

    def __init__(self, model: Encoder, options: LeastSquares) -> None:
        super().__init__(model, options)
        # In a tuple they are no submodules: neither trained, nor wrapped, nor part of checkpoints.
        self.teachers = tuple(load_encoder(name).eval().requires_grad_(False) for name in options.teachers)
        for name, teacher in zip(options.teachers, self.teachers, strict=True):
            prompts = Prompts.of(resolve(name))
            replace(prompts, symmetric=prompts.document).put(teacher)
        self.sizes = [teacher.embedding_size for teacher in self.teachers]
        if options.dimensions > sum(self.sizes):
            problem = f"dimensions={options.dimensions:,} is more than the {sum(self.sizes):,} numbers"
            raise SettingsError(f"{problem} of a vector of {options.teacher}: give at most as many")

    @torch.no_grad()
    def features(self, packed: Packed) -> Tensor:
        """(texts, t) vectors of the teachers, side by side, from tokens that all of them know."""
        return torch.cat([teacher.to(packed.device)(packed).float() for teacher in self.teachers], dim=1)

    @torch.no_grad()
    def prepare(self, batches: Iterable[Sequence[Packed]]) -> None:
        """The whole fit."""
        model, sizes = self.model, self.sizes
        none = torch.zeros(0, dtype=torch.long, device=model.device)  # all that a process without a share has
        ids, lengths, vectors = [none], [none], [torch.zeros(0, sum(sizes), device=model.device)]
        for view, *_ in batches:
            assert view.vectors is not None
            parts = torch.split(view.vectors.float(), sizes, dim=1)
            vectors.append(torch.cat([F.normalize(part, dim=1) for part in parts], dim=1))
            ids.append(view.flat_ids.long())
            lengths.append(torch.from_numpy(view.given_lengths).to(view.flat_ids.device))
        with torch.autocast(model.device.type, enabled=False):
            goals, counts = torch.cat(vectors), torch.cat(lengths)
            known = goals.any(dim=1)  # a teacher without a token of a text says nothing of it
            read = torch.cat(ids)[known.repeat_interleave(counts)]
            used = total(torch.bincount(read, minlength=model.vocabulary_size)).nonzero().squeeze(1)
            bags = Bags(torch.searchsorted(used, read), counts[known], len(used))
            model.put_rows(self._fitted(bags, goals[known], used))
        model.sizes = all_sizes(model.sizes[1:], model.embedding_size)

    def _fitted(self, bags: Bags, goals: Tensor, used: Tensor) -> Tensor:
        """The table W, (vocabulary, d), from (texts, t) vectors of the teacher, and the tokens that texts have."""
        number = float(total(goals.new_tensor(float(len(goals)))))
        goals = goals - _COMMON * total(goals.sum(0)) / number
        size = min(self.options.dimensions or self.model.embedding_size, goals.shape[1])
        widest = torch.linalg.eigh(total(goals.T @ goals).double())[1].flip(1)[:, :size]
        goals = goals @ widest.float()
        table = self.model.table.weight.detach().float()
        u = F.normalize(bags.of(table[used]), dim=1)
        inner, outer = total(u.T @ u).double(), total(u.T @ goals).double()
        ridge = _RIDGE * inner.diagonal().mean() * torch.eye(len(inner), device=inner.device)
        begin: Tensor = table @ torch.linalg.solve(inner + ridge, outer).float()
        reached = bags.of(begin[used])
        begin *= total((reached * goals).sum()) / total(reached.square().sum()).clamp_min(_TINY)
        begin[used] = solve(bags, goals, begin[used], self.options.stiffness)
        return begin


LeastSquares.method = Method(
    "least-squares",
    LeastSquares,
    LeastSquaresLearner,
    defaults=ONE_PASS.replace(max_length=512),
    static=ONE_PASS.replace(max_length=512),
    default_base="bundled",
    supervised=True,
)
