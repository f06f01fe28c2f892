"""A column of vectors for batches of a table, in engines that distribute them: Ray, Spark, Dask and Daft."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from selfsent.data.corpus.batch import is_missing
from selfsent.data.corpus.clean import LONGEST_TEXT, clean
from selfsent.data.corpus.cleaners import Cleaners
from selfsent.errors import ONE_STRING, CorpusError, SettingsError
from selfsent.models.bases import files_of, resolve
from selfsent.naming import name_of

if TYPE_CHECKING:
    from selfsent.models.encoder import Encoder
    from selfsent.models.encoding import Side

_ONE = threading.Lock()
"""One thread at a time: tokenizers are not thread-safe, and encoding uses all cores."""


class BatchEncoder:
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

    Example:
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
        if text_column == vector_column:
            raise SettingsError(f"the vectors cannot replace the texts:  {text_column!r} names both columns")
        self.model, self.text_column, self.vector_column = str(name_of(model)), text_column, vector_column
        self.fast, self.int8, self.threads, self.prompt = fast, int8, threads, prompt
        self.clean = Cleaners(clean if clean is None or isinstance(clean, str) else list(clean)).names

    def __call__(self, batch: Any) -> Any:
        """The same batch with a column of vectors, float32.

        Args:
            batch: a pandas DataFrame, a pyarrow Table or RecordBatch, or a dictionary of numpy arrays, of n rows.

        Returns:
            A batch of the same kind. Vectors are arrays in a DataFrame, a fixed-size list in pyarrow, (n, d) in a
            dictionary.

        Raises:
            CorpusError: a text is no string, or the column is missing.
            SettingsError: the vectors' column exists already, or another kind of batch.
        """
        arrow, frame = hasattr(batch, "schema") and hasattr(batch, "num_rows"), hasattr(batch, "assign")
        if not arrow and not frame and not isinstance(batch, Mapping):
            problem = f"a batch is {type(batch).__name__}"
            advice = "it must be a pandas DataFrame, a pyarrow Table or a dictionary of numpy arrays"
            raise SettingsError(f"{problem}; {advice}")
        names = list(batch.schema.names if arrow else batch)
        if self.text_column not in names:
            raise CorpusError(f"a batch has no column {self.text_column!r}; it has {', '.join(map(repr, names))}")
        if self.vector_column in names:
            raise SettingsError(f"a batch has a column {self.vector_column!r} already: name another vector_column")
        texts = batch[self.text_column]
        vectors = self.vectors(texts.to_pylist() if arrow else texts)
        if frame:
            return batch.assign(**{self.vector_column: list(vectors)})
        if not arrow:
            return {**batch, self.vector_column: vectors}
        import pyarrow as pa

        lists = pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), vectors.shape[1])
        return batch.append_column(self.vector_column, lists)

    def vectors(self, texts: Iterable[Any]) -> NDArray[np.float32]:
        """The vectors of texts, (n, d); zeros for empty texts, None and NaN. Repeated texts are computed once.

        Raises:
            CorpusError: a text is neither a string nor missing.
            SettingsError: one string instead of a list.
        """
        if isinstance(texts, str):
            raise SettingsError(ONE_STRING)
        from selfsent.models.encoding import encode

        cleaned, _ = clean(Cleaners(self.clean)([_as_text(text, row) for row, text in enumerate(texts)]))
        numbers = {text: number for number, text in enumerate(dict.fromkeys(filter(None, cleaned)))}
        with _ONE:
            encoder = _loaded(self.model, files_of(resolve(self.model)), self.fast, self.int8, self.threads)
            found = encode(encoder, list(numbers), side=self.prompt)
        zeros = np.zeros((1, encoder.embedding_size), dtype=np.float32)
        rows = np.array([numbers.get(text, len(numbers)) for text in cleaned], np.int64)
        vectors: NDArray[np.float32] = np.concatenate([found, zeros])[rows]
        return vectors


@lru_cache(maxsize=2)
def _loaded(model: str, state: object, fast: bool, int8: bool, threads: int | None) -> Encoder:
    """The model of this process; reloaded if its files change."""
    import torch

    from selfsent.models.loading import load_encoder
    from selfsent.models.precision import inference_device, quicken

    if threads is not None:
        torch.set_num_threads(threads)
    return quicken(load_encoder(model).to(inference_device()).eval(), fast=fast, int8=int8)


def _as_text(value: Any, row: int) -> str:
    if isinstance(value, str):
        return value[:LONGEST_TEXT]
    if is_missing(value):
        return ""
    raise CorpusError(f"row {row} of a batch: {type(value).__name__} {str(value)[:40]!r} where a text must be")
