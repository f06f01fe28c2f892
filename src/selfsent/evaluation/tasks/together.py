"""Do the nearest sentences come from the same document (`document`)?"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from selfsent.data.vector_files import inner
from selfsent.errors import DataError
from selfsent.evaluation.datasets.declared import fingerprint
from selfsent.evaluation.encoder import Encoder
from selfsent.evaluation.results import Score, measure, signature
from selfsent.evaluation.stats.duplicates import near_duplicates
from selfsent.evaluation.stats.metrics import mean
from selfsent.evaluation.tasks.partners import BLOCK, LEAST, BesideWords, Rows

NEAREST = 10
NAME = "document"


class DocumentTask(BesideWords):
    """The share of the nearest sentences that are of the same document: of so many as it has others, ten at most.

    Near-duplicates of a sentence are not among its nearest. All other sentences are, so that the score falls as their
    number grows: compare encoders by it, not corpora.

    Args:
        texts: sentences.
        documents: (n,) where each is from.

    Raises:
        DataError: too few sentences have another one beside them in their document.
    """

    def __init__(self, texts: Sequence[str], documents: Rows) -> None:
        self.texts, self.document = list(texts), documents
        self.near = near_duplicates(self.texts)
        others = np.zeros(len(texts), np.int64)
        for block in np.array_split(np.arange(len(texts)), 1 + len(texts) ** 2 // BLOCK):
            same = documents[block][:, None] == documents[None, :]
            others[block] = (same & ~self.near[block].toarray().astype(bool)).sum(1)
        self.wanted = np.minimum(others, NEAREST)
        self.queries = np.flatnonzero(self.wanted)
        if len(self.queries) < LEAST:
            raise DataError(f"{NAME} needs {LEAST} sentences that have others beside them in their document")

    def _score(self, encoder: Encoder) -> Score:
        asked, goals = encoder.sides(self.texts, self.texts)
        shares = []
        for block in np.array_split(self.queries, 1 + len(self.queries) * len(self.texts) // BLOCK):
            similarity = inner(asked[block], goals)
            similarity[self.near[block].toarray().astype(bool)] = -np.inf
            order = np.argsort(-similarity, axis=1, kind="stable")[:, :NEAREST]
            hits = self.document[order] == self.document[block][:, None]
            hits &= np.arange(NEAREST)[None, : order.shape[1]] < self.wanted[block][:, None]
            shares.append(hits.sum(1) / self.wanted[block])
        groups = self.document[self.queries]
        label = signature(
            NAME,
            f"precision@{NEAREST}",
            encoder.measure,
            s=len(self.texts),
            n=len(self.queries),
            docs=len(np.unique(groups)),
            data=self._data,
            pool=encoder.pooling,
            v=1,
        )
        return measure(NAME, mean(np.concatenate(shares)), len(self.queries), signature=label, groups=groups)

    @cached_property
    def _data(self) -> str:
        return fingerprint({"text": self.texts, "document": self.document.tolist()})
