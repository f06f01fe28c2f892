"""A run that can begin: corpus, plan, rows and labels, each checked once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from selfsent.data.corpus import Corpus
from selfsent.data.views.positives import Documents, Title
from selfsent.display import counted
from selfsent.errors import SettingsError
from selfsent.progress import SILENT, Progress
from selfsent.training.plan import Plan


@dataclass(frozen=True)
class PreparedRun:
    """The input of `fit`, which checks none of it again.

    The split of a corpus is not part of it: training knows the rows to train on, and nothing of evaluation.

    Args:
        corpus: the text.
        plan: the resolved plan, completed by the corpus (`Plan.on`).
        rows: (sentences,) ascending corpus rows to train on.
        labels: (corpus rows,) int64 classes or float32 scores; None for a method without labels.
        class_names: names of the classes; empty without classes.
    """

    corpus: Corpus
    plan: Plan
    rows: np.ndarray
    labels: np.ndarray | None = None
    class_names: tuple[str, ...] = ()

    @classmethod
    def of(cls, corpus: Corpus, plan: Plan, rows: np.ndarray) -> PreparedRun:
        """Check the labels of rows that `rows_with_neighbours` returned.

        Raises:
            SettingsError: labels are missing or do not suit the method.
        """
        labels, names = plan.known(corpus, rows) or (None, ())
        return cls(corpus, plan, rows, labels, names)


def rows_with_neighbours(plan: Plan, corpus: Corpus, rows: np.ndarray, progress: Progress = SILENT) -> np.ndarray:
    """The rows to train on: all, or, for views that read neighbours, rows with others in their document.

    Args:
        plan: with the views.
        corpus: the corpus.
        rows: (sentences,) to choose from.
        progress: receives the number of rows left out.

    Raises:
        SettingsError: fewer than two are left.
    """
    # A single view, as of mlm, reads the row itself as well: it may be alone.
    if corpus.documents is None or not plan.reads_documents or len(plan.views) == 1:
        return rows
    alone = Documents(np.asarray(corpus.documents)).sizes(rows) < 2
    left = int(len(rows) - alone.sum())
    if left < 2:
        problem = f"{plan.method.name} reads the neighbours of a sentence, and no document has two sentences"
        advice = "give split_sentences=True if a text holds several, or check the document column"
        raise SettingsError(f"{problem}: {advice}")
    if alone.any():
        lost = len(rows) - left
        their = "is alone in its document" if lost == 1 else "are alone in their document"
        rest = f"{counted(left, 'row')} can be trained on"
        progress.notice(f"{lost:,} of {corpus.report.counted(len(rows))} {their}, and left out: {rest}")
    rows = rows[~alone]
    if isinstance(plan.views[0].passage, Title):  # one row stands for its document
        rows = rows[np.sort(np.unique(np.asarray(corpus.documents)[rows], return_index=True)[1])]
    return rows
