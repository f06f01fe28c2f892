"""Bulk encoding: sentences sorted by length, packed without padding, the next ones tokenised meanwhile."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from selfsent.display import counted
from selfsent.errors import ONE_STRING, SettingsError
from selfsent.models.prompts import DOCUMENT
from selfsent.models.table import Table

if TYPE_CHECKING:
    from selfsent.models.encoder import Encoder

    Model = Encoder | Table
    """An encoder in torch, or a table without torch."""

logger = logging.getLogger(__name__)

CHUNK = 4096
"""Sentences tokenised and sorted together, at most."""
CHARACTERS = 1 << 22
"""Characters tokenised together, at most; a longer text is tokenised alone."""

Side = Literal["query", "document"]
_PROMPTS: Mapping[str | None, Sequence[str]] = {"query": ["query"], "document": DOCUMENT}
"""Names of prompts that hold for a side, the first that a model has."""


def longest_of(model: Model) -> int:
    """Tokens of a text that a model reads."""
    return model.longest if isinstance(model, Table) else int(model.tokenizer.model_max_length)


def token_ids(model: Model, texts: Sequence[str], special: bool = True) -> list[list[int]]:
    """The tokens that a model reads of texts, with or without the special ones around a text, if it has such."""
    if isinstance(model, Table):
        read = model.tokens(texts)
        return [ids.tolist() for ids in np.split(read.ids, np.cumsum(read.lengths)[:-1])] if texts else []
    options = {"add_special_tokens": special, "truncation": True, "max_length": longest_of(model)}
    found: list[list[int]] = model.tokenizer(list(texts), **options)["input_ids"]
    return found


def _chunked(texts: Iterable[str], size: int, max_characters: int) -> Iterator[list[str]]:
    """Chunks of texts that are tokenised and sorted together; the borders depend on the texts alone."""
    chunk: list[str] = []
    characters = 0
    for text in texts:
        if chunk and (len(chunk) == size or characters + len(text) > max_characters):
            yield chunk
            chunk, characters = [], 0
        chunk.append(text)
        characters += len(text)
    if chunk:
        yield chunk


def prompt_of(model: Any, side: Side | None = None) -> str:
    """The prompt that a model needs before a text, often none, as sentence-transformers chooses it.

    Args:
        model: an encoder, or a model of sentence-transformers.
        side: whether the text is a query, or is searched; None where both are of one kind.
    """
    peer = getattr(model, "sentence_transformer", model)
    name = next((name for name in _PROMPTS.get(side, ()) if name in peer.prompts), peer.default_prompt_name)
    return peer.prompts.get(name) or ""


def encode_stream(
    model: Model,
    texts: Iterable[str],
    side: Side | None = None,
    chunk_size: int = CHUNK,
    max_characters: int = CHARACTERS,
) -> Iterator[NDArray[np.float32]]:
    """Vectors of a stream of sentences, (up to `chunk_size`, d) at a time, in order.

    Args:
        model: the encoder.
        texts: sentences.
        side: as for `encode`.
        chunk_size: maximum number of sentences at a time.
        max_characters: maximum number of characters at a time, unless one sentence has more.
    """
    prepare, compute = _steps(model, prompt_of(model, side))
    waiting: deque[Future[Any]] = deque()
    with ThreadPoolExecutor(1) as thread:
        for chunk in _chunked(texts, chunk_size, max_characters):
            waiting.append(thread.submit(prepare, chunk))
            if len(waiting) > 1:
                yield compute(waiting.popleft().result())
        while waiting:
            yield compute(waiting.popleft().result())


def _steps(model: Model, prompt: str) -> tuple[Callable[[list[str]], Any], Callable[[Any], NDArray[np.float32]]]:
    """The two halves of encoding a chunk: its tokens, which a thread prepares, and the vectors of these."""
    if isinstance(model, Table):
        return lambda texts: model.tokens([prompt + text for text in texts] if prompt else texts), model.vectors_of
    from selfsent.models import packing

    encoder = model
    return (
        lambda texts: (packing.packs_of(encoder, texts, prompt), len(texts)),
        lambda prepared: packing.compute(encoder, *prepared),
    )


@contextmanager
def warn_on_truncation(model: Model) -> Iterator[None]:
    """Context that logs a warning at its end if texts encoded in it were truncated."""
    before = model.texts_cut
    yield
    if cut := model.texts_cut - before:
        read = f"{longest_of(model):,} tokens, which is all that this encoder reads"
        logger.warning("%s cut after %s", counted(cut, "text is", "texts are"), read)


def encode(model: Model, texts: Sequence[str], side: Side | None = None) -> NDArray[np.float32]:
    """The vectors of sentences, as `encode` of SentenceTransformer gives them, `encode_query` or `encode_document`.

    Args:
        model: the encoder; it is run without dropout.
        texts: (n,) sentences.
        side: role of the texts in a search, if any: some models need a prompt before queries or documents.

    Returns:
        (n, d) float32; zeros for a sentence without tokens.

    Raises:
        SettingsError: one string instead of a list.
    """
    if isinstance(texts, str):
        raise SettingsError(ONE_STRING)
    vectors = np.empty((len(texts), model.embedding_size), dtype=np.float32)
    done = 0
    for part in encode_stream(model, texts, side):
        vectors[done : done + len(part)] = part
        done += len(part)
    return vectors
