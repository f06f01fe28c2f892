"""The end of a comparison: chosen model, figures and page."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from typing import Any

from selfsent.comparison.selection import Selection
from selfsent.display import cells_of
from selfsent.distributed import rank, wait
from selfsent.errors import TrainingError
from selfsent.files import write_json, write_text
from selfsent.report.pages import Curve, curves, dots, render
from selfsent.training.models import take_over
from selfsent.training.run_directory import RunDirectory, versions

PAGE = "report.html"


def finish(found: Selection, directory: RunDirectory, about: Mapping[str, str]) -> None:
    """Copy the chosen model, and write figures and page.

    Raises:
        TrainingError: no candidate.
    """
    if not found.candidates:
        name, reason = next(iter(found.failures.items()))
        raise TrainingError(f"no method went well; {name}: {reason}")
    if rank() == 0:
        chosen = found.chosen
        if chosen:
            take_over(chosen.run.directory, directory.path)
        else:  # from an earlier choice
            shutil.rmtree(directory.model, ignore_errors=True)
            (directory.path / "scores.json").unlink(missing_ok=True)
        losses, details = {}, dict(about)
        for each in found.candidates:
            metrics = RunDirectory(each.run.directory).metrics()
            losses[each.name] = [(int(entry["step"]), float(entry["loss"])) for entry in metrics if "loss" in entry]
            config, steps = each.run.record["config"], each.run.record.get("steps")
            settings, seconds = config["settings"], each.run.record.get("seconds")
            how = [f"{key.replace('_', ' ')} {settings[key]:g}" for key in _SETTINGS] if steps else ["a fit"]
            how += [f"budget {budget:g} s"] if steps and (budget := settings.get("budget")) else []
            how += [f"{steps:,} steps"] * bool(steps) + [f"{seconds or 0:.0f} s"] * bool(seconds)
            details[each.name] = ", ".join([config["method"], f"pooling {config['pooling']}", *how])
        details["versions"] = ", ".join(f"{name} {version}" for name, version in versions().items())
        neighbours = chosen.run.neighbours if chosen else []
        write_json(directory.path / "comparison.json", found.to_json())
        write_text(directory.path / PAGE, comparison_page(found, details, neighbours, losses))
        method = chosen.run.record["config"]["method"] if chosen else None
        directory.update(status="finished", chosen=chosen.name if chosen else None, method=method)
    wait()


_SETTINGS = ("batch_size", "learning_rate", "max_length", "seed")


def comparison_page(
    found: Selection, about: Mapping[str, Any], neighbours: Sequence[Mapping[str, Any]], losses: Mapping[str, Curve]
) -> str:
    """The page of a comparison.

    Args:
        found: the comparison.
        about: details by name, shown below the scores.
        neighbours: nearest sentences of a few sentences, before and after training.
        losses: by method.
    """
    scores = {**found.scores, **found.baselines}
    rows = [(name, score.to_json(), name in found.baselines) for name, score in scores.items()]
    headline, advice = found.conclusion
    tests = found.test_table()
    return render(
        "comparison.html",
        headline=headline,
        advice=advice,
        remarks=[line + "." for line in found.remarks],
        drawing=dots(rows, found.best, found.best_base),
        tables=[cells_of(found.table()), *([cells_of(tests)] if tests else [])],
        neighbours=neighbours,
        curves=curves(losses),
        about=about.items(),
    )
