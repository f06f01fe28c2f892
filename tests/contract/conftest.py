"""What became of every cell of the grid, counted, and written where SELFSENT_CONTRACT_RESULTS says."""

import json
import os
from pathlib import Path

import pytest

CHECKS = pytest.StashKey()


def pytest_configure(config):
    config.stash.setdefault(CHECKS, {})


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    report = yield
    cell = getattr(getattr(item, "callspec", None), "params", {}).get("cell")
    if cell is not None and (report.when == "call" or report.failed):
        refused = "refused" in item.name and report.passed
        outcome = f"not possible: {cell.refusal}" if refused else report.outcome
        item.config.stash[CHECKS].setdefault((cell.method, cell.architecture), {})[item.originalname] = outcome
    return report


def pytest_sessionfinish(session):
    path, found = os.environ.get("SELFSENT_CONTRACT_RESULTS"), session.config.stash[CHECKS]
    if not path or not found:
        return
    cells = [
        {"method": method, "architecture": architecture, "outcome": _verdict(checks), "checks": checks}
        for (method, architecture), checks in sorted(found.items())
    ]
    outcomes = [cell["outcome"] for cell in cells]
    counts = {outcome: outcomes.count(outcome) for outcome in ("passed", "failed", "not possible")}
    temporary = Path(path).with_suffix(".tmp")
    temporary.parent.mkdir(parents=True, exist_ok=True)
    temporary.write_text(json.dumps({"counts": counts, "cells": cells}, indent=1) + "\n")
    temporary.replace(path)


def _verdict(checks):
    outcomes = {outcome.partition(":")[0] for outcome in checks.values()}
    return next((name for name in ("failed", "not possible") if name in outcomes), "passed")
