"""A second look at a sentence: makers (text to text, before training) and noise (ids to ids, in every batch)."""

from selfsent.views.noise import DeleteWords, MaskTokens, Noise, PickWords, RepeatWords
from selfsent.views.partners import Partners
from selfsent.views.tokens import Template, Tokens, View
from selfsent.views.words import AddWords, MaskWords, ReplaceWords, SwapWords

__all__ = [
    "AddWords",
    "DeleteWords",
    "MaskTokens",
    "MaskWords",
    "Noise",
    "Partners",
    "PickWords",
    "RepeatWords",
    "ReplaceWords",
    "SwapWords",
    "Template",
    "Tokens",
    "View",
]
