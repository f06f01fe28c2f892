"""What was tried, how often, what survived: the table of docs/reliability.md, and docs/results/reliability.md in full.

python faults/report.py
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from campaign import COUNTS
from server import REQUESTS

ROOT = Path(__file__).parents[1]
RESULTS, PAGE = ROOT / "docs" / "results" / "reliability", ROOT / "docs" / "reliability.md"
EVERY_TABLE = RESULTS.with_suffix(".md")
WHAT = {
    "kills": ("Killed, then gone on with", "command"),
    "flips": ("Bytes changed on the disk", "target"),
    "disk": ("Disk, rights, files, memory", "kind"),
    "twice": ("Two at once", "kind"),
    "fuzz": ("Mutated inputs", "kind"),
    "hostile": ("Hostile models and texts", "kind"),
    "endpoints": ("Language models' servers that lie", "kind"),
    "server": ("Hostile requests to `serve`", "kind"),
    "soak": ("Long runs", "kind"),
    "upgrade": ("Upgrades", "kind"),
}


def main() -> None:
    """Put the summary in the place of the old one, and write every table."""
    known = {name: _cases(name) for name in WHAT}
    lines = ["| | tried | survived | in full |", "|---|---:|---:|---:|"]
    tables = ["# Every table of the fault campaign", "", "What is behind [Reliability](../reliability.md)."]
    for name, (title, key) in WHAT.items():
        cases = known[name]
        tried = sum(map(_examples, cases))
        good = tried - sum(bool(case["fault"]) for case in cases)
        lines.append(f"| {title} | {tried:,} | {good:,} | {REQUESTS if name == 'server' else COUNTS[name][0]:,} |")
        if cases:
            tables += ["", f"## {title}", "", *_table(cases, key)]
    text = PAGE.read_text(encoding="utf-8")
    commits = Counter[str]()
    for case in (case for cases in known.values() for case in cases):
        commits[case["commit"]] += _examples(case)
    told = ", ".join(f"{name} ({count:,} tried)" for name, count in commits.most_common())
    lines += ["", f"By commit: {told}."]
    figures = "<!-- figures -->\n\n" + "\n".join(lines) + "\n\n<!-- end of figures -->"
    new = re.sub(r"<!-- figures -->.*<!-- end of figures -->", lambda _: figures, text, flags=re.S)
    PAGE.write_text(new, encoding="utf-8")
    EVERY_TABLE.write_text("\n".join(tables) + "\n", encoding="utf-8")


def _read(name: str) -> dict[str, Any]:
    """The results of a part; empty if it was not run."""
    file = RESULTS / f"{name}.json"
    return dict(json.loads(file.read_text(encoding="utf-8"))) if file.exists() else {}


def _cases(name: str) -> list[dict[str, Any]]:
    found = _read(name).get("cases", {}).values()
    return [case for case in found if case.get("killed") != []]  # some ended before they could be killed


def _table(cases: Iterable[dict[str, Any]], key: str) -> list[str]:
    """A row for each thing that was tried, with how the cases ended."""
    groups: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for case in cases:
        groups[str(case.get(key) or case["case"][key])].append(case)
    lines = ["| | tried | survived | how they ended |", "|---|---:|---:|---|"]
    for name, found in groups.items():
        tried = sum(map(_examples, found))
        good = tried - sum(bool(case["fault"]) for case in found)
        lines.append(f"| {name} | {tried} | {good} | {_ends(found)} |")
    return lines


def _examples(case: dict[str, Any]) -> int:
    """How many inputs a case tried."""
    return sum(case["ends"].values()) if "ends" in case else 1


def _ends(cases: list[dict[str, Any]]) -> str:
    counts: Counter[str] = Counter()
    for case in cases:
        if "killed" in case:
            counts.update(f"killed in {phase}" for phase in case["killed"])
        elif "ends" in case:
            counts.update(case["ends"])
        elif "end" in case:
            counts[case["end"]] += 1
        elif "megabytes" in case and isinstance(case["megabytes"], list):
            told = (f"{name} {case[name][0]} then {case[name][1]}" for name in ("megabytes", "files", "threads"))
            counts[", ".join(told)] += 1
        elif "statuses" in case:
            counts["status " + " and ".join(case["statuses"])] += 1
        elif case.get("status") is not None:
            counts[{"0": "a result"}.get(str(case["status"]), f"a line, status {case['status']}")] += 1
        elif case.get("said"):
            counts[case["said"]] += 1
    return "; ".join(f"{what} ({count})" if count > 1 else what for what, count in counts.most_common() if count)


if __name__ == "__main__":
    main()
