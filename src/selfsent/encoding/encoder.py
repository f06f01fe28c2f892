"""A column of vectors for batches of a table, in engines that distribute them."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from selfsent.encoding.batches import BatchColumn, cleaned, names_of_cleaners
from selfsent.errors import ONE_STRING, SettingsError
from selfsent.models.bases import files_of, resolve
from selfsent.models.opening import open_encoder
from selfsent.models.table import Table
from selfsent.naming import name_of

if TYPE_CHECKING:
    from selfsent.models.encoding import Model, Side

_ONE = threading.Lock()
"""One thread at a time: tokenizers are not thread-safe, and encoding uses all cores."""


class BatchEncoder(BatchColumn):
    """A callable that adds vectors to batches: for Ray's `map_batches`, Spark's `mapInPandas`, Dask and Daft.

    Small and picklable: each process loads the model once, with its first batch. Texts are cleaned as by `selfsent
    encode`; empty and missing ones have zero vectors.

    Args:
        model: a directory, a hub id, or `bundled`, available on each machine.
        text_column: column of texts.
        vector_column: name of the new column.
        fast: compute in bfloat16 where that is faster (cosine to float32: 0.9999).
        int8: faster still on a CPU with AVX-512 VNNI (cosine to float32: 0.999).
        clean: cleaners to apply: some of `html`, `mail`, `urls` and `separators`.
        threads: of torch in each process; by default chosen by torch or the engine.
        prompt: `query` or `document`, for models with such prompts.

    Examples:
        >>> import numpy as np
        >>> from selfsent.encoding import BatchEncoder
        >>> encode = BatchEncoder("bundled")
        >>> batch = {"id": np.array([7, 8]), "text": np.array(["it rains", ""], dtype=object)}
        >>> encode(batch)["embedding"].shape
        (2, 256)
    """

    def __init__(
        self,
        model: str,
        text_column: str = "text",
        vector_column: str = "embedding",
        *,
        fast: bool = False,
        int8: bool = False,
        clean: str | Iterable[str] | None = None,
        threads: int | None = None,
        prompt: Side | None = None,
    ) -> None:
        if prompt not in (None, "query", "document"):
            raise SettingsError(f"there is no prompt {prompt!r}; it is query or document")
        super().__init__([text_column], vector_column)
        self.model, self.clean = str(name_of(model)), names_of_cleaners(clean)
        self.fast, self.int8, self.threads, self.prompt = fast, int8, threads, prompt

    @property
    def type(self) -> pa.DataType:
        """Lists of as many float32 as the model has dimensions; the model is loaded for it."""
        return pa.list_(pa.float32(), self._encoder().embedding_size)

    def array(self, *columns: Iterable[Any]) -> pa.Array:
        """The vectors of a column of texts, (n,)."""
        vectors = self.vectors(*columns)
        return pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), vectors.shape[1])

    def vectors(self, texts: Iterable[Any]) -> NDArray[np.float32]:
        """The vectors of texts, (n, d); zeros for empty texts, None and NaN. Repeated texts are computed once.

        Raises:
            CorpusError: a text is neither a string nor missing.
            SettingsError: one string instead of a list.
        """
        if isinstance(texts, str):
            raise SettingsError(ONE_STRING)
        from selfsent.models.encoding import encode

        found = cleaned(texts, self.clean)
        numbers = {text: number for number, text in enumerate(dict.fromkeys(filter(None, found)))}
        with _ONE:
            encoder = self._encoder()
            distinct = encode(encoder, list(numbers), side=self.prompt)
        zeros = np.zeros((1, encoder.embedding_size), dtype=np.float32)
        rows = np.array([numbers.get(text, len(numbers)) for text in found], np.int64)
        vectors: NDArray[np.float32] = np.concatenate([distinct, zeros])[rows]
        return vectors

    def _encoder(self) -> Model:
        return _loaded(self.model, files_of(resolve(self.model)), self.fast, self.int8, self.threads)


@lru_cache(maxsize=2)
def _loaded(model: str, state: object, fast: bool, int8: bool, threads: int | None) -> Model:
    """The model of this process; reloaded if its files change. A table needs no torch."""
    encoder = open_encoder(model)
    if isinstance(encoder, Table):
        return encoder
    import torch

    from selfsent.models.precision import quicken

    if threads is not None:
        torch.set_num_threads(threads)
    return quicken(encoder, fast=fast, int8=int8)
