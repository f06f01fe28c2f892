"""Default method, base, and settings for a kind of base."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from selfsent.data.corpus import Corpus
from selfsent.data.views.positives import Documents
from selfsent.errors import SettingsError
from selfsent.methods import METHODS, Method
from selfsent.methods.method import NEW_STATIC, STATIC
from selfsent.models.base_info import BaseInfo
from selfsent.models.bases import BUNDLED, ENCODER, RAW
from selfsent.settings import Settings, split_arguments
from selfsent.training.run_config import ModelOptions

DEFAULT_METHOD = "neighbours"
"""The default method for corpora with documents."""
_ENOUGH = 0.5
"""Minimum share of sentences with a neighbour for training on neighbours: the others are left out."""
FOR_SINGLE: tuple[str, Mapping[str, Any]] = ("simcse", {"pooling": "mean", "mlp": False, "crop_words": 0.5})
"""Method and settings for sentences without documents: docs/log. Mean pooling where the base has none of its own."""
FOR_SINGLE_FROM_ENCODER: tuple[str, Mapping[str, Any]] = ("bootstrap", {"pick_words": 16})
"""Method and settings for them from a transformer that is a sentence encoder."""
LONGEST_DOCUMENT = 512
"""Tokens read of a whole document by default, if the base reads as many."""
FASTER = 10
"""Default learning rate of adapters, as a multiple of a large encoder's: docs/log."""
LENGTH = 16.35
"""Mean length of the rows of `bundled`, for which the default rate of tables is chosen."""
LARGE = 15_000_000
"""Parameters from which an encoder counts as large: its default learning rate is the smaller one."""


def default_method(corpus: Corpus, base: BaseInfo | None) -> tuple[Method, Mapping[str, Any], str]:
    """The method for a corpus and a base, settings that are not its own defaults, and the reason in a few words.

    Raises:
        SettingsError: the corpus has labels, so that several methods could be meant.
    """
    if corpus.labels is not None or corpus.scores is not None:
        raise SettingsError("the corpus has labels: say what to learn from them, with `method` softmax or cosine")
    if len(corpus.input_columns) > 1:
        return METHODS["mnrl"], {}, "rows of several texts"
    if corpus.documents is not None and Documents(np.asarray(corpus.documents)).accompanied_share >= _ENOUGH:
        return METHODS[DEFAULT_METHOD], {}, "the sentences have neighbours"
    name, settings = for_single(base)
    no_documents = corpus.documents is None
    reason = "the corpus has no documents" if no_documents else "few sentences have a neighbour in their document"
    return METHODS[name], settings, reason


def for_single(base: BaseInfo | None) -> tuple[str, Mapping[str, Any]]:
    """The method for sentences without documents from this base, and settings that are not its own defaults."""
    if base is None:
        return FOR_SINGLE
    name, settings = FOR_SINGLE_FROM_ENCODER if base.is_trained_transformer else FOR_SINGLE
    if base.pooling is not None:
        settings = {key: value for key, value in settings.items() if key != "pooling"}
    return name, settings


def default_settings(method: Method, base: BaseInfo, lora: bool = False) -> Settings:
    """The default settings for a kind of base, and for adapters.

    Raises:
        SettingsError: the method cannot train static embeddings, and the base is one.
    """
    if lora:
        return method.defaults.replace(learning_rate=FASTER * method.large_learning_rate)
    if not base.is_static:
        # Without labels, large rates damage a base that is a sentence encoder already (docs/log).
        knows = not method.supervised and base.is_sentence_encoder
        # Large networks need small rates.
        small = base.parameters <= LARGE and not knows
        return method.defaults if small else method.defaults.replace(learning_rate=method.large_learning_rate)
    if method.static is None:
        problem = f"{method.name} needs a transformer, and {base.name} is a table of token vectors"
        advice = f"give another `base`, such as {RAW}, or leave it out"
        raise SettingsError(f"{problem}: {advice}")
    if not base.is_sentence_encoder:  # random rows, whose length says nothing
        return (
            NEW_STATIC if method.static is STATIC else method.static.replace(learning_rate=method.large_learning_rate)
        )
    # The step is for a row of mean length: another scale of the table makes no difference.
    length = base.mean_row_length
    return method.static.replace(learning_rate=float(f"{method.static.learning_rate * length / LENGTH:.2g}"))


def default_base(method: Method, given: Mapping[str, Any], model: ModelOptions) -> str:
    """The best base that ships with selfsent and that the method can train with these options.

    Static embeddings if they suit, else a transformer, and one with a language-model head if words are predicted.

    Args:
        method: the learning method.
        given: options and settings that were given.
        model: the requested head, pooling, dropout rate and adapters.

    Raises:
        SettingsError: an option is out of range.
    """
    options, _ = split_arguments(method.options, given)
    if method.default_base is not None:
        return method.default_base
    if method.learner.predicts_words:
        return RAW
    plain = model.head is None and model.pooling in (None, "mean") and not (model.dropout or model.lora)
    return BUNDLED if plain and method.static is not None and options.suits_static else ENCODER


def is_strong(base: BaseInfo) -> bool:
    """Whether a base is a sentence encoder that training on documents adds little to in hybrid search (docs/log)."""
    return base.is_trained_transformer and base.parameters > LARGE
