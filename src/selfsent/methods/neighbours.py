"""Neighbours: a sentence must find the one beside it in its document among those of other documents."""

from __future__ import annotations

from dataclasses import dataclass

from selfsent.methods.method import STATIC, Method
from selfsent.methods.mnrl import MNRL, MnrlLearner, views
from selfsent.methods.mnrl import Options as RankingOptions
from selfsent.methods.two_views import POSITIVES, Positives
from selfsent.settings import Settings, setting


@dataclass(frozen=True)
class Options(RankingOptions):
    """Options of training on neighbours: those of multiple-negatives ranking, with other defaults."""

    positives: Positives = setting("neighbours", POSITIVES)
    both_directions: bool = setting(True, "the neighbour must find its sentence, too; the mean of both losses")
    hard_negatives: bool | None = setting(False, "the third text column is a wrong partner of the first")


NEIGHBOURS = Method(
    name="neighbours",
    title="Neighbours",
    citation="the loss: " + MNRL.citation,
    objective="−log exp(s·cos(aᵢ, bᵢ)) / Σⱼ exp(s·cos(aᵢ, bⱼ)), b the sentence beside a, j of other documents",
    learner=MnrlLearner,
    options=Options,
    views=views,
    batchwise=True,
    pooling="mean",
    published=Settings(batch_size=64, learning_rate=2e-5, epochs=1),
    defaults=Settings(batch_size=64, learning_rate=5e-4, epochs=1, max_length=64),
    large_learning_rate=2e-5,
    static=STATIC,
    for_encoders={"keep_base": 1.0},
    static_whiten=0.1,
)
