"""The claims of the four papers: list them, run what decides one, and write docs/claims.md.

    python experiments/claims.py                                 # the page, its figures and its picture
    python experiments/claims.py --list                          # verdicts and prices
    python experiments/claims.py --run still-target --data DATA  # run what is missing, by docs/results/protocol.md

A run uses one process of one thread at the lowest priority. It is done once: finished ones are in
docs/results/claims/unfinished until their group is, and one that was killed goes on from its checkpoint in runs/claims.
"""

from __future__ import annotations

import argparse
import os
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
from selfsent_papers.significance import holm

ROOT = Path(__file__).parents[1]
PAGE, RAW = ROOT / "docs" / "claims.md", ROOT / "docs" / "results" / "quality"
OLDER = ROOT / "docs" / "results" / "claims.md"
"""The page of the figures that are older than the protocol."""
RUN_HERE = ROOT / "docs" / "results" / "claims"
"""The figures of finished groups, and of the page."""
START, END = "<!-- claims -->", "<!-- end of claims -->"
NOT_RUN, NOT_HERE = "not run", "cannot be run here"
SIGNIFICANT, LEVEL = 0.05, 1.0
"""Largest p-value after Holm's correction, and largest difference of two rows that are level."""
WEIGHTS, TOKENS, PEAK, STEP = 85e6, 25, 0.3 * 312e12, 0.05
"""Of the price: weights of BERT base, tokens of a sentence, operations a second, and the least seconds of a step."""


def claims() -> dict[str, list[dict[str, Any]]]:
    """The claims of each paper."""
    found: dict[str, list[dict[str, Any]]] = yaml.safe_load((ROOT / "experiments" / "claims.yaml").read_text("utf-8"))
    return found


def published(paper: str, table: Any, method: str, group: str, datasets: str | Sequence[str] = "Avg") -> float:
    """A printed number, or the mean of those of several data sets; Spearman where there are several."""
    values = []
    for dataset in [datasets] if isinstance(datasets, str) else datasets:
        known = (paper, str(table), method, dataset)
        found = [
            each
            for each in records()
            if (each["paper"], str(each["table"]), each["method"], each["dataset"]) == known
            and each["group"].startswith(group)
            and each["metric"] not in ("pearson", "training_loss")
        ]
        (one,) = found
        values.append(float(one["value"]))
    return float(np.mean(values))


def summed(values: Sequence[float], count: int = 2) -> float:
    """First less second; of a difference of differences, that of the first two less that of the others."""
    return values[0] - values[1] - (values[2] - values[3] if count == 4 else 0)


# Older figures, which decide nothing.


