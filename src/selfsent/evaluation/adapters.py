"""Our encoders in other libraries: a scikit-learn transformer, and a model for the mteb benchmark (2.x)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin

from selfsent.data.vector_files import Vectors, unit
from selfsent.errors import ONE_STRING, SettingsError
from selfsent.evaluation.encoders import Encoder, as_encoder, state_of_model
from selfsent.naming import name_of

REMEMBERED = 1 << 18
"""Number of cached texts at which the cache is cleared, since a service receives new ones forever."""


class SentenceVectors(TransformerMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn ships no types
    """Texts to sentence vectors, as a step of a scikit-learn `Pipeline`.

    Args:
        model: anything `selfsent.evaluation.encoders.as_encoder` takes. Clones share it and its cache (some hundred
            thousand texts), so that a grid search encodes every text once.
        unit: scale vectors to length one.
    """

    def __init__(self, model: Any = "bundled", unit: bool = False) -> None:
        self.model = model
        self.unit = unit

    def fit(self, texts: Sequence[str], y: Any = None) -> SentenceVectors:
        """Load the model; there is nothing to fit."""
        model = name_of(self.model)
        self.encoder_ = _loaded(model, state_of_model(model)) if isinstance(model, str) else as_encoder(model)
        return self

    def transform(self, texts: Iterable[str]) -> Vectors:
        """The vectors of texts, (n, d), float32.

        Raises:
            SettingsError: an item that is no text, or one string instead of a list.
        """
        if isinstance(texts, str):
            raise SettingsError(ONE_STRING)
        chosen = list(texts)
        wrong = next((text for text in chosen if not isinstance(text, str)), None)
        if wrong is not None:
            raise SettingsError(f"SentenceVectors takes a list of texts, not one with {type(wrong).__name__} in it")
        encoder: Encoder = self.encoder_ if hasattr(self, "encoder_") else self.fit(chosen).encoder_
        vectors = encoder(chosen)
        encoder.forget(above=REMEMBERED)
        return unit(vectors) if self.unit else vectors

    def __getstate__(self) -> dict[str, Any]:
        """Without the encoder, which is reloaded on use."""
        return {name: value for name, value in super().__getstate__().items() if name != "encoder_"}

    def __sklearn_is_fitted__(self) -> bool:
        return True


class MtebModel:
    """A model that `mteb.evaluate` accepts.

    Args:
        model: anything `selfsent.evaluation.encoders.as_encoder` takes.
        name: `organisation/name`, under which mteb files the results.
        revision: of the model.
    """

    def __init__(self, model: Any, name: str = "selfsent/model", revision: str | None = None, **_: Any) -> None:
        self.encoder: Encoder = as_encoder(model)
        self.name, self.revision = name, revision

    def encode(self, inputs: Iterable[dict[str, Any]], **_: Any) -> Vectors:
        """The vectors of the texts of all batches, (n, d), float32; prompts are not used."""
        return self.encoder([text for batch in inputs for text in batch["text"]])

    def similarity(self, left: Any, right: Any) -> NDArray[np.float32]:
        """The cosine of every row of one with every row of the other, (n, m)."""
        return unit(_rows(left)) @ unit(_rows(right)).T

    def similarity_pairwise(self, left: Any, right: Any) -> NDArray[np.float32]:
        """The cosine of each pair of rows, (n,)."""
        cosine: NDArray[np.float32] = np.einsum("nd,nd->n", unit(_rows(left)), unit(_rows(right)))
        return cosine

    @property
    def mteb_model_meta(self) -> Any:
        """Metadata for mteb."""
        module = import_module("mteb.models.model_meta")
        known = {"name": self.name, "revision": self.revision, "similarity_fn_name": module.ScoringFunction.COSINE}
        return module.ModelMeta.create_empty(known)


@lru_cache(maxsize=4)
def _loaded(model: str, state: object) -> Encoder:
    """The encoder of that name; reloaded if its files change."""
    return as_encoder(model)


def _rows(vectors: Any) -> NDArray[np.float32]:
    return np.atleast_2d(np.asarray(vectors, np.float32))
