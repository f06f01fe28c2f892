"""Many sentences to vectors: sorted by length, packed without padding, in constant memory beside the result."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

import numpy as np
import torch
from numpy.typing import NDArray

from selfsent.encoder import Encoder
from selfsent.packing import Packed

CHUNK = 4096
"""Sentences tokenised and sorted together."""
TOKENS = 4096
"""Tokens in one forward pass."""


def _packs(model: Encoder, texts: Sequence[str]) -> Iterator[tuple[NDArray[np.int64], Packed]]:
    """Packed batches of sentences of similar length, with the places of the sentences in `texts`."""
    limit = model.tokenizer.model_max_length
    encoded = model.tokenizer(list(texts), truncation=True, max_length=limit, padding=False)["input_ids"]
    lengths = np.fromiter(map(len, encoded), np.int64, len(encoded))
    order = np.argsort(-lengths, kind="stable")
    begin = 0
    while begin < len(order):
        size = max(1, TOKENS // max(1, int(lengths[order[begin]])))
        chosen = order[begin : begin + size]
        ids = np.concatenate([np.asarray(encoded[i], dtype=np.int64) for i in chosen])
        yield chosen, Packed(ids, lengths[chosen], device=model.device)
        begin += size


@torch.inference_mode()
def encode(model: Encoder, texts: Sequence[str], fast: bool = False) -> NDArray[np.float32]:
    """The vectors of sentences, as `SentenceTransformer.encode` gives them.

    Args:
        model: the encoder; it is run without dropout.
        texts: (n,) sentences.
        fast: compute in bfloat16.

    Returns:
        (n, d) float32.
    """
    training = model.training
    model.eval()
    vectors = np.empty((len(texts), model.embedding_size), dtype=np.float32)
    for start in range(0, len(texts), CHUNK):
        part = texts[start : start + CHUNK]
        for chosen, packed in _packs(model, part):
            with torch.autocast(model.device.type, torch.bfloat16, enabled=fast):
                vectors[start + chosen] = model(packed).float().cpu().numpy()
    model.train(training)
    return vectors


def encode_stream(model: Encoder, texts: Iterable[str], fast: bool = False) -> Iterator[NDArray[np.float32]]:
    """Vectors of a stream of sentences, (up to CHUNK, d) at a time, in order."""
    iterator = iter(texts)
    while part := list(islice(iterator, CHUNK)):
        yield encode(model, part, fast)
