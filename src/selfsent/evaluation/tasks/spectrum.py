"""How vectors lie on the sphere (`spectrum`): how evenly, and how near a damaged sentence stays to itself."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from selfsent.errors import DataError
from selfsent.evaluation.datasets.declared import fingerprint
from selfsent.evaluation.encoder import Encoder
from selfsent.evaluation.results import SCALE, Score, signature
from selfsent.evaluation.stats.metrics import mean
from selfsent.evaluation.stats.resampling import interval, mean_of_few, point

NAME = "spectrum"
TOGETHER = 128
"""Sentences that are looked at together: their effective rank is 127 at most."""
LEAST_PARTS = 3
WORST = 4.0
"""Alignment and −uniformity both lie between 0 and 4."""


class SpectrumTask:
    """Evenness and alignment (Wang and Isola, 2020), as one number: (−uniformity − alignment) / 4.

    `effective_rank` (Roy and Vetterli, 2007), as a share of what it can be, stands beside it. Models that count words
    have no such score. The interval is over parts of 128 sentences, by Student's t, since there are few.

    Args:
        sentences: those to look at.
        damaged: the same, damaged, for alignment.

    Raises:
        DataError: there are fewer than 384.
    """

    def __init__(self, sentences: Sequence[str], damaged: Sequence[str]) -> None:
        self.parts = len(sentences) // TOGETHER
        if self.parts < LEAST_PARTS:
            raise DataError(f"{NAME} needs {LEAST_PARTS * TOGETHER} sentences")
        self.texts, self.damaged = (list(each[: self.parts * TOGETHER]) for each in (sentences, damaged))

    def score(self, encoder: Encoder) -> Score:
        """The score of an encoder; uniformity, alignment and effective rank beside it, each times 100.

        Raises:
            DataError: the encoder has no vectors.
        """
        import torch

        from selfsent.models.health import measure as health

        vectors, again = (torch.from_numpy(np.asarray(encoder(side))) for side in (self.texts, self.damaged))
        size = min(TOGETHER - 1, vectors.shape[1])
        found = [
            health(a, b) for a, b in zip(torch.split(vectors, TOGETHER), torch.split(again, TOGETHER), strict=True)
        ]
        values = {
            "uniformity": [-each.uniformity / WORST for each in found],
            "alignment": [-(each.alignment or 0.0) / WORST for each in found],
            "effective_rank": [each.effective_rank / size for each in found],
        }
        both = np.nan_to_num(np.add(values["uniformity"], values["alignment"]), nan=-1.0)
        data = fingerprint({"text": self.texts, "damaged": self.damaged})
        label = signature(NAME, "uniformity+alignment", parts=self.parts, data=data, pool=encoder.pooling, v=1)
        beside = {name: SCALE * point(mean(each), self.parts) for name, each in values.items()}
        samples = SCALE * mean_of_few(both)
        return Score(NAME, float(SCALE * both.mean()), *interval(samples), self.parts, label, beside, samples=samples)
