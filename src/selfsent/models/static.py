"""A table of token vectors and their mean: an encoder without a transformer, hundreds of times as fast as one."""

from __future__ import annotations

import json
from functools import cached_property
from pathlib import Path
from typing import Any, cast

import torch
from tokenizers import Tokenizer
from torch import Tensor, nn
from torch.nn import functional as F

from selfsent.data.packed import Packed
from selfsent.data.tokenizing import CachedTokenizer
from selfsent.errors import BaseEncoderError
from selfsent.lexical.weight import SEARCH_WEIGHT
from selfsent.models.encoder import Encoder
from selfsent.models.heads.layers import Layers

LONGEST = 1 << 20
"""Tokens that are read of a text: a table has no positions that could run out, but memory has."""
_SPREAD = 0.1
"""Standard deviation of the numbers in a new table."""


class StaticEncoder(Encoder):
    """The mean of the vectors of a sentence's tokens, and whatever follows: sentence-transformers' `StaticEmbedding`.

    Args:
        sentence_transformer: its first module is a `StaticEmbedding`.
    """

    is_static = True
    has_transformer = False
    lexical_weight = SEARCH_WEIGHT["table"]

    def __init__(self, sentence_transformer: Any) -> None:
        nn.Module.__init__(self)
        self.sentence_transformer, self.whole = sentence_transformer, None
        self.language_model_head = None
        self._tokenizer = as_transformers(sentence_transformer[0].tokenizer)

    @property
    def table(self) -> nn.EmbeddingBag:
        """The token vectors, (vocabulary, d)."""
        return cast(nn.EmbeddingBag, self.sentence_transformer[0].embedding)

    @property
    def transformer(self) -> Any:
        """What stands where others have a transformer: the module with the table."""
        return self.sentence_transformer[0]

    @property
    def tokenizer(self) -> Any:
        """The tokenizer, which puts no special tokens around a sentence."""
        return self._tokenizer

    @cached_property
    def reader(self) -> CachedTokenizer:
        """What tokenises texts, faster than the tokenizer does: nothing else of it takes long."""
        return CachedTokenizer(self.tokenizer.backend_tokenizer)

    @property
    def vocabulary_size(self) -> int:
        """Rows of the table."""
        return self.table.num_embeddings

    @property
    def description(self) -> str:
        """What its weights do not say."""
        return "static"

    @property
    def hidden_size(self) -> int:
        """Width of a token vector."""
        return self.table.embedding_dim

    @property
    def pooling(self) -> str:
        """Token vectors become one vector by their mean."""
        return "mean"

    @property
    def _pooling_place(self) -> int:
        return 0  # the table makes the mean itself

    def word_vectors(self, ids: Tensor) -> Tensor:
        """(..., d) vectors of token ids."""
        return F.embedding(ids, self.table.weight)

    def token_vectors(self, packed: Packed) -> Tensor:
        """(tokens, d) vectors of the tokens, in packed order."""
        return self.word_vectors(packed.ids)

    def forward(self, packed: Packed, leave_out: int = 0) -> Tensor:
        """(sentences, e) vectors of a packed batch, in the order of its sentences.

        Args:
            packed: the batch.
            leave_out: modules at the end that are left out.
        """
        mean = F.embedding_bag(packed.flat_ids, self.table.weight, packed.starts, mode="mean")
        return self.after_pooling(mean, leave_out)

    def put_affine(self, weight: Tensor, bias: Tensor) -> None:
        """As everywhere; put into the table itself where nothing follows it, since a mean of vectors maps as they do.

        So it stays a table alone, and a text without tokens stays at zero.
        """
        if len(self.sentence_transformer) > 1:
            super().put_affine(weight, bias)
            return
        rows = (self.table.weight.detach().to(weight) @ weight.T + bias).float()
        module = self.sentence_transformer[0]
        module.embedding, module.embedding_dim = nn.EmbeddingBag.from_pretrained(rows, freeze=False), rows.shape[1]

    def average_layers(self, layers: Layers) -> None:
        """There is one layer.

        Raises:
            BaseEncoderError: two are wanted.
        """
        if layers != "last":
            raise BaseEncoderError(
                f"this base is a table of token vectors, without layers: leave out --layers {layers}"
            )

    def require_head(self, purpose: str, hidden: bool = True) -> Any:
        """A table predicts no words.

        Raises:
            BaseEncoderError: always.
        """
        raise BaseEncoderError(
            f"{purpose} predicts words, which a table of token vectors cannot: choose a transformer, such as --base"
            " bundled-raw"
        )

    def save(self, directory: Path) -> None:
        """Write an ordinary sentence-transformers directory."""
        self.sentence_transformer.save(str(directory), create_model_card=False)
        self._save_weight(directory)


def as_transformers(tokenizer: Tokenizer) -> Any:
    """A tokenizer as transformers wraps it, without what it puts around sentences, which a table does not read."""
    from transformers import PreTrainedTokenizerFast

    about = json.loads(tokenizer.to_str())
    about["post_processor"], about["padding"], cut, about["truncation"] = None, None, about["truncation"], None
    special = [entry["content"] for entry in about["added_tokens"] if entry["special"]]
    unknown = about["model"].get("unk_token")
    if unknown is None and about["model"].get("unk_id") is not None:
        unknown = about["model"]["vocab"][about["model"]["unk_id"]][0]
    return PreTrainedTokenizerFast(
        tokenizer_object=Tokenizer.from_str(json.dumps(about)),
        unk_token=unknown,
        extra_special_tokens=[token for token in special if token != unknown],
        model_max_length=cut["max_length"] if cut else LONGEST,
    )


def new_table(tokenizer: Tokenizer, size: int, seed: int = 0) -> StaticEncoder:
    """An encoder whose table nobody has trained.

    Args:
        tokenizer: whose tokens get a vector each.
        size: numbers in a vector.
        seed: of the random numbers that they begin as.
    """
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import StaticEmbedding

    plain = Tokenizer.from_str(tokenizer.to_str())
    plain.no_truncation()
    plain.no_padding()
    weights = torch.empty(plain.get_vocab_size(), size)
    weights.normal_(std=_SPREAD, generator=torch.Generator().manual_seed(seed))
    module = StaticEmbedding(plain, embedding_weights=weights)
    return StaticEncoder(SentenceTransformer(modules=[module], device="cpu"))
