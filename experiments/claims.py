"""Write the table of docs/claims.md from the papers' numbers and our raw figures, and the figures to claims.json.

python experiments/claims.py
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from scipy.stats import t

from selfsent.files import read_json, write_json, write_text
from selfsent_papers.published import records

ROOT = Path(__file__).parents[1]
PAGE, RAW = ROOT / "docs" / "claims.md", ROOT / "docs" / "results" / "quality"
START, END = "<!-- claims -->", "<!-- end of claims -->"
NOT_RUN = "not run"
SURE = 2.0
"""Points below which a difference of one seed says nothing."""


def published(paper: str, table: Any, method: str, group: str, dataset: str = "Avg") -> float:
    """A printed number; Spearman where there are several."""
    found = [
        each
        for each in records()
        if (each["paper"], str(each["table"]), each["method"], each["dataset"]) == (paper, str(table), method, dataset)
        and each["group"].startswith(group)
        and each["metric"] not in ("pearson", "training_loss")
    ]
    (one,) = found
    return float(one["value"])


def score(row: Mapping[str, Any], tasks: Sequence[str], best: bool) -> float | None:
    """The mean of a row's tasks; of a curve where the mean of all its tasks is highest."""
    scores = max(row["curve"], key=lambda each: np.mean(list(each.values()))) if best else row["scores"]
    values = [scores[task] for task in tasks if task in scores]
    return float(np.mean([value[0] if isinstance(value, list) else value for value in values])) if values else None


def compared(about: Mapping[str, Any]) -> dict[str, Any]:
    """Scores by seed of two rows, their mean difference, and its 95 % interval over seeds (Student's t)."""
    rows, sides = read_json(RAW / f"{about['file']}.json")["rows"], list[dict[int, float]]()
    tasks, same = about["tasks"], about["rows"][0] == about["rows"][1]
    for number, name in enumerate(about["rows"]):
        wanted, found = tasks[number : number + 1] if same else tasks, dict[int, float]()
        for seed in range(5):
            row = rows.get(f"{about.get('row', '{}').format(name)} | seed {seed}")
            value = None if row is None else score(row, wanted, about.get("best", False))
            if value is not None:
                found[seed] = value
        if name in ("untrained", "mean pooling") and about["file"] != "tsdae_ablations":  # nothing by chance in it
            found = dict.fromkeys(range(3), found[0])
        sides.append(found)
    seeds = sorted(sides[0].keys() & sides[1].keys())
    changes = np.array([sides[0][seed] - sides[1][seed] for seed in seeds])
    found_ = {"file": about["file"], "rows": about["rows"], "tasks": tasks, "seeds": seeds}
    found_ |= {"scores": [[side[seed] for seed in seeds] for side in sides], "difference": float(changes.mean())}
    if len(seeds) > 1:
        half = float(t.ppf(0.975, len(seeds) - 1) * changes.std(ddof=1) / len(seeds) ** 0.5)
        found_ |= {"low": found_["difference"] - half, "high": found_["difference"] + half}
    return found_


def verdict(each: Mapping[str, Any]) -> str:
    """What a difference says of the claim that it is above zero."""
    if "low" not in each:
        said = "open" if abs(each["difference"]) < SURE else "in small" if each["difference"] > 0 else "the reverse"
        return f"{said}, one seed"
    if each["low"] > 0:
        return "in small"
    return "the reverse" if each["high"] < 0 else "open"


def row(paper: str, claim: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """A line of the table, and its figures."""
    numbers = claim["paper"]
    values = [] if isinstance(numbers, str) else [published(paper, *each) for each in numbers]
    theirs = f"{values[0] - values[1]:+.1f} ({', '.join(f'{value:.1f}' for value in values)})" if values else numbers
    ours = [compared(each) for each in claim.get("ours", ())]
    cells, verdicts = list[str](), [verdict(each) for each in ours] or [NOT_RUN]
    labels = [f"{about['of']}: " if "of" in about else "" for about in claim.get("ours", ())]
    for label, each in zip(labels, ours, strict=True):
        means = ", ".join(f"{np.mean(side):.1f}" for side in each["scores"])
        interval = f" [{each['low']:+.1f} to {each['high']:+.1f}]" if "low" in each else ""
        count = len(each["seeds"])
        numbers = f"{means}; {count} seed{'s' * (count > 1)}"
        cells.append(f"{label}{each['difference']:+.1f}{interval} ({numbers})")
    parts = [claim["verdict"]] if "verdict" in claim else verdicts
    alike = len({*parts}) == 1
    said = parts[0] if alike else "<br>".join(f"{a}{b}" for a, b in zip(labels, parts, strict=True))
    seen = f"; {claim['seen']}" if "seen" in claim else ""
    files = ", ".join(f"[raw](results/quality/{name}.json)" for name in dict.fromkeys(each["file"] for each in ours))
    told = "<br>".join(cells) + (f" {files}" if files else "")
    line = f"| {claim['claim']}<br>`{claim['run']}` | {theirs} | {told} | **{said}**{seen} |"
    return line, {"paper": paper, "claim": claim["claim"], "theirs": values, "ours": ours, "verdicts": parts}


def made() -> tuple[str, list[dict[str, Any]]]:
    """The part of the page, and its figures."""
    claims = yaml.safe_load((ROOT / "experiments" / "claims.yaml").read_text(encoding="utf-8"))
    lines, figures = list[str](), list[dict[str, Any]]()
    for paper, each in claims.items():
        rows = [row(paper, claim) for claim in each]
        lines += [
            f"### {paper}",
            "",
            "| claim, `selfsent train` … | paper | ours | verdict |",
            "|---|---|---|---|",
        ]
        lines += [*(line for line, _ in rows), ""]
        figures += [found for _, found in rows]
    parts = [set(each["verdicts"]) for each in figures]
    held = sum(all(part.startswith("in small") for part in each) for each in parts)
    absent = sum(each == {NOT_RUN} for each in parts)
    count = (
        f"Of {len(parts)} claims {held} hold in small in all that was measured, {absent} were not run, and"
        f" {len(parts) - held - absent} are open, hold in part, or come out otherwise."
        " None was rerun at the papers' size."
    )
    return "\n".join([START, "", textwrap.fill(count, 120), "", *lines, END]), figures


def main() -> None:
    """Write both."""
    text, figures = made()
    write_json(RAW / "claims.json", {"rows": figures})
    page = PAGE.read_text(encoding="utf-8")
    write_text(PAGE, re.sub(f"{START}.*{END}", lambda _: text, page, flags=re.DOTALL))


if __name__ == "__main__":
    main()
