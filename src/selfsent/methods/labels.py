"""What supervised methods must know about the rows of a corpus beside their texts."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Any, Literal


@dataclass(frozen=True)
class Labels:
    """A class or a score for each row.

    Args:
        kind: `class`, delivered as 0, 1, ...; or `score`, delivered as it stands in the corpus.
        classes: the largest number of classes; None for as many as there are.
        scale: what the learner divides scores by.
        low: the least score, once divided.
        high: the largest score, once divided.
        hint: what to say beside where a corpus has no such labels.
    """

    kind: Literal["class", "score"]
    classes: int | None = None
    scale: float | None = None
    low: float = -math.inf
    high: float = math.inf
    hint: str = ""


@dataclass(frozen=True)
class Facts:
    """What options may depend on in a corpus.

    Args:
        columns: text columns.
        classes: different labels, 0 without a label column.
        largest: the largest score, 0 without scores.
    """

    columns: int
    classes: int = 0
    largest: float = 0.0


def with_classes(options: Any, facts: Facts) -> Any:
    """The options, with as many classes as the corpus has where nothing was said."""
    unsaid = options.classes is None and facts.classes > 1
    return dataclasses.replace(options, classes=facts.classes) if unsaid else options


def with_scale(options: Any, facts: Facts) -> Any:
    """The options, with the largest score of the corpus for a scale where nothing was said."""
    return dataclasses.replace(options, scale=facts.largest) if options.scale is None and facts.largest > 0 else options
