"""Ask PyPI's list of known weaknesses for every package in constraints.txt; fails where there is one.

It asks for one package first: an index that mirrors packages alone knows none, and then says so in a line and succeeds,
as it does without a network. A package that must stay in spite of a weakness goes into `ACCEPTED`, with the reason.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

PINS = Path(__file__).parents[1] / "constraints.txt"
ACCEPTED: dict[str, str] = {}
"""Names of weaknesses, and why each does no harm here."""


def asked(pins: list[str]) -> list[dict[str, Any]]:
    """What the service says of each package: `name`, `version` and `vulns`, or `name` and `skip_reason`."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "pins.txt"
        file.write_text("\n".join(pins) + "\n")
        options = ["--no-deps", "--disable-pip", "--format", "json", "--progress-spinner", "off", "--timeout", "15"]
        command = [sys.executable, "-m", "pip_audit", "--requirement", str(file), *options]
        done = subprocess.run(command, capture_output=True, text=True)
    try:
        found: list[dict[str, Any]] = json.loads(done.stdout)["dependencies"]
    except (ValueError, KeyError):
        lines = done.stderr.strip().splitlines() or [f"status {done.returncode}"]
        return [{"name": pin, "skip_reason": lines[-1]} for pin in pins]
    return found


def audit(pins: list[str], accepted: Mapping[str, str] = ACCEPTED) -> int:
    """Ask, and say what was found; the exit status."""
    first, *_ = asked(pins[:1])
    if "skip_reason" in first:
        print(f"audit: nothing could be asked: {first['skip_reason']}")
        return 0
    found = asked(pins)
    weak = [(each, weakness) for each in found for weakness in each.get("vulns", ())]
    weak = [(each, weakness) for each, weakness in weak if not accepted.keys() & {weakness["id"], *weakness["aliases"]}]
    for each, weakness in weak:
        mended = ", ".join(weakness["fix_versions"]) or "no version"
        print(f"audit: {each['name']} {each['version']}: {weakness['id']}, mended in {mended}")
    unknown = [each["name"] for each in found if "skip_reason" in each]
    print(f"audit: {len(weak)} weaknesses in {len(found)} packages, {len(unknown)} of them unknown to the service")
    return 1 if weak else 0


if __name__ == "__main__":
    sys.exit(audit([line for line in PINS.read_text().splitlines() if "==" in line]))
