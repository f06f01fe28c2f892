"""What it takes to break it: kills, full disks, flipped bytes, fuzz, hostile models, lying servers, soak, upgrades.

    python faults/campaign.py                        # everything, about two hours
    python faults/campaign.py --quick                # three minutes, the same cases every time
    python faults/campaign.py --only kills --case 17

Each case is a function of the seed, its part and its number. A case that is done is not done again: what was
interrupted goes on. Results go to docs/results/reliability/, the page docs/reliability.md is written from them.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ["OMP_NUM_THREADS"] = "1"  # commands are forked, and a fork of a process with more OpenMP threads hangs
sys.path.insert(0, str(Path(__file__).parent))

from world import ROOT, World

RESULTS = ROOT / "docs" / "results" / "reliability"
SEED = 36
COUNTS = {"kills": (500, 2), "flips": (200, 12), "disk": (48, 5), "twice": (12, 1), "fuzz": (5000, 60)}
COUNTS |= {"hostile": (14, 14), "endpoints": (30, 4), "server": (1, 0), "soak": (4, 0), "upgrade": (2, 1)}
"""Cases of each part in full, and with --quick."""
COMMIT = subprocess.run(
    ["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True
).stdout.strip()


def _part(name: str, world: World) -> tuple[Callable[[int, int, bool], list[dict[str, Any]]], Any]:
    """What makes the cases of a part, and what runs one."""
    module = __import__(name)
    return module.cases, getattr(module, name.capitalize())(world)


def main() -> None:
    """Run the parts, and write what was found after each case."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="few cases, none of which depends on a clock")
    parser.add_argument("--only", nargs="+", choices=list(COUNTS), metavar="PART", help=f"some of {', '.join(COUNTS)}")
    parser.add_argument("--case", type=int, help="one case of it, told in full")
    parser.add_argument("--cases", type=int, help="so many cases of each part")
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--minutes", type=float, default=10, help="of training, encoding and serving in the soak")
    parser.add_argument("--again", action="store_true", help="also what is done")
    parser.add_argument("--output", type=Path, default=RESULTS, help="folder of the results")
    parser.add_argument("--world", type=Path, default=ROOT / ".cache" / "faults", help="folder to work in")
    options = parser.parse_args()
    os.environ["FAULTS_MINUTES"] = str(options.minutes)
    world = World(options.world.absolute())
    print(f"seed {options.seed}", flush=True)
    names = [name for name in COUNTS if name in (options.only or COUNTS)]
    failed = sum(_run_part(name, world, options) for name in names)
    sys.exit(f"{failed} did not survive" if failed else 0)


def _run_part(name: str, world: World, options: argparse.Namespace) -> int:
    """Run the cases of a part that did not survive before; how many did not now."""
    count = options.cases or COUNTS[name][options.quick]
    if not count and options.case is None:
        return 0
    make, part = _part(name, world)
    cases = make(max(count, (options.case or 0) + 1), options.seed, options.quick)
    file = None if options.quick or options.case is not None else options.output / f"{name}.json"
    known = json.loads(file.read_text()) if file and file.exists() and not options.again else {}
    done: dict[str, Any] = known.get("cases", {}) if known.get("seed") == options.seed else {}
    failed = 0
    for number in range(len(cases)) if options.case is None else [options.case]:
        old = done.get(str(number))
        if old and old["case"] == cases[number] and not old["fault"]:
            continue
        found = done[str(number)] = _run_case(part, cases[number]) | {"commit": COMMIT}
        failed += bool(found["fault"])
        told = {key: value for key, value in found.items() if key not in ("fault", "case", "commit")}
        print(f"{name} {number}: {found['fault'] or 'survived'} {told}", flush=True)
        if file:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(json.dumps({"seed": options.seed, "cases": done}, indent=1, ensure_ascii=False) + "\n")
    return failed


def _run_case(part: Any, case: dict[str, Any]) -> dict[str, Any]:
    started = time.perf_counter()
    try:
        found = part.run(case)
    except Exception:
        found = {"fault": "the campaign itself: " + traceback.format_exc()}
    found = {key: value.replace(str(ROOT), "") if isinstance(value, str) else value for key, value in found.items()}
    return {"case": case, **found, "seconds": round(time.perf_counter() - started, 1)}


if __name__ == "__main__":
    main()
