"""Bulk encoding: sentences sorted by length, packed without padding, the next ones tokenised meanwhile."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray

from selfsent.data.packed import Packed
from selfsent.display import counted
from selfsent.errors import ONE_STRING, SettingsError
from selfsent.fast.two_threads import share_out
from selfsent.models.dropout import without_dropout
from selfsent.models.encoder import Encoder
from selfsent.models.prompts import DOCUMENT
from selfsent.models.static import StaticEncoder

logger = logging.getLogger(__name__)

CHUNK = 4096
"""Sentences tokenised and sorted together, at most."""
CHARACTERS = 1 << 22
"""Characters tokenised together, at most; a longer text is tokenised alone."""
TOKENS = {"cpu": 1 << 11, "cuda": 1 << 14}
"""Tokens in one forward pass, by kind of device; on a CPU there are two passes at a time."""

Side = Literal["query", "document"]
_PROMPTS: Mapping[str | None, Sequence[str]] = {"query": ["query"], "document": DOCUMENT}
"""Names of prompts that hold for a side, the first that a model has."""

Pack = tuple[NDArray[np.int64], Packed]
"""A packed batch, with the rows of its sentences in their chunk."""


def tokens_at_once(model: Encoder) -> int:
    """Tokens of one forward pass on the device of a model."""
    return TOKENS.get(model.device.type, TOKENS["cpu"])


def _chunked(texts: Iterable[str]) -> Iterator[list[str]]:
    """Chunks of texts that are tokenised and sorted together; the borders depend on the texts alone."""
    chunk: list[str] = []
    characters = 0
    for text in texts:
        if chunk and (len(chunk) == CHUNK or characters + len(text) > CHARACTERS):
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


def _packs(model: Encoder, texts: Sequence[str], prompt: str) -> list[Pack]:
    """Packed batches of sentences of similar length, without those that have no token."""
    texts, limit = [prompt + text for text in texts] if prompt else texts, model.tokenizer.model_max_length
    if isinstance(model, StaticEncoder):
        rows = np.arange(len(texts))  # empty texts too: modules after the table may map zeros elsewhere
        whole = model.reader(texts)
        model.texts_cut += int(np.count_nonzero(whole.lengths > limit))
        read = whole.select(rows, limit)
        return [(rows, Packed(read.ids, read.lengths, device=model.device))]
    options = {"truncation": True, "max_length": limit, "return_attention_mask": False, "return_token_type_ids": False}
    encoded, left_out = model.tokenizer(list(texts), padding=False, **options), model.left_out(prompt)
    model.texts_cut += sum(bool(each.overflowing) for each in encoded.encodings or ())
    lengths, room = np.fromiter(map(len, encoded["input_ids"]), np.int64, len(texts)), tokens_at_once(model)
    left = np.argsort(-lengths, kind="stable")[: np.count_nonzero(lengths)]
    packs = []
    while len(left):
        chosen, left = np.split(left, [max(1, room // int(lengths[left[0]]))])
        given = np.full(len(chosen), left_out) if left_out else None
        ids = _joined([encoded["input_ids"][i] for i in chosen])
        packs.append((chosen, Packed(ids, lengths[chosen], device=model.device, given_left_out=given)))
    return packs


def _joined(lists: Sequence[Sequence[int]]) -> NDArray[np.int64]:
    return np.concatenate([np.asarray(each, np.int64) for each in lists])


@torch.inference_mode()
def _compute(model: Encoder, packs: Sequence[Pack], count: int) -> NDArray[np.float32]:
    """The vectors of the `count` sentences of one chunk, without dropout; zeros for those that are in no pack."""
    vectors = np.zeros((count, model.embedding_size), dtype=np.float32)

    def fill(pack: Pack) -> None:
        chosen, packed = pack
        vectors[chosen] = model(packed).float().cpu().numpy()

    with without_dropout(model):
        share_out(fill, packs, model.device)
    return vectors


def encode_stream(model: Encoder, texts: Iterable[str], side: Side | None = None) -> Iterator[NDArray[np.float32]]:
    """Vectors of a stream of sentences, (up to CHUNK, d) at a time, in order; `side` as for `encode`."""
    prompt = prompt_of(model, side)
    waiting: deque[tuple[Future[list[Pack]], int]] = deque()

    def compute() -> NDArray[np.float32]:
        packs, count = waiting.popleft()
        return _compute(model, packs.result(), count)

    with ThreadPoolExecutor(1) as thread:
        for chunk in _chunked(texts):
            waiting.append((thread.submit(_packs, model, chunk, prompt), len(chunk)))
            if len(waiting) > 1:
                yield compute()
        while waiting:
            yield compute()


@contextmanager
def telling_cuts(model: Encoder) -> Iterator[None]:
    """Context in which texts are encoded; at its end the user is told how many were cut, if any."""
    before = model.texts_cut
    yield
    if cut := model.texts_cut - before:
        read = f"{model.tokenizer.model_max_length:,} tokens, which is all that this encoder reads"
        logger.warning("%s cut after %s", counted(cut, "text is", "texts are"), read)


def encode(
    model: Encoder, texts: Sequence[str], advance: Callable[[int], None] = lambda count: None, side: Side | None = None
) -> NDArray[np.float32]:
    """The vectors of sentences, as `encode` of SentenceTransformer gives them, `encode_query` or `encode_document`.

    Args:
        model: the encoder; it is run without dropout.
        texts: (n,) sentences.
        advance: called with the number of sentences done since the last call.
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
        advance(len(part))
    return vectors


def pack(model: Encoder, texts: Sequence[str], prompt: str = "") -> Packed:
    """Texts as one packed batch, in the order given, each with at least one token and cut to what the model reads.

    Before each stands the prompt.

    Example:
        >>> from selfsent.models.loading import load_encoder
        >>> model = load_encoder("bundled")
        >>> model(pack(model, ["the printer is dead", "it rains"])).shape
        torch.Size([2, 256])
    """
    limit, left_out = model.tokenizer.model_max_length, model.left_out(prompt)
    encoded = model.tokenizer([prompt + text for text in texts], truncation=True, max_length=limit)["input_ids"]
    lengths = np.fromiter(map(len, encoded), np.int64, len(encoded))
    given = np.full(len(lengths), left_out) if left_out else None
    return Packed(_joined(encoded), lengths, device=model.device, given_left_out=given)
