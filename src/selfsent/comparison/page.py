"""The end of a comparison: the chosen model in its place, all figures, and the page."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from typing import Any

from selfsent.comparison.selection import Selection
from selfsent.display import change, span
from selfsent.distributed import rank, wait
from selfsent.errors import TrainingError
from selfsent.files import write_json, write_text
from selfsent.report.pages import Curve, curve, dots, nearest, render
from selfsent.training.run_directory import RunDirectory, versions
from selfsent.training.save import take_over

PAGE = "report.html"


def finish(found: Selection, directory: RunDirectory, about: Mapping[str, str]) -> None:
    """Put the chosen model in its place, and write figures and page.

    Raises:
        TrainingError: there is no candidate.
    """
    if not found.candidates:
        name, reason = next(iter(found.failures.items()))
        raise TrainingError(f"no method went well; {name}: {reason}")
    if rank() == 0:
        chosen = found.chosen
        if chosen:
            take_over(chosen.run.directory, directory.path)
        else:  # of an earlier choice
            shutil.rmtree(directory.model, ignore_errors=True)
            (directory.path / "scores.json").unlink(missing_ok=True)
        curves, details = {}, dict(about)
        for each in found.candidates:
            metrics = RunDirectory(each.run.directory).metrics()
            curves[each.name] = [(int(entry["step"]), float(entry["loss"])) for entry in metrics if "loss" in entry]
            config, steps = each.run.record["asked"], each.run.record.get("steps")
            settings = config["settings"]
            how = [f"{key.replace('_', ' ')} {settings[key]:g}" for key in _SETTINGS] if steps else ["a fit"]
            how += [f"budget {budget:g} s"] if steps and (budget := settings.get("budget")) else []
            how += ["the best of its runs"] if len(each.runs) > 1 else []
            details[each.name] = ", ".join([config["method"], f"pooling {config['pooling']}", *how])
        details["versions"] = ", ".join(f"{name} {version}" for name, version in versions().items())
        neighbours = chosen.run.neighbours if chosen else []
        plain = found.to_json()
        write_json(directory.path / "comparison.json", plain)
        write_text(directory.path / PAGE, comparison_page(plain, details, neighbours, curves))
        method = chosen.run.record["asked"]["method"] if chosen else None
        directory.update(status="finished", chosen=chosen.name if chosen else None, method=method)
    wait()


_SETTINGS = ("batch_size", "learning_rate", "max_length", "seed")


def comparison_page(
    found: Mapping[str, Any],
    about: Mapping[str, Any],
    neighbours: Sequence[Mapping[str, Any]],
    curves: Mapping[str, Curve],
) -> str:
    """The page of a comparison.

    Args:
        found: `Selection.to_json()`.
        about: details by name, shown below the scores.
        neighbours: of a few sentences the nearest ones, before and after training.
        curves: losses of each method.
    """
    bases, words = found["bases"], found["baselines"]
    rows = [{"name": name, "score": score} for name, score in bases.items()]
    rows += [{"name": name, "score": score, "words": True} for name, score in words.items()]
    rows += [{"name": each["name"], "score": each["dev"], **each} for each in found["candidates"]]
    rows.sort(key=lambda row: -row["score"]["score"])
    best_base = max(bases, key=lambda name: bases[name]["score"])
    task = "the next sentence in development documents, MRR@10 × 100" if found["dev"] == "context" else found["dev"]
    return render(
        "comparison.html",
        headline=found["headline"],
        advice=found["advice"],
        remarks=[line + "." for line in found["remarks"]],
        task=task,
        drawing=dots(rows, bases[best_base]["score"], found["best"], best_base),
        scores=_scores(rows, found["best"]),
        test=_tests(found["tests"], found["best"]),
        neighbours=[nearest(entry) for entry in neighbours],
        curves=[curve(name, values) for name, values in curves.items() if len(values) > 1],
        about=[((key, str(value)), False) for key, value in about.items()],
    )


def _scores(rows: Sequence[Mapping[str, Any]], best: str) -> list[tuple[Sequence[str], bool]]:
    """Cells of each row, and whether it is the best."""
    found: list[tuple[Sequence[str], bool]] = []
    for row in rows:
        score, gain = row["score"], row.get("gain")
        mean, cells = f"{score['score']:.2f}", [""] * 4
        if gain:
            count, steps = len(row["seeds"]), [each["steps"] or 0 for each in row["seeds"].values()]
            mean += "" if row["deviation"] is None else f" ± {row['deviation']:.2f} over {count} seeds"
            counts = " to ".join(f"{count:,}" for count in dict.fromkeys((min(steps), max(steps))) if count)
            seconds = f"{row['seconds']:.0f}" if row["seconds"] else ""
            cells = [change(gain["difference"], gain["low"], gain["high"]), f"{gain['p']:.3f}", counts, seconds]
        found.append(([row["name"], mean, span(score["low"], score["high"]), *cells], row["name"] == best))
    return found


def _tests(scores: Mapping[str, Any], best: str) -> list[tuple[Sequence[str], bool]]:
    found: list[tuple[Sequence[str], bool]] = []
    for name, one in sorted(scores.items(), key=lambda each: -float(each[1]["score"])):
        less = one.get("best_minus_it")
        gap = change(less["difference"], less["low"], less["high"]) if less else ""
        cells = (name, f"{one['score']:.2f}", span(one["low"], one["high"]), gap)
        found.append((cells, name == best))
    return found
