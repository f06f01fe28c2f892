"""The grid: every method on every architecture."""

import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

import tiny
from selfsent.methods import METHODS, Learner
from selfsent.models.loading import load_encoder
from selfsent.settings import Settings

SLICE = ("bert", "modernbert", tiny.STATIC)
"""What every run of the tests looks at, of methods with labels the first alone; the rest is for `make contract`."""
SENTENCES = tiny.make_sentences(64, seed=3, words=(3, 5))
BATCH = Settings(batch_size=16, learning_rate=5e-3, steps=32)


@dataclass(frozen=True)
class Cell:
    """A method on an architecture."""

    method: str
    architecture: str

    def __str__(self):
        return f"{self.method}-{self.architecture}"

    @property
    def closed_form(self):
        """Whether there are no steps: one look at the sentences is all."""
        return METHODS[self.method].closed_form

    @property
    def in_slice(self):
        """Whether it is looked at in every run of the tests."""
        if METHODS[self.method].usual_base:
            return self.architecture == (tiny.STATIC if self.method == "sent2vec" else tiny.RECURRENT[0])
        return self.architecture in (SLICE[:1] if METHODS[self.method].supervised else SLICE)

    @property
    def is_refused_quickly(self):
        """Whether a refusal is looked at in every run of the tests: sent2vec refuses all but one, each for itself."""
        return bool(self.refusal) and self.method != "sent2vec"

    @property
    def trains_encoder(self):
        """Whether sentences go through the encoder in every step, instead of once before the first."""
        still = self.is_static or self.is_recurrent
        return not (self.refusal or self.closed_form or still or any(view.precomputed for view in self.views()))

    @property
    def is_static(self):
        """Whether the encoder is a table of token vectors: without dropout, a sentence always looks the same."""
        return self.architecture == tiny.STATIC

    @property
    def is_recurrent(self):
        """Whether the encoder is a recurrent network of one layer, without dropout either."""
        return self.architecture in tiny.RECURRENT

    @property
    def dropout(self):
        """The rate at which there is something to learn: two equal encoders find each other's sentences too easily."""
        return 0.3 if self.method == "ct-inbatch" else 0.1

    @property
    def settings(self):
        """With which a few sentences are learned by heart."""
        if self.is_static:
            return BATCH.but(learning_rate=2e-2, steps=100)
        if self.is_recurrent and self.method in ("distil", "quick-thoughts"):
            return BATCH.but(learning_rate=1e-2, steps=128)
        if self.method == "ct-inbatch":
            return BATCH.but(batch_size=32, learning_rate=5e-4, steps=60 if self.architecture == "t5" else 40)
        if self.method == "cross-encoder":  # it learns more slowly
            return BATCH.but(steps=80)
        if self.method == "inverse-cloze":
            return BATCH.but(learning_rate=2e-3, steps=128)
        return BATCH.but(steps=64) if self.method in ("mnrl", "neighbours", "cropping", "distil") else BATCH

    @property
    def share_left(self):
        """The share of the loss that may be left when a few sentences have been learned by heart."""
        # Vectors of a random recurrent network are nearly parallel: even the teacher's own find each other badly.
        return 0.92 if self.method == "distil" and self.is_recurrent else 0.85

    @property
    def refusal(self):
        """Why this cannot be; empty where it can."""
        if self.method == "sent2vec" and not self.is_static:
            return "it is a recurrent network" if self.is_recurrent else "it is no table of token vectors"
        if self.is_static and METHODS[self.method].static is None:
            return "it is a table of token vectors"
        if self.is_recurrent and self.method in ("tsdae", "mlm", "declutr", "cross-encoder"):
            return "it is a recurrent network"
        if self.method in ("mlm", "declutr") and self.architecture in tiny.CAUSAL:
            return "transformers has no masked language model of this architecture"
        if self.method in ("mlm", "declutr", "tsdae") and self.architecture in tiny.ENCODER_DECODER:
            return "its decoder predicts words, not its encoder"
        return ""

    def learner(self, directory, dropout=0.1, **options) -> Learner:
        """A learner, in training mode."""
        method = METHODS[self.method]
        # The first token of a causal model sees nothing but itself.
        pooling = "lasttoken" if self.architecture in tiny.CAUSAL else method.pooling
        torch.manual_seed(0)
        chosen = self.options(directory, **options)
        bare = self.is_static or self.is_recurrent
        encoder = load_encoder(directory) if bare else load_encoder(directory, pooling, dropout)
        return method.learner(encoder, chosen).train()

    def options(self, directory="bundled-raw", **options):
        """The method's options; its defaults where nothing is said. A teacher is what the student begins as."""
        # With dropout on nothing but attention weights, a sentence is too easily recognised for anything to be learned.
        method = METHODS[self.method]
        teacher = {"teacher": str(directory), "translations": True} if self.method == "distil" else {}
        alike = (self.method, self.architecture) == ("simcse", "qwen3")
        made = method.options(**{**teacher, **options})
        alike = alike or ((self.is_static or self.is_recurrent) and hasattr(made, "columns") and not made.varied)
        noise = {"delete_words": 0.4} if alike else {}
        return method.options(**{**noise, **teacher, **options})

    def views(self, **options):
        """What the learner reads."""
        return self.options(**options).views()

    def batches(self, learner, settings, sentences, **options):
        """The batches of a run: of pairs and triples, and with labels, where the method needs them."""
        wanted = self.options(**options).labels()
        labels = None
        if wanted is not None:
            kind = np.float32 if wanted.kind == "score" else np.int64
            labels = np.array([sentence[0] < "l" for sentence in sentences], dtype=kind)
        made = tiny.make_batches(learner, self.views(**options), settings, sentences, labels)
        if learner.teachers:
            made.precompute(learner.features, Path(tempfile.gettempdir()))
        return made


ARCHITECTURES = (*tiny.ARCHITECTURES, tiny.STATIC, *tiny.RECURRENT)
GRID = [Cell(method, architecture) for method in METHODS for architecture in ARCHITECTURES]
