"""What came of experiments/judges.py: the regret of every way to choose, rank correlations, and what labels buy."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from domain import LEAKED
from numpy.typing import NDArray

from selfsent.evaluation.judges import JUDGES, aimed_at
from selfsent.evaluation.stats.metrics import spearman
from selfsent.evaluation.stats.resampling import point

Values = NDArray[np.float64]
UNTRAINED = "untrained"
SPECTRAL = ("uniformity", "alignment", "effective_rank")
LABELS = (10, 25, 50, 100, 200, 400)
DRAWS = 30
ALLOWED = 0.5
"""Points that a choice may be below the untrained base."""


@dataclass(frozen=True)
class Cell:
    """A labelled task of a domain, a base, and all candidates.

    Args:
        domain: its name.
        base: the base's.
        task: the labelled task.
        names: of the candidates.
        methods: of the candidates, empty for the untrained base.
        scores: of each judge, (candidates,).
        gains: likewise, over the untrained base, with both ends of the interval: (candidates, 3).
        truth: scores on the labelled task, (candidates,).
        stsb: scores on STS-B dev, (candidates,).
    """

    domain: str
    base: str
    task: str
    names: list[str]
    methods: list[str]
    scores: dict[str, Values]
    gains: dict[str, Values]
    truth: Values
    stsb: Values

    @property
    def untrained(self) -> int:
        """The number of the untrained base among the candidates."""
        return self.names.index(UNTRAINED)

    def unaimed(self, judge: str) -> NDArray[np.bool_]:
        """Which candidates were not trained to do what the judge asks."""
        return np.array([judge not in aimed_at([method]) for method in self.methods])


def cells(rows: Mapping[str, Mapping[str, Any]]) -> list[Cell]:
    """All cells of the output that have an untrained base and two candidates at least."""
    places: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for key, row in rows.items():
        if "judges" in row:
            places.setdefault((row["domain"], row["base"]), []).append({**row, "title": key.split(" | ")[2]})
    found = []
    for (domain, base), group in places.items():
        names = [row["title"] for row in group]
        if UNTRAINED not in names or len(names) < 3:
            continue
        judges = [name for name in group[0]["judges"] if all(name in row["judges"] for row in group)]
        scores = {name: np.array([row["judges"][name][0] for row in group]) for name in judges}
        gains = {name: np.array([row["judges"][name][3:] for row in group]) for name in judges if name in JUDGES}
        stsb = np.array([row["labelled"]["stsb-dev"][0] for row in group])
        methods = [row.get("method", "") for row in group]
        for task in group[0]["labelled"]:
            if task not in ("stsb-dev", *LEAKED):
                truth = np.array([row["labelled"][task][0] for row in group])
                found.append(Cell(domain, base, task, names, methods, scores, gains, truth, stsb))
    return found


def ranks(values: Values) -> Values:
    """Ranks from 0, the best last, ties at their mean."""
    return np.array([np.mean(values < value) + np.mean(values == value) / 2 for value in values])


def of(cell: Cell, names: Iterable[str]) -> list[str]:
    """Those of these judges that the cell has."""
    return [name for name in names if name in cell.gains]


def mean_rank(cell: Cell, names: Iterable[str] = JUDGES) -> Values:
    """The mean of the ranks by all judges."""
    return np.mean([ranks(cell.scores[name]) for name in of(cell, names)], axis=0)


def mean_rank_unaimed(cell: Cell) -> Values:
    """For each candidate the mean of the ranks by the judges that it was not trained for."""
    table = np.stack([np.where(cell.unaimed(name), ranks(cell.scores[name]), np.nan) for name in of(cell, JUDGES)])
    return np.asarray(np.nan_to_num(np.nanmean(table, axis=0), nan=0.5))


def mean_z(cell: Cell, names: Iterable[str] = JUDGES) -> Values:
    """The mean of the scores by all judges, each in units of its deviation over candidates."""
    scores = [cell.scores[name] for name in of(cell, names)]
    return np.mean([(each - each.mean()) / max(float(each.std()), 1e-9) for each in scores], axis=0)


def mean_gain(cell: Cell, names: Iterable[str]) -> Values:
    """The mean gain over the untrained base, in points."""
    return np.mean([cell.gains[name][:, 0] for name in of(cell, names)], axis=0)


def mean_ratio(cell: Cell, names: Iterable[str]) -> Values:
    """The mean of the logarithms of the scores."""
    return np.mean([np.log(np.maximum(cell.scores[name], 0.1)) for name in of(cell, names)], axis=0)


def votes(cell: Cell, unaimed: bool = False) -> Values:
    """How many judges find a candidate better than the untrained base, less how many find it worse."""
    total = np.zeros(len(cell.names))
    for name in of(cell, JUDGES):
        low, high = cell.gains[name][:, 1], cell.gains[name][:, 2]
        vote = (low > 0).astype(float) - (high < 0)
        total += np.where(cell.unaimed(name), vote, np.minimum(vote, 0)) if unaimed else vote
    return total + 1e-3 * mean_rank(cell)


def unless_worse(cell: Cell, by: Callable[[Cell], Values]) -> Values:
    """A rule, among the candidates that no judge finds worse than the untrained base."""
    worse = np.any([cell.gains[name][:, 2] < 0 for name in of(cell, JUDGES)], axis=0)
    return np.where(worse, -np.inf, by(cell))


SENTENCES = ("context", "title", "halves", "document", "crops", "robust")
RULES: dict[str, Callable[[Cell], Values]] = {
    "mean rank": mean_rank,
    "mean rank, unaimed judges": mean_rank_unaimed,
    "mean rank without spectrum": lambda cell: mean_rank(cell, SENTENCES),
    "mean z": mean_z,
    "mean z without spectrum": lambda cell: mean_z(cell, SENTENCES),
    "mean score without spectrum": lambda cell: mean_gain(cell, SENTENCES),
    "mean logarithm without spectrum": lambda cell: mean_ratio(cell, SENTENCES),
    "mean z without robust and spectrum": lambda cell: mean_z(cell, SENTENCES[:5]),
    "votes": votes,
    "votes, aimed judges only against": lambda cell: votes(cell, unaimed=True),
    "mean rank, none worse": lambda cell: unless_worse(cell, mean_rank),
    "mean z without spectrum, none worse": lambda cell: unless_worse(cell, lambda c: mean_z(c, SENTENCES)),
    "mean score without spectrum, none worse": lambda cell: unless_worse(cell, lambda c: mean_gain(c, SENTENCES)),
}


def all_rules() -> dict[str, Callable[[Cell], Values]]:
    """Single judges, combinations, STS-B dev, the untrained base, and a candidate drawn at random."""
    single = {name: (lambda cell, name=name: cell.scores[name]) for name in (*JUDGES, *SPECTRAL)}
    untrained = {"untrained base": lambda cell: np.arange(len(cell.names)) == cell.untrained}
    return {**single, **RULES, "STS-B dev": lambda cell: cell.stsb, **untrained}


def chosen(cell: Cell, rule: Callable[[Cell], Values]) -> float:
    """The labelled score of what a rule chooses; of equals the mean."""
    values = np.asarray(rule(cell), float)
    return float(cell.truth[values == values.max()].mean())


def spread(values: Sequence[float], domains: Sequence[str]) -> tuple[float, float, float]:
    """Mean over domains of the means over their cells, and its 95 % interval over resampled domains."""
    by_domain = np.array(
        [np.mean([v for v, d in zip(values, domains, strict=True) if d == one]) for one in set(domains)]
    )
    rng = np.random.default_rng(0)
    drawn = by_domain[rng.integers(len(by_domain), size=(2000, len(by_domain)))].mean(1)
    return float(by_domain.mean()), *(float(end) for end in np.percentile(drawn, [2.5, 97.5]))


def regrets(group: Sequence[Cell]) -> list[str]:
    """A table: for each rule its regret, its gain over the untrained base, the worst of these, and correlations."""
    lines = [
        "| chosen by | cells | regret | over untrained | worst | below −0.5 | ρ with labels |",
        "|---|--:|--:|--:|--:|--:|--:|",
    ]
    rows = []
    for name, rule in all_rules().items():
        mine = [cell for cell in group if name not in (*JUDGES, *SPECTRAL) or name in cell.scores]
        if not mine:
            continue
        domains = [cell.domain for cell in mine]
        got = [chosen(cell, rule) for cell in mine]
        regret = spread([cell.truth.max() - one for cell, one in zip(mine, got, strict=True)], domains)
        gain = [one - cell.truth[cell.untrained] for cell, one in zip(mine, got, strict=True)]
        order = [correlation(rule(cell), cell.truth) for cell in mine]
        cells_ = f"{spread(order, domains)[0]:.2f} [{spread(order, domains)[1]:.2f}, {spread(order, domains)[2]:.2f}]"
        below = sum(each < -ALLOWED for each in gain)
        text = f"| {name} | {len(mine)} | {regret[0]:.2f} [{regret[1]:.2f}, {regret[2]:.2f}]"
        text += f" | {spread(gain, domains)[0]:+.2f}"
        rows.append((regret[0], f"{text} | {min(gain):+.2f} | {below} | {cells_} |"))
    random = spread([cell.truth.max() - cell.truth.mean() for cell in group], [cell.domain for cell in group])
    rows.append((random[0], f"| any candidate, at random | {len(group)} | {random[0]:.2f} | | | | |"))
    return lines + [line for _, line in sorted(rows)]


def correlation(values: Values, truth: Values) -> float:
    """Spearman's ρ of a rule's values with the labelled scores."""
    return point(spearman(np.nan_to_num(np.asarray(values, float), neginf=-1e9), truth), len(truth))


def best_rule(group: Sequence[Cell]) -> str:
    """The combination with the smallest mean regret on some cells."""
    domains = [cell.domain for cell in group]
    found = {
        name: spread([cell.truth.max() - chosen(cell, rule) for cell in group], domains)[0]
        for name, rule in RULES.items()
    }
    return min(found, key=lambda name: found[name])


def label_curve(group: Sequence[Cell], pairs: Path, development: Sequence[str]) -> list[str]:
    """A table: regret and worst loss of choosing by so many labelled pairs, drawn as `selfsent label` draws them."""
    regret: dict[int, list[float]] = {count: [] for count in LABELS}
    gain: dict[int, list[float]] = {count: [] for count in LABELS}
    domains = []
    for cell in group:
        files = [pairs / f"{cell.domain} | {cell.base} | {name}.npz" for name in cell.names]
        if cell.task in development or not all(file.is_file() for file in files):
            continue  # pairs are of the development texts: what they choose is scored on others
        domains.append(cell.domain)
        loaded = [np.load(file) for file in files]
        cosines, same = np.stack([each["cosine"] for each in loaded]), loaded[0]["same"].astype(float)
        rng = np.random.default_rng(0)
        for count in LABELS:
            got = []
            for _ in range(DRAWS):
                few = rng.permutation(len(same))[:count]
                by = np.array([point(spearman(each[few], same[few]), len(few)) for each in cosines])
                got.append(cell.truth[by == by.max()].mean())
            regret[count].append(cell.truth.max() - float(np.mean(got)))
            gain[count].append(float(np.mean(got)) - cell.truth[cell.untrained])
    if not domains:
        return []
    lines = ["| labelled pairs | cells | regret | over untrained |", "|--:|--:|--:|--:|"]
    for count in LABELS:
        low, up = spread(regret[count], domains), spread(gain[count], domains)
        lines.append(f"| {count} | {len(domains)} | {low[0]:.2f} [{low[1]:.2f}, {low[2]:.2f}] | {up[0]:+.2f} |")
    return lines


def report(rows: Mapping[str, Mapping[str, Any]], development: Sequence[str], pairs: Path) -> str:
    """Everything, as Markdown: per base and over all; what is chosen on half of the domains, and shown on the other."""
    everything = cells(rows)
    if not everything:
        return "nothing to report yet: no domain has an untrained base and two candidates"
    dev = [cell for cell in everything if cell.task in development]
    apart = {cell.domain for cell in dev}
    other = [cell for cell in everything if cell.domain not in apart]
    tests = [cell for cell in everything if cell.task not in development]
    out = []
    parts = {"all tasks but those of development": tests, "development tasks": dev}
    parts["domains that nothing was chosen on"] = other
    parts |= {f"base {base}": [c for c in tests if c.base == base] for base in dict.fromkeys(c.base for c in tests)}
    for title, group in parts.items():
        if group:
            domains = ", ".join(dict.fromkeys(cell.domain for cell in group))
            out += [f"\n{title} ({domains})\n", *regrets(group)]
    if dev and other:
        name = best_rule(dev)
        got = [chosen(cell, RULES[name]) for cell in other]
        regret = spread([c.truth.max() - one for c, one in zip(other, got, strict=True)], [c.domain for c in other])
        out += [f"\nchosen on the development tasks: {name}; on the other domains its regret is {regret[0]:.2f}"]
        out[-1] += f" [{regret[1]:.2f}, {regret[2]:.2f}]"
    if curve := label_curve(everything, pairs, development):
        out += ["\nby labelled pairs\n", *curve]
    return "\n".join(out).strip()
