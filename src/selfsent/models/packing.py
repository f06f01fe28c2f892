"""Texts as packed batches, and their vectors: without padding, in sentences of similar length."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from selfsent.data.packed import Packed
from selfsent.fast.cpu_threads import share_out
from selfsent.models.dropout import without_dropout
from selfsent.models.encoder import Encoder
from selfsent.models.static import StaticEncoder

TOKENS = {"cpu": 1 << 11, "cuda": 1 << 14}
"""Tokens in one forward pass, by kind of device; on a CPU there are two passes at a time."""

Pack = tuple[NDArray[np.int64], Packed]
"""A packed batch, with the rows of its sentences in their chunk."""


def tokens_at_once(model: Encoder) -> int:
    """Tokens of one forward pass on the device of a model."""
    return TOKENS.get(model.device.type, TOKENS["cpu"])


def packs_of(model: Encoder, texts: Sequence[str], prompt: str) -> list[Pack]:
    """Packed batches of sentences of similar length, without sentences that have no token."""
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
def compute(model: Encoder, packs: Sequence[Pack], count: int) -> NDArray[np.float32]:
    """The vectors of the `count` sentences of one chunk, without dropout; zeros for sentences in no pack."""
    vectors = np.zeros((count, model.embedding_size), dtype=np.float32)

    def fill(pack: Pack) -> None:
        chosen, packed = pack
        vectors[chosen] = model(packed).float().cpu().numpy()

    with without_dropout(model):
        share_out(fill, packs, model.device)
    return vectors


def pack(model: Encoder, texts: Sequence[str], prompt: str = "") -> Packed:
    """Texts as one packed batch, in the order given, each with at least one token and cut to what the model reads.

    Before each stands the prompt.

    Examples:
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