def score(row: Mapping[str, Any], tasks: Sequence[str], step: int | str | None) -> float | None:
    """The mean of a row's tasks; of a curve at a step, or at its last."""
    scores = row.get("scores", {})
    if step is not None and "curve" in row:
        curve = row["curve"]
        scores = curve[-1] if step == "last" else curve[int(step) * len(curve) // row["steps"] - 1]
    values = [scores[task] for task in tasks if task in scores]
    return float(np.mean([value[0] if isinstance(value, list) else value for value in values])) if values else None


def older(about: Mapping[str, Any]) -> dict[str, Any]:
    """Scores by seed of rows, their mean difference, and its 95 % interval over seeds (Student's t, seeds paired)."""
    rows, sides = read_json(RAW / f"{about['file']}.json")["rows"], list[dict[int, float]]()
    tasks, same = about["tasks"], about["rows"][0] == about["rows"][1]
    for number, name in enumerate(about["rows"]):
        wanted, found = tasks[number : number + 1] if same else tasks, dict[int, float]()
        for seed in range(5):
            row = rows.get(f"{about.get('row', '{}').format(name)} | seed {seed}")
            value = None if row is None else score(row, wanted, about.get("step"))
            if value is not None:
                found[seed] = value
        if name in ("untrained", "mean pooling") and about["file"] != "tsdae_ablations":  # nothing by chance in it
            found = dict.fromkeys(range(3), found[0])
        sides.append(found)
    seeds = sorted(set.intersection(*map(set, sides)))
    changes = np.array([summed([side[seed] for side in sides], len(sides)) for seed in seeds])
    told = {"of": about.get("of"), "file": about["file"], "rows": about["rows"], "tasks": tasks, "seeds": seeds}
    told |= {"scores": [[side[seed] for seed in seeds] for side in sides], "difference": float(changes.mean())}
    if len(seeds) > 1:
        half = float(t.ppf(0.975, len(seeds) - 1) * changes.std(ddof=1) / len(seeds) ** 0.5)
        told |= {"low": told["difference"] - half, "high": told["difference"] + half}
    return told


# What the protocol decides.


def decided(about: Mapping[str, Any]) -> dict[str, Any]:
    """A comparison as it was declared, with its figures where its group has been run whole."""
    path = RUN_HERE / f"{about['group']}.json"
    for each in read_json(path)["comparisons"] if path.is_file() else ():
        if (each["rows"], each["test"]) == (list(about["rows"]), about["test"]):
            return {**about, **each}
    return dict(about)


def corrected(comparisons: Sequence[dict[str, Any]]) -> None:
    """Add Holm's p to all comparisons of a paper; one that was not run counts with 1."""
    values = holm([each["seeds"]["p"] if "seeds" in each else 1.0 for each in comparisons])
    for each, value in zip(comparisons, values, strict=True):
        if "seeds" in each:
            each["holm"] = value


def verdict(each: Mapping[str, Any]) -> str:
    """What a comparison says of the claim that it is above zero, or level with it."""
    if "difference" not in each:
        return NOT_RUN
    ends = [each[name][end] for name in ("seeds", "pairs") for end in ("low", "high")]
    if each.get("level"):
        if max(map(abs, ends)) <= LEVEL:
            return "holds"
        clear = each["holm"] < SIGNIFICANT and (min(ends[::2]) > LEVEL or max(ends[1::2]) < -LEVEL)
        return "fails" if clear else "undecided"
    if each.get("stands_for", each["rows"]) == ["untrained"] * len(each["rows"]) and "untrained" in each["rows"]:
        return "fails"
    if each["holm"] >= SIGNIFICANT or each["pairs"]["low"] <= 0 <= each["pairs"]["high"]:
        return "undecided"
    return "holds" if each["difference"] > 0 else "fails"


def of_all(verdicts: Sequence[str]) -> str:
    """The verdict on a claim of several comparisons."""
    for one in ("fails", NOT_RUN, "undecided"):
        if one in verdicts:
            return one
    return verdicts[0]


def price(models: int, steps: int, batch: int, views: int) -> float:
    """Hours of one A100 for one seed of all models, from BERT base, as docs/results/protocol.md reckons them."""
    return models * steps * max(STEP, 6 * WEIGHTS * TOKENS * batch * views / PEAK) / 3600


def worked_out(paper: str) -> list[dict[str, Any]]:
    """The claims of a paper with numbers, comparisons and verdicts."""
    found, declared = (
        list[dict[str, Any]](),
        yaml.safe_load((ROOT / "experiments" / "protocol.yaml").read_text("utf-8")),
    )
    for claim in claims()[paper]:
        numbers = claim["paper"]
        values = [] if isinstance(numbers, str) else [published(paper, *each) for each in numbers]
        comparisons = [decided(each) for each in claim.get("decide", ())]
        for each in comparisons:
            each["level"] = each.get("level", claim.get("level", False))
        groups = dict.fromkeys(each["group"] for each in comparisons)
        kept = {name: claim[name] for name in ("id", "claim", "run") if name in claim}
        found.append(
            {
                **{"paper": paper, **kept, "theirs": values, "text": numbers if isinstance(numbers, str) else None},
                "of_four": len(values) == 4 and len(comparisons) == 1 and len(comparisons[0]["rows"]) == 4,
                "ours": comparisons,
                "before": [older(each) for each in claim.get("before", ())],
                "seen": claim.get("seen"),
                "cannot": "here" in claim,
                "why": claim.get("here") or claim.get("undeclared"),
                "minutes": sum(declared["groups"][name]["minutes"] for name in groups),
                "hours": round(price(*claim["price"]), 1),
            }
        )
    corrected([each for claim in found for each in claim["ours"]])
    for claim in found:
        for each in claim["ours"]:
            each["verdict"] = verdict(each)
        lacks = NOT_HERE if claim.pop("cannot") else NOT_RUN
        claim["verdict"] = of_all([each["verdict"] for each in claim["ours"]] or [lacks])
    return found


def theirs_of(claim: Mapping[str, Any]) -> float | None:
    """The paper's difference."""
    return summed(claim["theirs"], 4 if claim["of_four"] else 2) if claim["theirs"] else None


def label(each: Mapping[str, Any]) -> str:
    """What tells one comparison from the others."""
    return f"{each['of']}: " if each.get("of") else ""


def row(claim: Mapping[str, Any]) -> str:
    """A line of the table."""
    change = theirs_of(claim)
    values = ", ".join(f"{value:.1f}" for value in claim["theirs"])
    theirs = claim["text"] if change is None else f"{change:+.1f} ({values})"
    ours = list[str]()
    for each in claim["ours"]:
        if "difference" in each:
            seeds, pairs = each["seeds"], each["pairs"]
            told = f"{each['difference']:+.1f}; seeds [{seeds['low']:+.1f} to {seeds['high']:+.1f}], pairs"
            told += f" [{pairs['low']:+.1f} to {pairs['high']:+.1f}], Holm's p {each['holm']:.2g}"
            if "trained" in each:
                told += f"; no rate raises {each['rows'][0]} above its base on dev: trained all the same"
                told += f" {each['trained']['difference']:+.1f}"
            ours.append(f"{label(each)}{told} [raw](results/claims/{each['group']}.json)")
    if missing := [each for each in claim["ours"] if "difference" not in each]:
        ours.append(f"`--run {claim['id']}`, {claim['minutes']:,} minutes")
        if len(missing) < len(claim["ours"]):
            ours[-1] = f"{', '.join(each['of'] for each in missing)}: {ours[-1]}"
    hours = f"{claim['hours']:.1f} h" if claim["hours"] >= 0.1 else "minutes"
    ours[:0] = [f"**{claim['verdict']}**" + (f": {claim['why']}" if claim["why"] else "")]
    return f"| {claim['claim']}<br>`{claim['run']}`, {hours} | {theirs} | {'<br>'.join(ours)} |"


def older_row(claim: Mapping[str, Any]) -> str:
    """A line of the table of older figures."""
    before = list[str]()
    for each in claim["before"]:
        means, count = ", ".join(f"{np.mean(side):.1f}" for side in each["scores"]), len(each["seeds"])
        interval = f" [{each['low']:+.1f} to {each['high']:+.1f}]" if "low" in each else ""
        seeds = f"{means}; {count} seed{'s' * (count > 1)}"
        before.append(f"{label(each)}{each['difference']:+.1f}{interval} ({seeds})")
    if before:
        before[-1] += " " + ", ".join(
            f"[raw](quality/{name}.json)" for name in dict.fromkeys(each["file"] for each in claim["before"])
        )
    return f"| {claim['claim']} | {'<br>'.join(before)} | {claim['seen'] or ''} |"


def made() -> tuple[str, list[dict[str, Any]]]:
    """The part of the page, and its figures."""
    lines, figures = list[str](), list[dict[str, Any]]()
    for paper in claims():
        found = worked_out(paper)
        lines += [f"### {paper}", "", "| claim, `selfsent train` … at the paper's size | paper | verdict |"]
        lines += ["|---|---|---|", *map(row, found), ""]
        figures += found
    counts = {name: sum(each["verdict"] == name for each in figures) for name in ORDER}
    told = [f"{counts['holds']} hold here in small", f"{counts['fails']} fail", f"{counts['undecided']} are undecided"]
    told += [f"{counts[NOT_RUN]} are not run yet"]
    count = f"Of {len(figures)} claims {', '.join(told)}, and {counts[NOT_HERE]} cannot be run here."
    count += " None was rerun at the papers' size."
    return "\n".join([START, "", textwrap.fill(count, 120), "", *lines, END]), figures


def older_made(figures: Sequence[Mapping[str, Any]]) -> str:
    """The part of the page of older figures."""
    lines = list[str]()
    for paper in claims():
        rows = [older_row(each) for each in figures if each["paper"] == paper and (each["before"] or each["seen"])]
        lines += [f"## {paper}", "", "| claim | older figures | what to know of them |", "|---|---|---|", *rows, ""]
    return "\n".join([START, "", *lines, END])


ORDER = ("holds", "fails", "undecided", NOT_RUN, NOT_HERE)


def write() -> None:
    """Write the page, its figures and its picture."""
    from claims_picture import draw

    text, figures = made()
    write_json(RUN_HERE / "claims.json", {"rows": figures})
    for path, part in ((PAGE, text), (OLDER, older_made(figures))):
        page = path.read_text(encoding="utf-8")
        write_text(path, re.sub(f"{START}.*{END}", lambda _, part=part: part, page, flags=re.DOTALL))
    draw(figures, ROOT / "docs" / "images" / "claims.svg")


def listed() -> str:
    """A line for each claim: verdict, price here and at the paper's size."""
    lines = [f"{'claim':30}{'verdict':20}{'here, minutes':>14}{'A100, hours a seed':>20}"]
    for paper in claims():
        for each in worked_out(paper):
            minutes = f"{each['minutes']:,}" if each["minutes"] else "-"
            lines.append(f"{each['id']:30}{each['verdict']:20}{minutes:>14}{each['hours']:>20.1f}  {each['claim']}")
    return "\n".join(lines)


def run(name: str, bases: Mapping[str, str], data: str | None, place: Path, threads: int) -> None:
    """Run what is missing of the groups that decide a claim, and keep their figures."""
    wanted = [claim for each in claims().values() for claim in each if claim["id"] == name]
    if not wanted:
        known = ", ".join(claim["id"] for each in claims().values() for claim in each)
        raise SystemExit(f"there is no claim {name!r}; there are {known}")
    if "decide" not in wanted[0]:
        raise SystemExit(f"{name} has no runs: {wanted[0].get('here') or wanted[0]['undeclared']}")
    os.environ["OMP_NUM_THREADS"] = str(threads)  # before torch is there
    os.nice(19)
    import torch
    from claim_runs import UNFINISHED, Runner

    torch.set_num_threads(threads)
    for group in dict.fromkeys(each["group"] for each in wanted[0]["decide"]):
        every = [about for each in claims().values() for claim in each for about in claim.get("decide", ())]
        comparisons = [{"rows": about["rows"], "test": about["test"]} for about in every if about["group"] == group]
        runner = Runner(group, bases, data, place, lambda line: print(line, flush=True), done=UNFINISHED)
        write_json(RUN_HERE / f"{group}.json", runner.whole(comparisons))
        for path in UNFINISHED.glob(f"{group}-{'[0-9a-f]' * 16}.json"):
            path.unlink()


def main() -> None:
    """List, run, or write the page."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--list", action="store_true", help="verdicts and prices")
    parser.add_argument("--run", metavar="CLAIM", help="run what decides this claim, and write the page")
    parser.add_argument("--base", action="append", default=[], metavar="NAME=DIR", help="the directory of a named base")
    parser.add_argument("--data", default=os.environ.get("SELFSENT_DATA"), help="mirror of the data sets")
    parser.add_argument("--runs", type=Path, default=ROOT / "runs" / "claims", help="where models and texts are kept")
    parser.add_argument("--threads", type=int, default=1, help="of the one process")
    options = parser.parse_args()
    if options.list:
        print(listed())
        return
    if options.run:
        bases = dict(each.split("=", 1) for each in options.base)
        run(options.run, bases, options.data, options.runs, options.threads)
    write()


if __name__ == "__main__":
    main()
