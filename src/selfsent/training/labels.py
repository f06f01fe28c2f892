"""The labels of a run: what the method must know about each row, looked up in the corpus and looked over."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from selfsent.data.corpus import Corpus
from selfsent.errors import SettingsError
from selfsent.methods.method import Labels

_MOST_CLASSES = 1000
_NO_CLASS = ("", "-")
"""What annotators who did not agree leave behind, as in SNLI."""


@dataclass(frozen=True)
class Known:
    """What is known about the rows of a corpus.

    Args:
        values: (corpus rows,) int64 classes 0, 1, ... or float32 scores.
        names: what the corpus calls the classes; empty with scores.
    """

    values: np.ndarray
    names: tuple[str, ...] = ()


def facts_of(corpus: Corpus) -> dict[str, Any]:
    """What options may take from a corpus."""
    classes = 0 if corpus.labels is None else len(corpus.label_names or np.unique(corpus.labels))
    scores = _scores(corpus)
    largest = 0.0 if scores is None else float(scores.max())
    return {
        "columns": len(corpus.view_columns),
        "classes": classes if classes > 1 else None,
        "largest": largest if largest > 0 else None,
    }


def labels_of(wanted: Labels, method: str, corpus: Corpus, rows: np.ndarray) -> Known:
    """The labels of all rows.

    Args:
        wanted: what the method must know.
        method: its name, for messages.
        corpus: where they stand.
        rows: (sentences,) rows to train on, which must have something to tell apart.

    Raises:
        SettingsError: there are none, or not of the kind, or beyond the scale, or all the same.
    """
    found = _classes(wanted, method, corpus) if wanted.kind == "class" else _scaled(wanted, method, corpus)
    chosen = found.values[rows]
    if (chosen == chosen[0]).all():
        same = found.names[int(chosen[0])] if found.names else f"{chosen[0]:g}"
        raise SettingsError(
            f"all {len(rows):,} rows have the same {wanted.kind}, {same}: {method} has nothing to tell apart"
        )
    return found


def _classes(wanted: Labels, method: str, corpus: Corpus) -> Known:
    if corpus.labels is None:
        why = "the labels of the corpus are no whole numbers" if corpus.scores is not None else "the corpus has none"
        raise SettingsError(f"{method} needs a class for each row, and {why}: name their column with --label-column")
    labels = np.asarray(corpus.labels)
    if corpus.label_names is not None:
        names, codes = corpus.label_names, labels
        none = np.flatnonzero(np.isin(labels, [at for at, name in enumerate(names) if name.strip() in _NO_CLASS]))
    else:
        numbers, codes = np.unique(labels, return_inverse=True)
        names = tuple(map(str, numbers.tolist()))
        none = np.flatnonzero(labels < 0)
    if len(none):
        name = repr(names[codes[none[0]]])
        raise SettingsError(
            f"row {none[0] + 1} of the corpus has the class {name}, which stands for none: leave such rows out"
        )
    most = wanted.classes or _MOST_CLASSES
    if len(names) > most:
        raise SettingsError(
            f"the label column holds {len(names):,} classes, more than"
            f" {f'--classes {most}' if wanted.classes else f'{most:,}'}: is it the right column?"
        )
    return Known(codes.astype(np.int64), names)


def _scaled(wanted: Labels, method: str, corpus: Corpus) -> Known:
    scores = _scores(corpus)
    if scores is None:
        names = corpus.label_names
        why = "the corpus has none" if names is None else f"the label column holds names, such as {names[0]!r}"
        raise SettingsError(
            f"{method} needs a score for each row, and {why}: name their column with --score-column{wanted.hint}"
        )
    low, high = float(scores.min()), float(scores.max())
    scale = wanted.scale or 1.0
    if not wanted.low <= low / scale <= high / scale <= wanted.high:
        possible = low >= 0 or wanted.low < 0
        raise SettingsError(
            f"scores reach from {low:g} to {high:g}, which divided by --scale {scale:g} leaves {method}'s range of"
            f" {wanted.low:g} to {wanted.high:g}: "
            + (f"give --scale {max(abs(low), abs(high)):g}" if possible else "add a number to all of them")
        )
    return Known(scores.astype(np.float32))


def _scores(corpus: Corpus) -> np.ndarray | None:
    """Scores, or labels that are whole numbers."""
    if corpus.scores is not None:
        return np.asarray(corpus.scores)
    return None if corpus.labels is None or corpus.label_names is not None else np.asarray(corpus.labels)
