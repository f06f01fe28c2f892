"""Evaluation by published protocols:  `tasks.evaluate` runs them, `results` holds what they return."""

from __future__ import annotations

from typing import TYPE_CHECKING

from selfsent.lazily import imported_from

if TYPE_CHECKING:
    from selfsent.evaluation.results import Result as Result, Score as Score
    from selfsent.evaluation.suites import (
        SUITES as SUITES,
        TASKS as TASKS,
        check_request as check_request,
        evaluate as evaluate,
    )

_HOMES = {"results": ("Result", "Score"), "suites": ("SUITES", "TASKS", "check_request", "evaluate")}

__all__ = ["SUITES", "TASKS", "Result", "Score", "check_request", "evaluate"]

__getattr__ = imported_from(__name__, _HOMES)
