"""Cropping: two spans of one document must find each other among those of other documents."""

from __future__ import annotations

from dataclasses import dataclass

from selfsent.methods.method import STATIC, Method
from selfsent.methods.mnrl import MnrlLearner, views
from selfsent.methods.neighbours import NEIGHBOURS
from selfsent.methods.neighbours import Options as NeighbourOptions
from selfsent.settings import Settings, setting


@dataclass(frozen=True)
class Options(NeighbourOptions):
    """Options of cropping: those of training on neighbours, with spans that may overlap."""

    within: int = setting(10, "how many sentences away the other crop may be", minimum=1)
    span: int = setting(2, "sentences in a crop at most, drawn anew each time", minimum=1)
    overlap: bool = setting(True, "the two crops may share sentences")
    both_directions: bool = setting(False, "the other crop must find its partner, too; the mean of both losses")


CROPPING = Method(
    name="cropping",
    title="Cropping",
    citation="González-Márquez, Berens and Kobak, 2025. arXiv:2508.03453",
    objective="−log exp(s·cos(aᵢ, bᵢ)) / Σⱼ exp(s·cos(aᵢ, bⱼ)), a and b two crops of one document",
    learner=MnrlLearner,
    options=Options,
    views=views,
    batchwise=True,
    pooling="mean",
    published=Settings(batch_size=64, learning_rate=2e-5, epochs=1, clip=0, max_length=512),
    defaults=NEIGHBOURS.defaults.but(max_length=128),
    large_learning_rate=NEIGHBOURS.large_learning_rate,
    static=STATIC,
    for_encoders=NEIGHBOURS.for_encoders,
)
