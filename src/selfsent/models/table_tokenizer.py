"""The tokenizer of a table that is trained, without transformers."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
from tokenizers import Encoding, Tokenizer

from selfsent.data.views.tokens import Template
from selfsent.models.table import LONGEST


class Encoded(dict[str, Any]):
    """`input_ids` of a text, or of several, and the words that they are in."""

    def __init__(self, input_ids: list[Any], encodings: list[Encoding]) -> None:
        super().__init__(input_ids=input_ids)
        self._encodings = encodings

    def word_ids(self, number: int = 0) -> list[int | None]:
        """The word of its text that each token is in, for the text of that number."""
        return list(self._encodings[number].word_ids)


class TableTokenizer:
    """The interface of a tokenizer here, under the names of transformers.

    A table reads no special tokens around a text, nor does a text get any from padding. transformers would add the
    special tokens to those that are found in texts; sentence-transformers has the tokenizer as it is, and so has this.

    Args:
        tokenizer: of tokenizers; it is copied.

    Examples:
        >>> from selfsent.models.loading import load_encoder
        >>> load_encoder("bundled").tokenizer("the printer is dead")["input_ids"]
        [70, 13095, 77, 831]
    """

    bos_token_id = eos_token_id = sep_token_id = cls_token_id = pad_token_id = mask_token_id = None
    truncation_side = "right"

    def __init__(self, tokenizer: Tokenizer) -> None:
        about = json.loads(tokenizer.to_str())
        self.model_max_length = int((about["truncation"] or {}).get("max_length", LONGEST))
        """Tokens read of a text."""
        about |= {"post_processor": None, "padding": None, "truncation": None}
        self.backend_tokenizer = Tokenizer.from_str(json.dumps(about))
        unknown, number = about["model"].get("unk_token"), about["model"].get("unk_id")
        if unknown is None and number is not None:
            unknown = about["model"]["vocab"][number][0]
        self.unk_token: str | None = unknown
        """The token that stands for what is not in the vocabulary, if there is one."""
        special = [entry["content"] for entry in about["added_tokens"] if entry["special"]]
        self.all_special_tokens = list(dict.fromkeys([*([] if unknown is None else [unknown]), *special]))

    @property
    def unk_token_id(self) -> int | None:
        """Number of the unknown token."""
        return None if self.unk_token is None else self.convert_tokens_to_ids(self.unk_token)

    @property
    def all_special_ids(self) -> list[int]:
        """Numbers of the special tokens."""
        found = map(self.convert_tokens_to_ids, self.all_special_tokens)
        return [number for number in found if number is not None]

    def __len__(self) -> int:
        return int(self.backend_tokenizer.get_vocab_size(with_added_tokens=True))

    def get_vocab(self) -> dict[str, int]:
        """The number of each token."""
        return dict(self.backend_tokenizer.get_vocab(with_added_tokens=True))

    def convert_tokens_to_ids(self, token: str) -> int | None:
        """Number of a token; that of the unknown one where it is not known."""
        number: int | None = self.backend_tokenizer.token_to_id(token)
        return self.unk_token_id if number is None and token != self.unk_token else number

    def template(self, vocabulary: int) -> Template:
        """Facts for noise and packing: of `vocabulary` tokens all are ordinary but the special ones."""
        ordinary = np.ones(vocabulary, dtype=bool)
        ordinary[[number for number in self.all_special_ids if number < vocabulary]] = False
        return Template((), (), self.mask_token_id, ordinary)

    def decode(self, ids: Sequence[int], skip_special_tokens: bool = False) -> str:
        """The text of tokens."""
        return str(self.backend_tokenizer.decode(list(ids), skip_special_tokens=skip_special_tokens))

    def __call__(
        self,
        texts: str | Sequence[str],
        add_special_tokens: bool = True,
        truncation: bool = False,
        max_length: int | None = None,
    ) -> Encoded:
        """The tokens of a text, or of several, cut to `max_length` with `truncation`.

        Args:
            texts: a text, or several.
            add_special_tokens: has no effect: there are none around a text.
            truncation: whether they are cut.
            max_length: tokens that are kept; by default `model_max_length`.
        """
        alone = isinstance(texts, str)
        encodings = self.backend_tokenizer.encode_batch([texts] if alone else list(texts), add_special_tokens=False)
        if truncation:
            for each in encodings:
                each.truncate(max_length or self.model_max_length)
        ids = [each.ids for each in encodings]
        return Encoded(ids[0] if alone else ids, encodings)
