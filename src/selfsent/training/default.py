"""What is trained where the user names no method: what won on development data for that kind of corpus."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from selfsent.data.corpus import Corpus
from selfsent.data.views.positives import Documents
from selfsent.errors import SettingsError
from selfsent.methods import METHODS, Method
from selfsent.methods.ranking import NOISES
from selfsent.models.bases import resolve
from selfsent.models.saved import is_trained_transformer, saved_pooling
from selfsent.training.plan import Plan, make_plan

USUAL = "neighbours"
"""What is trained unless the corpus asks for something else."""
_ENOUGH = 0.5
"""Share of the sentences that must have a neighbour for training on neighbours: the others are left out."""
FOR_SINGLE: tuple[str, Mapping[str, Any]] = ("simcse", {"pooling": "mean", "mlp": False, "crop_words": 0.5})
"""For sentences without documents, and how: docs/log. Mean pooling where the base has none of its own."""
FOR_SINGLE_FROM_ENCODER: tuple[str, Mapping[str, Any]] = ("bootstrap", {"pick_words": 16})
"""The same from a transformer that was trained to make sentence vectors."""


def default_method(corpus: Corpus, base: str | Path | None) -> tuple[Method, Mapping[str, Any], str]:
    """The method for a corpus and a base, settings that are not its own defaults, and the reason in a few words.

    Raises:
        SettingsError: the corpus has labels, so that several methods could be meant.
    """
    if corpus.labels is not None or corpus.scores is not None:
        raise SettingsError(
            "the corpus has labels: say what to learn from them, with --method softmax (classes of pairs), cosine"
            " (scores of pairs) or another of selfsent methods"
        )
    if len(corpus.view_columns) > 1:
        return METHODS["mnrl"], {}, "rows of several texts"
    if corpus.documents is not None and Documents(np.asarray(corpus.documents)).company_share >= _ENOUGH:
        return METHODS[USUAL], {}, "the sentences have neighbours"
    name, settings = for_single(base)
    no_documents = corpus.documents is None
    reason = "the corpus has no documents" if no_documents else "few sentences have a neighbour in their document"
    return METHODS[name], settings, reason


def for_single(base: str | Path | None) -> tuple[str, Mapping[str, Any]]:
    """The method for sentences without documents from this base, and settings that are not its own defaults."""
    was_strong = base is not None and is_trained_transformer(resolve(base))
    name, settings = FOR_SINGLE_FROM_ENCODER if was_strong else FOR_SINGLE
    if base is not None and saved_pooling(resolve(base)) is not None:
        settings = {key: value for key, value in settings.items() if key != "pooling"}
    return name, settings


def doubt(plan: Plan) -> str | None:
    """What is said of a default from which little can be hoped; None of the others."""
    if plan.method.name != FOR_SINGLE_FROM_ENCODER[0] or not is_trained_transformer(resolve(plan.base)):
        return None
    return (
        "the base is a sentence encoder already, and single sentences change one by about a point:"
        " look at the scores before you use the result"
    )


def default_plan(corpus: Corpus, base: str | Path | None, **told: Any) -> tuple[Plan, str]:
    """The plan of the method that a corpus asks for, and the reason in a few words.

    Args:
        corpus: the corpus.
        base: the base encoder; None for the best that ships with selfsent and that the method can train.
        **told: what the user said, as `make_plan` takes it; None counts as nothing.

    Raises:
        SettingsError: as `default_method` and `make_plan` do.
    """
    method, settings, reason = default_method(corpus, base)
    said = {name: value for name, value in told.items() if value is not None}
    unwanted = set(NOISES) if said.keys() & set(NOISES) else set()
    if "head" in said:
        unwanted |= {"pooling"}
    usual = {} if "preset" in said else {name: value for name, value in settings.items() if name not in unwanted}
    try:
        return make_plan(method, base, **{**usual, **said}), reason
    except SettingsError as error:
        raise SettingsError(f"without --method, {method.name} is trained here, as {reason}: {error}") from None
