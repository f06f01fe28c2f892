"""A second look at a sentence: makers (text to text, before training) and noise (ids to ids, in every batch)."""

from selfsent.views.noise import DeleteWords, MaskTokens, Noise, PickWords, RepeatWords
from selfsent.views.partners import Partners
from selfsent.views.tokens import Template, Tokens, View

__all__ = ["DeleteWords", "MaskTokens", "Noise", "Partners", "PickWords", "RepeatWords", "Template", "Tokens", "View"]
