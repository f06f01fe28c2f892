"""Tokens masked, and refilled by a masked language model (the MLM views of BSL, Zhang et al. 2021, section 5.3)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from selfsent.augment.augmenter import Augmenter, Change, state_of
from selfsent.settings import setting


@dataclass(frozen=True)
class MaskAndRefill(Augmenter):
    """Mask a share of the tokens, and replace them by a masked language model's guesses, never by the same token."""

    name = "mlm"
    about = "tokens masked, and refilled by a masked language model"
    unchanged = "the model's tokenizer does not know these characters: give `model` one that knows the language"

    ratio: float = setting(0.2, "share of the tokens to mask", above=0.0, maximum=1.0)
    pick: Literal["sample", "best"] = setting("sample", "tokens drawn by their probability, or the most probable")
    model: str = setting("bundled-raw", "masked language model: bundled-raw, a directory or a hub id")

    def identity(self) -> Any:
        """Options, and the state of the model's files."""
        from selfsent.models.bases import resolve

        return [*super().identity(), state_of(resolve(self.model))]

    def start(self) -> Change:
        """Load the model."""
        from selfsent.augment.refill import Refiller

        return Refiller(self.model, self.ratio, self.pick == "best").change
