"""What goes wrong in silence, looked for before the first step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch.nn import functional as F

from selfsent.data.batches import Batches
from selfsent.data.views.noise import MaskTokens, Noise
from selfsent.data.views.tokens import Template, Tokens
from selfsent.errors import SettingsError
from selfsent.models.dropout import without_dropout
from selfsent.models.encoder import Encoder

_SENTENCES, _WORDS = 8, 6


@torch.no_grad()
def refuse_constant(model: Encoder, template: Template) -> None:
    """Refuse an encoder that gives one vector to sentences which begin with the same word, whatever follows.

    Raises:
        SettingsError: it does, as a causal model with `cls` pooling must: its first token sees no other.
    """
    ordinary = np.flatnonzero(template.ordinary)
    ids = ordinary[np.random.default_rng(0).integers(len(ordinary), size=(_SENTENCES, _WORDS))]
    ids[:, 0] = ids[0, 0]
    lengths, rows = np.full(_SENTENCES, _WORDS), np.arange(_SENTENCES)
    packed = template.pack(Tokens(ids.ravel(), lengths, np.ones(ids.size, dtype=bool), rows), ids.size)
    with without_dropout(model):
        unit = F.normalize(model(packed.to(model.device)).float(), dim=-1)
    if float((unit - unit[:1]).norm(dim=-1).max()) < 1e-5:
        raise SettingsError(
            f"sentences that begin alike all have the same vector with --pooling {model.pooling}:"
            " the first token of a causal model sees no other; give --pooling mean or lasttoken"
        )


def refuse_wordless(tokenizer: Any, noise: Noise, texts: Sequence[str]) -> None:
    """Refuse noise on words where most sentences are a single word, so that it could change none of them.

    Raises:
        SettingsError: it is so, as in scripts that put no spaces between words and tokenizers that do not divide them.
    """
    if isinstance(noise, MaskTokens) and not noise.whole_words:
        return
    encoded = tokenizer(list(texts), add_special_tokens=False)
    single = sum(len(set(encoded.word_ids(number))) < 2 for number in range(len(texts)))
    if single > len(texts) / 2:
        raise SettingsError(
            f"noise on words can do nothing: {single} of {len(texts)} texts are one word to this base's tokenizer;"
            " put spaces between the words first, or do without noise, such as with --crop-words 0"
        )


def refuse_alike(batches: Batches) -> None:
    """Refuse a corpus whose first batch holds one text only, once cut and damaged: there is nothing to tell apart.

    Raises:
        SettingsError: it does, such as where the tokenizer knows none of the words.
    """
    rows = batches.rows_at(0)
    views = [view for view in batches.views_of(rows, 0) if view.given_targets is None]
    if len(rows) > 1 and views and all(bool((view.texts == view.texts[0]).all()) for view in views):
        raise SettingsError(
            "all sentences of a batch are the same to this base once cut and damaged, so that there is nothing to tell"
            " apart: raise --max-length, weaken the noise, or take a base that knows the language"
        )
