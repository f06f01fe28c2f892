"""Inverse cloze: one encoder reads a sentence, another must know the passage it was taken from."""

from __future__ import annotations

from dataclasses import dataclass

from selfsent.methods.method import STATIC, Method
from selfsent.methods.quick_thoughts import QUICK_THOUGHTS, DualEncoderLearner
from selfsent.methods.quick_thoughts import Options as DualEncoderOptions
from selfsent.methods.two_views import POSITIVES, Positives, two_views
from selfsent.settings import Settings, setting


@dataclass(frozen=True)
class Options(DualEncoderOptions):
    """Options of the inverse cloze task: those of Quick-Thoughts, with surroundings in place of a neighbour."""

    positives: Positives = setting("surroundings", POSITIVES)
    within: int = setting(5, "sentences of the passage before and behind", minimum=1)


INVERSE_CLOZE = Method(
    name="inverse-cloze",
    title="Inverse cloze task",
    citation="Lee, Chang and Toutanova, 2019. arXiv:1906.00300",
    objective="−log exp(f(s)·g(p)) / Σ exp(f(s)·g(p′)), p the passage around s, mostly without s",
    learner=DualEncoderLearner,
    options=Options,
    views=two_views,
    batchwise=True,
    pooling="cls",
    published=Settings(
        batch_size=4096, learning_rate=1e-4, steps=100_000, warmup=10_000, weight_decay=0.01, max_length=288
    ),
    defaults=QUICK_THOUGHTS.defaults.but(max_length=128),
    large_learning_rate=QUICK_THOUGHTS.large_learning_rate,
    static=STATIC,
)
