"""The grid: every method on every architecture."""

import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

import tiny
from selfsent.methods import METHODS
from selfsent.methods.matryoshka import of_sizes
from selfsent.models.loading import load_encoder
from selfsent.models.lora import put_lora
from selfsent.settings import Settings

SLICE = ("bert", tiny.STATIC)
"""What every run of the tests looks at, of methods with labels the first alone; the rest is for `make contract`."""
SENTENCES = tiny.make_sentences(64, seed=3, words=(3, 5))
BATCH = Settings(batch_size=16, learning_rate=5e-3, steps=32)
LEARNED = {
    "ct-inbatch": {"batch_size": 32, "learning_rate": 5e-4, "steps": 60},
    **{name: {"steps": 80} for name in ("mnrl", "gpl", "neighbours", "cropping", "cross-encoder")},
    "distil": {"steps": 110},
    "infersent": {"learning_rate": 5e-4, "steps": 80},  # three layers without anything between them
}
"""With which a few sentences are learned by heart, where that is not `BATCH`."""


@dataclass(frozen=True)
class Cell:
    """A method on an architecture."""

    method: str
    architecture: str

    def __str__(self):
        return f"{self.method}-{self.architecture}"

    @property
    def described(self):
        """The method itself."""
        return METHODS[self.method]

    @property
    def in_slice(self):
        """Whether every run of the tests looks at it or its refusal; those for tables refuse most, each by itself."""
        if self.refusal:
            return not self.described.default_base
        if self.described.default_base:
            return self.architecture == tiny.STATIC
        return self.architecture in (SLICE[:1] if self.described.supervised else SLICE)

    @property
    def has_steps(self):
        """Whether it can be, and has a loss."""
        return not (self.refusal or self.described.closed_form)

    @property
    def settings(self):
        """With which a few sentences are learned by heart."""
        if self.architecture == tiny.STATIC:
            return BATCH.replace(learning_rate=2e-2, steps=100)
        return BATCH.replace(**LEARNED.get(self.method, {}))

    @property
    def refusal(self):
        """Why this cannot be; empty where it can."""
        if self.method == "sent2vec-bigrams":  # of the papers' package
            return "has no vectors of bigrams"
        if self.method in tiny.FOR_TABLES and self.architecture != tiny.STATIC:
            return "it is no table of token vectors"
        if self.architecture == tiny.STATIC and self.described.static is None:
            return "it is a table of token vectors"
        if self.method == "mlm" and self.architecture in tiny.UNMASKED:
            return "its encoder has no masked language model"
        if self.method == "mlm" and self.architecture in tiny.ENCODER_DECODER:
            return "its decoder predicts words, not its encoder"
        return ""

    def learner(self, directory, dropout=0.1, lora=None, sizes=(), **options):
        """A learner, in training mode; with adapters of a rank, where one is given, and for several sizes."""
        # The first token of a causal model sees nothing but itself.
        pooling = "lasttoken" if self.architecture in tiny.CAUSAL else self.described.pooling
        torch.manual_seed(0)
        chosen = self.options(directory, **options)
        bare = self.architecture == tiny.STATIC  # without dropout, a sentence always looks the same to it
        encoder = load_encoder(directory) if bare else load_encoder(directory, pooling, dropout)
        if lora:
            put_lora(encoder, lora, str(directory))
        encoder.sizes = sizes
        return (of_sizes(self.described.learner) if sizes else self.described.learner)(encoder, chosen).train()

    def options(self, directory="bundled-raw", **options):
        """The method's options; its defaults where nothing is said. A teacher is what the student begins as."""
        given = {"teacher": str(directory)} if self.method in tiny.FOLLOWING else {}
        given |= {"translations": True} if self.method == "distil" else {}
        made = self.described.options(**given, **options)
        # With dropout on nothing but attention weights, a sentence is too easily recognised for anything to be learned.
        alike = (self.method, self.architecture) == ("simcse", "qwen3")
        if alike or (self.architecture == tiny.STATIC and hasattr(made, "columns") and not made.varied):
            return self.described.options(**{"delete_words": 0.4, **given, **options})
        return made

    def batches(self, learner, settings, sentences):
        """The batches of a run: of pairs and triples, and with labels, where the method needs them."""
        wanted, labels = learner.options.labels(), None
        if wanted is not None:
            kind = np.float32 if wanted.kind == "score" else np.int64
            labels = np.array([sentence[0] < "l" for sentence in sentences], dtype=kind)
        mined, rows = getattr(learner.options, "mined", 0), np.arange(len(sentences))
        if mined:  # and the teacher knows the partner
            labels = np.eye(1, 1 + mined, dtype=np.float32).repeat(len(rows), 0)
        made = tiny.make_batches(learner, learner.options.views(), settings, sentences, labels)
        made.mined = (rows[:, None] + 1 + np.arange(mined)) % len(rows) if mined else None
        if learner.teachers:
            made.precompute(learner.features, Path(tempfile.gettempdir()))
        return made


GRID = [Cell(method, architecture) for method in METHODS for architecture in (*tiny.ARCHITECTURES, tiny.STATIC)]
