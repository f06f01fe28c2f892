"""What was asked for, as a run records it: what a run must have in common with the one that it resumes."""

from __future__ import annotations

import dataclasses
import hashlib
from pathlib import Path
from typing import Any

import numpy as np

from selfsent.data.corpus import Corpus
from selfsent.models.bases import resolve, weights_digest
from selfsent.models.heads.options import CNN_POOL, name_of
from selfsent.training.plan import Plan


def asked(plan: Plan, corpus: Corpus, rows: np.ndarray) -> dict[str, Any]:
    """A plan and its data as JSON: what a run must have in common with the one it resumes."""
    digests = ",".join(weights_digest(resolve(teacher)) for teacher in plan.teachers)
    return {
        "method": plan.method.name,
        "options": dataclasses.asdict(plan.options),
        **({"teacher_digest": digests} if digests else {}),
        "settings": dataclasses.asdict(plan.settings),
        "base": plan.base,
        "base_digest": weights_digest(resolve(plan.base)),
        "pooling": plan.pooling or CNN_POOL,
        **({"head": {"name": name_of(plan.head), **dataclasses.asdict(plan.head)}} if plan.head else {}),
        "dropout": plan.dropout,
        "whiten": plan.whiten,
        "corpus": {
            "source": corpus.source,
            "fingerprint": corpus.fingerprint,
            "sentences": len(rows),
            "rows": rows_digest(rows),
        },
    }


def read_by(plan: Plan) -> list[Path]:
    """The encoders that a plan begins with."""
    return [resolve(name) for name in (plan.base, *plan.teachers)]


def rows_digest(rows: np.ndarray) -> str:
    """What tells one choice of a corpus' rows from another."""
    return hashlib.blake2b(np.ascontiguousarray(rows, dtype=np.int64).tobytes(), digest_size=8).hexdigest()
