"""Masking and refilling by a masked language model, for `mlm`; imports torch."""

from __future__ import annotations

import re
import unicodedata
from typing import Any

import numpy as np
import torch
from torch import Tensor

from selfsent.augment.augmenter import Sentences, with_capitals_of
from selfsent.augment.translate import batches
from selfsent.data.random import uniforms
from selfsent.data.targets import IGNORED
from selfsent.data.views.tokens import Template, Tokens
from selfsent.errors import BaseEncoderError
from selfsent.models.loading import load_encoder

_TOKENS = 4096
"""Tokens in one forward pass."""


class Refiller:
    """A masked language model and its vocabulary.

    Args:
        name: of the model.
        ratio: share of the tokens to hide.
        best: take the most probable tokens instead of sampling.

    Raises:
        BaseEncoderError: the model has no language-model head.
    """

    def __init__(self, name: str, ratio: float, best: bool) -> None:
        self.ratio, self.best = ratio, best
        self.model = load_encoder(name, dropout=0.0).eval()
        if self.model.language_model_head is None:
            raise BaseEncoderError(f"{name} has no language-model head to guess tokens with: choose another")
        self.head = self.model.language_model_head
        size = int(self.head.output.weight.shape[0])
        self.template = Template.of(self.model.tokenizer, size)
        if self.template.mask is None:
            raise BaseEncoderError(f"the tokenizer of {name} has no mask token: choose another")
        self.mask = self.template.mask
        self.vocabulary = Vocabulary(self.model.tokenizer, size)
        self.longest = min(int(self.model.tokenizer.model_max_length), 512)

    def change(self, sentences: Sentences, key: int) -> list[str]:
        """Views of sentences; masks and samples depend on key, row and position alone, not on batches."""
        room = self.longest - len(self.template.prefix) - len(self.template.suffix)
        how = {"add_special_tokens": False, "return_offsets_mapping": True, "truncation": True, "max_length": room}
        encoded = self.model.tokenizer(sentences.texts, **how)
        ids = [np.array(one, dtype=np.int64) for one in encoded["input_ids"]]
        hidden = [self._hidden(one, int(row), key) for one, row in zip(ids, sentences.rows, strict=True)]
        views = list(sentences.texts)
        changing = np.array([n for n, one in enumerate(hidden) if one.any()], dtype=np.int64)
        for batch in batches([len(ids[n]) for n in changing], _TOKENS):
            chosen = changing[batch]
            guesses = self._guesses([ids[n] for n in chosen], [hidden[n] for n in chosen], sentences.rows[chosen], key)
            for n, guess in zip(chosen.tolist(), guesses, strict=True):
                spans = np.array(encoded["offset_mapping"][n])[hidden[n]].tolist()
                views[n] = self._spliced(views[n], spans, guess)
        return views

    def _hidden(self, ids: np.ndarray, row: int, key: int) -> np.ndarray:
        """(tokens,) mask: equal probabilities, at least one token, never punctuation or special tokens."""
        chance = uniforms(key, np.full(len(ids), row), np.arange(len(ids)))
        chance[self.vocabulary.kinds[ids] < 0] = 2.0
        hidden: np.ndarray = (chance < self.ratio) | (chance == chance.min(initial=2.0))
        return hidden & (chance < 2.0)

    def _guesses(self, ids: list[np.ndarray], hidden: list[np.ndarray], rows: np.ndarray, key: int) -> list[list[int]]:
        """For each sentence, the new ids of its hidden tokens, in order."""
        flat, where = np.concatenate(ids), np.concatenate(hidden)
        lengths = np.array([len(one) for one in ids])
        masked, targets = np.where(where, self.mask, flat), np.where(where, flat, IGNORED)
        tokens = Tokens(masked, lengths, np.ones(len(flat), dtype=bool), rows, targets)
        packed = self.template.pack(tokens, self.longest)
        with torch.inference_mode():
            at = (packed.targets != IGNORED).nonzero()[:, 0]
            output = self.head.output
            states = self.head(self.model.states(packed)[at])
            logits = torch.nn.functional.linear(states, output.weight, output.bias).float()
            prefix = len(self.template.prefix)
            sentence, position = (x[at].numpy() for x in (packed.sentence, packed.positions - prefix))
            chance = torch.from_numpy(uniforms(key, rows[sentence], position, draw=1))
            drawn = self._drawn(logits, packed.targets[at], chance).numpy()
        order = np.lexsort((position, sentence))
        counts = np.cumsum([one.sum() for one in hidden])[:-1]
        return [part.tolist() for part in np.split(drawn[order], counts)]

    def _drawn(self, logits: Tensor, before: Tensor, chance: Tensor) -> Tensor:
        """(hidden,) new ids, of the same kind as the (hidden,) old ids but different."""
        kinds = torch.from_numpy(self.vocabulary.kinds)
        logits = logits.masked_fill(kinds != kinds[before][:, None], -torch.inf)
        logits.scatter_(1, before[:, None], -torch.inf)
        if self.best:
            return logits.argmax(1)
        # Inverse transform sampling: one random number per token, independent of batching.
        total = logits.double().softmax(1).cumsum(1)
        drawn = torch.searchsorted(total, (chance * total[:, -1]).unsqueeze(1), right=True)[:, 0]
        return drawn.clamp(max=len(total[0]) - 1)

    def _spliced(self, text: str, spans: list[list[int]], guesses: list[int]) -> str:
        """The text with new tokens at (start, end) characters; the rest is unchanged."""
        parts, end = [], 0
        for (start, stop), guess in zip(spans, guesses, strict=True):
            while start < stop and text[start].isspace():  # byte-level tokens include the preceding space
                start += 1
            new = self.vocabulary.texts[guess]
            parts += [text[end:start], with_capitals_of(new, text[start:stop]) if new.islower() else new]
            end = stop
        return "".join([*parts, text[end:]])


class Vocabulary:
    """The text of each token of a tokenizer, and whether it begins a word.

    Args:
        tokenizer: a transformers tokenizer.
        size: number of ids that the model scores.
    """

    def __init__(self, tokenizer: Any, size: int) -> None:
        known = tokenizer.convert_ids_to_tokens(list(range(min(size, len(tokenizer)))))
        special = set(tokenizer.all_special_tokens)
        pieces = any(token and token.startswith("##") for token in known)
        self.texts = [""] * size
        """(size,) the text of each token."""
        self.kinds = np.full(size, -1, dtype=np.int64)
        """(size,) 0: begins a word; 1: continues one; 2: a word by itself (a Chinese character); -1: never drawn."""
        for position, token in enumerate(known):
            if not token or token in special or re.fullmatch(r"[\[<].*[\]>]", token):
                continue
            text = token.removeprefix("##") if pieces else tokenizer.convert_tokens_to_string([token]).strip()
            if not _is_word(text):
                continue
            begins = not token.startswith("##") if pieces else token[0] in "Ġ▁"
            self.texts[position] = text
            self.kinds[position] = 2 if _ideograph(text) else 0 if begins else 1


def _is_word(text: str) -> bool:
    """Whether this is letters and combining marks only: no digits, punctuation or partial bytes."""
    return text[:1].isalpha() and all(unicodedata.category(character)[0] in "LM" for character in text)


def _ideograph(text: str) -> bool:
    """Whether this is written without spaces, so that it neither begins nor continues a word."""
    return all("\u3040" <= character <= "\u9fff" or "\uac00" <= character <= "\ud7a3" for character in text)
