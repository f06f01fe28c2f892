"""The end of a comparison: the chosen model where it is looked for, all figures, and the page."""

from __future__ import annotations

import shutil

from selfsent.comparison.page import comparison_page
from selfsent.comparison.result import Selection
from selfsent.distributed import rank, wait
from selfsent.errors import TrainingError
from selfsent.files import write_json, write_text
from selfsent.training.run_directory import RunDirectory, take_over, versions

RESULT, PAGE = "comparison.json", "report.html"
_TOLD = ("batch_size", "learning_rate", "max_length", "seed")


def finish(found: Selection, directory: RunDirectory, about: dict[str, str]) -> None:
    """Put the chosen model where it is looked for, and write the page.

    Raises:
        TrainingError: there is none to choose from.
    """
    if not found.candidates:
        name, reason = next(iter(found.failures.items()))
        raise TrainingError(f"no method went well; {name}: {reason}")
    if rank() == 0:
        if found.chosen:
            take_over(found.chosen.run.directory, directory.path)
        else:  # of an earlier choice
            shutil.rmtree(directory.model, ignore_errors=True)
            (directory.path / "scores.json").unlink(missing_ok=True)
        write_json(directory.path / RESULT, found.to_json())
        write_text(directory.path / PAGE, _page(found, about))
        chosen = found.chosen
        method = chosen.run.record["asked"]["method"] if chosen else None
        directory.update(status="finished", chosen=chosen.name if chosen else None, method=method)
    wait()


def _page(found: Selection, about: dict[str, str]) -> str:
    curves = {}
    for each in found.candidates:
        metrics = RunDirectory(each.run.directory).metrics()
        curves[each.name] = [(int(entry["step"]), float(entry["loss"])) for entry in metrics if "loss" in entry]
        asked, steps = each.run.record["asked"], each.run.record.get("steps")
        how = [f"{key.replace('_', ' ')} {asked['settings'][key]:g}" for key in _TOLD] if steps else ["a fit"]
        how += [f"budget {budget:g} s"] if steps and (budget := asked["settings"].get("budget")) else []
        how += ["the best of its runs"] if len(each.runs) > 1 else []
        about[each.name] = ", ".join([asked["method"], f"pooling {asked['pooling']}", *how])
    about["versions"] = ", ".join(f"{name} {version}" for name, version in versions().items())
    neighbours = found.chosen.run.neighbours if found.chosen else []
    return comparison_page(found.to_json(), about, neighbours, curves)
