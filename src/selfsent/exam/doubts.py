"""Reasons to doubt an exam, found in its texts alone (measured in docs/log/evaluation.md)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from selfsent.data.corpus.sentences import split_texts
from selfsent.exam.draw import form_of

TEMPLATED = 0.2
"""Share of sentences of a template above which an exam is doubted."""
FOUND = 35.0
"""Best score below which an exam is doubted."""
_HELD_BY = 3
"""Number of documents that make a sentence one of a template."""


def templated(documents: Sequence[str]) -> float:
    """The share of sentences that three documents or more hold, whatever the numbers in them.

    Args:
        documents: texts.

    Examples:
        >>> templated([f"Ticket {n} is open. I need {what}." for n, what in enumerate(("ink", "paper", "help"))])
        0.5
    """
    forms = [[form_of(sentence) for sentence in sentences] for sentences in split_texts(documents)]
    holders = defaultdict[str, set[int]](set)
    for number, each in enumerate(forms):
        for form in each:
            holders[form].add(number)
    every = [len(holders[form]) >= _HELD_BY for each in forms for form in each]
    return sum(every) / max(1, len(every))


def doubts(documents: Sequence[str], best: float) -> tuple[str, ...]:
    """Sentences that say why the exam may order searches otherwise than people's questions would; usually none.

    Args:
        documents: the texts that are searched.
        best: the best score of a ranking, in points.
    """
    found, share = list[str](), templated(documents)
    if share >= TEMPLATED:
        what = f"{share:.0%} of the sentences are those of a template, with other numbers"
        found.append(f"Doubtful: {what}. Clean the texts of it, or ask questions of your own.")
    if best < FOUND:
        what = f"even the best ranking scores {best:.0f}, so sentences say little of what their text is about"
        found.append(f"Doubtful: {what}. Ask questions of your own.")
    return tuple(found)
