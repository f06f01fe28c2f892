"""A plan: configurations of a search from cheap to dear; its result, and which of them to take."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import log10
from typing import Any

from rich.table import Table

from selfsent.display import span, table_of
from selfsent.errors import SettingsError
from selfsent.evaluation.results import Score
from selfsent.exam.exam import NAME
from selfsent.exam.price import Price, as_json, significant
from selfsent.stats.resampling import Difference

TRAINED = "TRAINED"
"""Stands for the model that a row trains."""
FOLDER, RESULT = "plan", "plan.json"
"""Folder in an exam, and its file with the result."""


@dataclass(frozen=True)
class Row:
    """A configuration.

    Args:
        name: as people would say it.
        model: as for `load_scorer`.
        train: options of a training, whose model is `TRAINED` in `model`.
        candidates: texts of a query that are reranked.
        prompts: before a `query` and a `document`, in place of the model's own; empty for none.
        after: name of a row: this one is left out if that one was stopped.
    """

    name: str
    model: str
    train: Mapping[str, Any] | None = None
    candidates: int | None = None
    prompts: Mapping[str, str] | None = None
    after: str | None = None


@dataclass(frozen=True)
class Plan:
    """Rows, from cheap to dear.

    Args:
        rows: to try.
        worth: points that ten times the price must bring.
        cheap: seconds of the processor for 100,000 texts and 10,000 queries up to which the price does not matter.

    Raises:
        SettingsError: no rows, two of one name, or one after a row that does not come before it.
    """

    rows: Sequence[Row]
    worth: float = 1.0
    cheap: float = 600.0

    def __post_init__(self) -> None:
        seen = set[str]()
        for row in self.rows:
            if row.name in seen:
                raise SettingsError(f"two rows of the plan are called {row.name}: give each a name of its own")
            if row.after is not None and row.after not in seen:
                raise SettingsError(f"the row {row.name} comes after {row.after}, which is no row before it")
            if (TRAINED in row.model) != (row.train is not None):
                raise SettingsError(f"the row {row.name}: {TRAINED} in `model` goes with `train`, and only with it")
            seen.add(row.name)
        if not self.rows:
            raise SettingsError("the plan has no rows: give some, or take --plan standard")


@dataclass(frozen=True)
class Tried:
    """A row with its result.

    Args:
        row: the configuration.
        model: its model, with the trained one in it.
        dev: its score on the dev queries, or on those that were asked until it was stopped; None if left out.
        test: its score on the test queries; None if stopped or left out.
        price: its costs.
        line: why it was stopped or left out; empty otherwise.
        read: whether the model has read answers, so that it takes no part.
    """

    row: Row
    model: str = ""
    dev: Score | None = None
    test: Score | None = None
    price: Price | None = None
    line: str = ""
    read: bool = False

    @property
    def takes_part(self) -> bool:
        """Whether it was asked everything, and has not read the answers."""
        return self.test is not None and not self.read

    @property
    def total(self) -> float:
        """Its price in one number, see `Price.total`; 0 where it has none."""
        return self.price.total if self.price else 0.0

    @property
    def on_dev(self) -> float:
        """Its score on the dev queries that it was asked.

        Raises:
            ValueError: it was asked none.
        """
        return _asked(self.dev).score

    @property
    def on_test(self) -> float:
        """Its score on the test queries.

        Raises:
            ValueError: it was not asked them.
        """
        return _asked(self.test).score

    def to_json(self) -> dict[str, Any]:
        """The row as JSON data."""
        plain: dict[str, Any] = {"name": self.row.name, "model": self.model, **as_json(self.price)}
        plain |= {half: score.to_json() for half, score in (("dev", self.dev), ("test", self.test)) if score}
        plain |= {"candidates": self.row.candidates} if self.row.candidates else {}
        plain |= {} if self.row.prompts is None else {"prompts": dict(self.row.prompts)}
        return plain | ({"line": self.line} if self.line else {})


@dataclass(frozen=True)
class Planned:
    """The result of a plan.

    Args:
        tried: the rows in their order.
        worth: see `Plan`.
        cheap: see `Plan`.
        about: name of the exam's documents and queries, in words.
        doubts: reasons not to believe the exam, in sentences.
    """

    tried: Sequence[Tried]
    worth: float = 1.0
    cheap: float = 600.0
    about: str = ""
    doubts: Sequence[str] = ()

    @cached_property
    def _asked_all(self) -> list[Tried]:
        """The rows that take part, from cheap to dear."""
        return sorted((each for each in self.tried if each.takes_part), key=lambda each: each.total)

    @cached_property
    def efficient(self) -> list[str]:
        """Names of the rows that no cheaper one equals, on test."""
        return [each.row.name for each in self._efficient]

    @cached_property
    def _efficient(self) -> list[Tried]:
        found = list[Tried]()
        for each in self._asked_all:
            if not found or each.on_test > found[-1].on_test:
                found.append(each)
        return found

    @cached_property
    def taken(self) -> Tried | None:
        """The row to take: the best of the cheap ones, unless a dearer one is ahead by what its price must bring.

        That is on dev, and by the lower end of an interval that holds for all dearer rows together. Where a cheaper row
        has at least its score on test, the best of those is taken in its place: so it is always an efficient one.
        """
        found = self._asked_all
        if not found:
            return None
        cheap = [each for each in found if each.total <= self.cheap] or found[:1]
        taken, dearer = max(cheap, key=lambda each: each.on_dev), found[len(cheap) :]
        for each in dearer:
            asked = self.worth * log10(each.total / max(taken.total, self.cheap))
            if _asked(each.dev).minus(_asked(taken.dev), len(dearer)).low > asked:
                taken = each
        return next(each for each in reversed(self._efficient) if each.total <= taken.total)

    @property
    def sentence(self) -> str:
        """The row to take and what others find, and why that may be doubted."""
        return " ".join((self._choice, *(self.doubts if self.taken else ())))

    @property
    def _choice(self) -> str:
        """The row to take, and the gain and price of the efficient row that finds most, or of the next cheaper one.

        The interval holds for all efficient rows together, as the row that finds most is chosen by the same queries.
        """
        taken, efficient = self.taken, self._efficient
        if taken is None:
            return "No verdict: no row was asked everything without having read the answers."
        others = len(efficient) - 1
        if efficient[-1] is not taken:
            more = _asked(efficient[-1].test).minus(_asked(taken.test), others)
            name, price = efficient[-1].row.name, times(efficient[-1].total / max(taken.total, 1e-9))
            if more.low > 0:
                return f"Take {taken.row.name}; {name} finds {points(more)} more at {price} the price."
            beyond = f"{name} is not ahead of it beyond chance ({more.difference:+.1f} points, {_range(more)})"
            return f"Take {taken.row.name}; {beyond} at {price} the price."
        if not others:
            return f"Take {taken.row.name}: nothing that is cheaper or dearer finds more."
        more = _asked(taken.test).minus(_asked(efficient[-2].test), others)
        name, price = efficient[-2].row.name, times(taken.total / max(efficient[-2].total, 1e-9))
        if more.low > 0:
            return f"Take {taken.row.name}; it finds {points(more)} more than {name}, at {price} the price."
        beyond = f"it is not ahead of {name} beyond chance ({more.difference:+.1f} points, {_range(more)})"
        return f"Take {taken.row.name}; {beyond}, at {price} the price."

    def table(self) -> Table:
        """The rows in the order of the plan."""
        rows = [
            [each.row.name, *_scored(each), *(each.price.cells if each.price else [""] * 5), self.mark(each)]
            for each in self.tried
        ]
        heads = ("search", "score", "95 % interval", "s encoding", "ms query", "MB index", "MB memory", "needs", "")
        return table_of(heads, rows, left=(0, 7, 8), styles={self.taken.row.name: "bold"} if self.taken else {})

    def short_table(self) -> Table:
        """The table without megabytes, and with the rest below, for a terminal."""
        rows = [[each.row.name, *_scored(each), *(each.price.cells[:2] if each.price else [])] for each in self.tried]
        heads = ("search", "score", "95 % interval", "encoding", "query")
        below = ["encoding: seconds of the processor for 100,000 texts; query: milliseconds", *self.lines]
        title = f"{NAME}: nDCG@10 on {self.about}"
        styles = {self.taken.row.name: "bold"} if self.taken else {}
        return table_of(heads, rows, title=title, caption="\n".join(below), styles=styles)

    def mark(self, tried: Tried) -> str:
        """A row's place in a word or two; `line` of a row says why it was stopped or left out."""
        if tried is self.taken:
            return "take this"
        if tried.line:
            return "apart" if tried.read else "left out" if tried.dev is None else "stopped"
        return "efficient" if tried.row.name in self.efficient else ""

    @property
    def lines(self) -> list[str]:
        """Why rows were stopped or left out, or take no part."""
        return [f"{each.row.name}: {each.line}" for each in self.tried if each.line]

    def to_json(self) -> dict[str, Any]:
        """The sentence, the choice and the rows as JSON data."""
        taken = {} if self.taken is None else {"take": self.taken.row.name}
        rows = [each.to_json() for each in self.tried]
        return {"sentence": self.sentence, **taken, "efficient": self.efficient, "rows": rows, "worth": self.worth}


def _asked(score: Score | None) -> Score:
    if score is None:
        raise ValueError("the row was not asked these queries")
    return score


def _range(more: Difference) -> str:
    return f"{more.low:+.1f} to {more.high:+.1f}"


def _scored(tried: Tried) -> list[str]:
    score = tried.test or tried.dev
    return [f"{score.score:.2f}", span(score.low, score.high)] if score else ["", ""]


def points(more: Difference) -> str:
    """A gain in words: `3.1 points (1.4 to 4.9)`."""
    return f"{more.difference:.1f} points ({more.low:.1f} to {more.high:.1f})"


def times(ratio: float) -> str:
    """A ratio of prices in words.

    Examples:
        >>> times(61.2), times(1.04), times(3.31)
        ('61 times', 'about', '3.3 times')
    """
    return "about" if ratio < 1.15 else f"{significant(ratio)} times"
