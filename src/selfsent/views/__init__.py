"""A second look at a sentence: makers (text to text, before training) and noise (ids to ids, in every batch)."""

from selfsent.views.noise import DeleteWords, MaskTokens, Noise, PickWords, RepeatWords
from selfsent.views.partners import Partners
from selfsent.views.positives import Documents, Passage, Span, Surroundings
from selfsent.views.tokens import Template, Tokens, View
from selfsent.views.words import AddWords, CropWords, MaskWords, ReplaceWords, SwapWords

__all__ = [
    "AddWords",
    "CropWords",
    "DeleteWords",
    "Documents",
    "MaskTokens",
    "MaskWords",
    "Noise",
    "Partners",
    "Passage",
    "PickWords",
    "RepeatWords",
    "ReplaceWords",
    "Span",
    "Surroundings",
    "SwapWords",
    "Template",
    "Tokens",
    "View",
]
