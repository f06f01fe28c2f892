"""Evaluation by published protocols:  `tasks.evaluate` runs them, `results` holds what they return."""

from selfsent.evaluation.results import Result, Score
from selfsent.evaluation.suites import SUITES, TASKS, check_request, evaluate

__all__ = ["SUITES", "TASKS", "Result", "Score", "check_request", "evaluate"]
