"""A second look at a sentence: makers (text to text, before training) and noise (ids to ids, in every batch)."""

from selfsent.data.views.noise import DeleteWords, MaskTokens, Noise, PickWords, RepeatWords
from selfsent.data.views.partners import Partners
from selfsent.data.views.positives import Beside, Documents, Passage, Span, Surroundings
from selfsent.data.views.tokens import Template, Tokens
from selfsent.data.views.view import View
from selfsent.data.views.words import AddWords, CropWords, InTurn, MaskWords, ReplaceWords, SwapPairs, SwapWords

__all__ = [
    "AddWords",
    "Beside",
    "CropWords",
    "DeleteWords",
    "Documents",
    "InTurn",
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
    "SwapPairs",
    "SwapWords",
    "Template",
    "Tokens",
    "View",
]
