"""The loss on held-out sentences of what either party trained, from the same damage and the same batches."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from harness import DEVICE

from selfsent.data.packed import Packed
from selfsent.data.targets import IGNORED
from selfsent.methods import Learner

LENGTH, NEGATIVES = 128, 7
"""Tokens of a sentence at most, and pairs of different sentences to each of equal ones in `ct`."""


def damaged(text: str, draw: random.Random, ratio: float = 0.6) -> str:
    """A sentence less 60 % of its words; one stays."""
    words = text.split()
    kept = [word for word in words if draw.random() >= ratio]
    return " ".join(kept or [draw.choice(words)])


def masked(ids: list[int], tokenizer: Any, draw: random.Random) -> tuple[list[int], list[int]]:
    """Token ids with 15 % of the words' hidden, at least one, and what is to be predicted at each position."""
    words = [place for place, token in enumerate(ids) if token not in tokenizer.all_special_ids]
    hidden = set(draw.sample(words, max(1, round(0.15 * len(words)))))
    targets = [token if place in hidden else IGNORED for place, token in enumerate(ids)]
    return [tokenizer.mask_token_id if place in hidden else token for place, token in enumerate(ids)], targets


def padded(tokenizer: Any, texts: Sequence[str]) -> dict[str, Any]:
    """A padded block, as the peer reads it."""
    return dict(
        tokenizer(list(texts), padding=True, truncation=True, max_length=LENGTH, return_tensors="pt").to(DEVICE)
    )


def packed(tokenizer: Any, texts: Sequence[str]) -> Packed:
    """A packed batch, as we read it."""
    ids = tokenizer(list(texts), truncation=True, max_length=LENGTH)["input_ids"]
    return Packed(np.concatenate([np.asarray(i) for i in ids]), np.array([len(i) for i in ids]), device=DEVICE)


def held_views(method: str, texts: list[str], draw: random.Random) -> list[list[str]]:
    """What a method's encoders read of held-out sentences: the same for both sides."""
    if method == "tsdae":
        return [[damaged(text, draw) for text in texts], texts]
    if method == "simcse":
        return [texts, [damaged(text, draw, 0.2) for text in texts]]
    if method == "ct":
        last = len(texts) - 1
        # Never the sentence itself: the peer goes by what the texts say, ours by the place in the group.
        steps = [draw.randint(1, last) if row % (NEGATIVES + 1) else 0 for row in range(len(texts))]
        return [texts, [texts[(row + step) % len(texts)] for row, step in enumerate(steps)]]
    return [texts] if method == "ct-inbatch" else [texts, texts]


@torch.no_grad()
def held_out_loss(side: str, method: str, trained: Any, tokenizer: Any, held: list[str]) -> float:
    """Mean loss on held-out sentences: the same damage, batches and dropout-free networks for both sides.

    The views of SimCSE, in training two looks through dropout, differ by a fifth of the words instead: masks drawn once
    moved its loss by a tenth.
    """
    draw = random.Random(1)
    trained.eval()
    total = count = 0.0
    for start in range(0, len(held), 32):
        part = held[start : start + 32]
        if method == "mlm":
            ids = tokenizer(part, truncation=True, max_length=LENGTH)["input_ids"]
            pairs = [masked(one, tokenizer, draw) for one in ids]
            loss, size = (our_masked if side == "ours" else their_masked)(trained, tokenizer, pairs)
        else:
            views = held_views(method, part, draw)
            if side == "ours":
                result = trained([packed(tokenizer, texts) for texts in views])
                loss, size = float(result.total), result.count if method == "tsdae" else len(part)
            else:
                features = [padded(tokenizer, texts) for texts in views]
                loss = float(trained(features, None))
                size = int(features[1]["attention_mask"][:, 1:].sum()) if method == "tsdae" else len(part)
                loss *= 1 if method == "ct" else size  # a sum already
        total, count = total + loss, count + size
    return total / count


def our_masked(learner: Learner, _: Any, pairs: list[tuple[list[int], list[int]]]) -> tuple[float, float]:
    """Sum and number of our losses at hidden words."""
    ids, targets = (np.concatenate([np.asarray(pair[column]) for pair in pairs]) for column in (0, 1))
    loss = learner([Packed(ids, np.array([len(pair[0]) for pair in pairs]), targets, DEVICE)])
    return float(loss.total), loss.count


def their_masked(model: Any, tokenizer: Any, pairs: list[tuple[list[int], list[int]]]) -> tuple[float, float]:
    """Sum and number of their losses at hidden words."""
    block = tokenizer.pad({"input_ids": [pair[0] for pair in pairs]}, return_tensors="pt")
    labels = torch.full_like(block["input_ids"], -100)
    for row, (_, targets) in enumerate(pairs):
        wanted = torch.tensor(targets)
        labels[row, : len(wanted)] = wanted.masked_fill(wanted == IGNORED, -100)
    size = int((labels != -100).sum())
    return float(model(**block.to(DEVICE), labels=labels.to(DEVICE)).loss) * size, size
