"""Transformer decoders that attend to one sentence vector: the encoder's own layers, or new ones.

Where the memory is a single slot s, the softmax over it is 1 whatever query and key are: every position of a sentence
gets W_o W_v s, computed once per sentence, without query and key.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable
from importlib import metadata
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from selfsent.data.packed import Packed
from selfsent.errors import BaseEncoderError
from selfsent.fast.attention import ATTENTION, register
from selfsent.fast.padding import pad_rows
from selfsent.foreign.transformers import set_attention
from selfsent.models.encoder import Encoder

_BERT_LIKE = ("bert", "roberta", "xlm-roberta", "electra")


def start_for(model: Encoder, candidates: Iterable[int | None]) -> int | None:
    """The token to read in front of every sentence, so that its first word is predicted as well.

    Args:
        model: the encoder; None is returned where its tokenizer adds a special token itself.
        candidates: token ids; the first that exists is taken, or 0.
    """
    if model.template.prefix:
        return None
    return next((int(token) for token in candidates if token is not None), 0)


class OneSlot(nn.Module):
    """Attention to a memory of one slot.

    Args:
        value: W_v.
        output: W_o.
        heads: of the attention.
        head_dropout: rate at which whole heads are dropped at a position, which is what dropout of an attention weight
            does where there is only one.
    """

    def __init__(self, value: nn.Module, output: nn.Module, heads: int, head_dropout: float) -> None:
        super().__init__()
        self.value, self.output, self.heads, self.head_dropout = value, output, heads, head_dropout

    def read(self, vectors: Tensor, sentence: Tensor) -> Tensor:
        """(..., d) W_o W_v s, for positions whose (...) sentence numbers are given, of (sentences, e) vectors s."""
        values: Tensor = self.value(vectors)
        if not (self.training and self.head_dropout):
            return cast(Tensor, self.output(values)[sentence])
        kept = F.dropout(values.new_ones(*sentence.shape, self.heads, 1), self.head_dropout)
        return cast(Tensor, self.output((values[sentence].reshape(*sentence.shape, self.heads, -1) * kept).flatten(-2)))


class _CrossAttention(OneSlot):
    """With dropout on its result, and the residual with its norm, as in BERT's decoder.

    Args:
        memory: width e of s.
        size: width d of a state.
        epsilon: of the norm.
        dropout: on the result.
        spread: standard deviation of the initial weights.
        heads: of the attention.
        head_dropout: as above.
    """

    def __init__(
        self, memory: int, size: int, epsilon: float, dropout: float, spread: float, heads: int, head_dropout: float
    ) -> None:
        value, output = nn.Linear(memory, size), nn.Linear(size, size)
        super().__init__(value, output, heads, head_dropout)
        self.norm, self.dropout = nn.LayerNorm(size, eps=epsilon), nn.Dropout(dropout)
        for layer in (value, output):
            nn.init.normal_(layer.weight, std=spread)
            nn.init.zeros_(layer.bias)

    def forward(self, states: Tensor, vectors: Tensor, sentence: Tensor) -> Tensor:
        """(1, tokens, d) states, plus W_o W_v s of their sentences' (sentences, e) vectors s, normalised."""
        return cast(Tensor, self.norm(self.dropout(self.read(vectors, sentence))[None] + states))


class _LayerDecoder(nn.Module):
    """Layers built like BERT's, read from left to right, with a cross-attention in each."""

    cross_attention: nn.ModuleList

    def __init__(self, model: Encoder) -> None:
        super().__init__()
        tokenizer = model.tokenizer
        self.start = start_for(model, (tokenizer.bos_token_id, tokenizer.eos_token_id, tokenizer.pad_token_id))

    def through(self, layers: Iterable[Any], states: Tensor, vectors: Tensor, packed: Packed) -> Tensor:
        """(tokens, d) states of (1, tokens, d) embeddings, from which each token of `packed` predicts the next."""
        sentence = pad_rows(packed.sentence)
        for layer, cross_attention in zip(layers, self.cross_attention, strict=True):
            states, _ = layer.attention(states, None, packed=packed, is_causal=True)
            states = layer.feed_forward_chunk(cross_attention(states, vectors, sentence))
        return states[0, : packed.tokens]


class TiedDecoder(_LayerDecoder):
    """The encoder's own embeddings and layers; each layer also attends to the sentence vector.

    For transformers built like BERT. With `tie` it has no weights but those of the cross-attention; otherwise it
    starts as a copy.
    """

    def __init__(self, model: Encoder, tie: bool, drop_heads: bool) -> None:
        super().__init__(model)
        config = model.transformer.config
        self.copied = None if tie else nn.ModuleList([copy.deepcopy(part) for part in _parts(model.transformer)])
        self.position_offset = model.states.position_offset
        shape = model.embedding_size, config.hidden_size, config.layer_norm_eps, config.hidden_dropout_prob
        head_dropout = config.attention_probs_dropout_prob if drop_heads else 0.0
        self.cross_attention = nn.ModuleList(
            _CrossAttention(*shape, config.initializer_range, config.num_attention_heads, head_dropout)
            for _ in range(config.num_hidden_layers)
        )

    def forward(self, model: Encoder, vectors: Tensor, packed: Packed) -> Tensor:
        """(tokens, d) states, from which each token of `packed` predicts the next, given the (sentences, e) vectors."""
        embeddings, layers, *projection = self.copied or _parts(model.transformer)
        ids, positions = pad_rows(packed.ids), pad_rows(packed.positions)
        states = embeddings(input_ids=ids[None], position_ids=positions[None] + self.position_offset)
        for narrow_to_wide in projection:
            states = narrow_to_wide(states)
        return self.through(cast(nn.ModuleList, layers), states, vectors, packed)


def _parts(transformer: Any) -> list[nn.Module]:
    """Embeddings, layers, and where embeddings are narrower than the layers, the projection in between."""
    projection = getattr(transformer, "embeddings_project", None)
    return [transformer.embeddings, transformer.encoder.layer, *([] if projection is None else [projection])]


def built_like_bert(model: Encoder) -> bool:
    """Whether the layers of a transformer have the parts that `TiedDecoder` calls, and run packed.

    Raises:
        BaseEncoderError: it should have them, and lacks them with the installed version of transformers.
    """
    layers = list(getattr(getattr(model.transformer, "encoder", None), "layer", ()))
    kind = model.transformer.config.model_type
    parts = ("attention", "feed_forward_chunk")  # cross-attention goes between the two
    fits = model.states.runs_packed and bool(layers) and all(hasattr(each, part) for each in layers for part in parts)
    if kind in _BERT_LIKE and not fits:
        problem = f"with transformers {metadata.version('transformers')} a {kind} has no tied decoder, as it had"
        advice = "install the version of constraints.txt, or train a new decoder with decoder_layers=2"
        raise BaseEncoderError(f"{problem}: {advice}")
    return fits


class SmallDecoder(_LayerDecoder):
    """For every other architecture: a few new layers built like BERT's, over the encoder's word embeddings.

    They begin with random weights and drop out at the encoder's rate.
    """

    def __init__(self, model: Encoder, layers: int, drop_heads: bool) -> None:
        super().__init__(model)
        from transformers import BertConfig, BertModel

        register()  # not every base has done so
        size, rate = model.hidden_size, model.dropout_rate
        heads = next(n for n in (max(1, size // 64), 4, 2, 1) if size % n == 0)
        shape = {"num_hidden_layers": layers, "num_attention_heads": heads, "vocab_size": 1}
        rates = {"hidden_dropout_prob": rate, "attention_probs_dropout_prob": rate, "attn_implementation": ATTENTION}
        config = BertConfig(hidden_size=size, intermediate_size=4 * size, max_position_embeddings=1, **shape, **rates)
        set_attention(config, ATTENTION)
        self.layers = BertModel(config, add_pooling_layer=False).encoder.layer
        words = model.words.embedding_dim
        self.widen = nn.Linear(words, size) if words != size else nn.Identity()
        self.norm = nn.LayerNorm(size)
        self.frequencies: Tensor
        self.register_buffer("frequencies", 10_000 ** -(torch.arange(0, size, 2) / size), persistent=False)
        like = model.embedding_size, size, 1e-12, rate, 0.02, heads, rate if drop_heads else 0.0
        self.cross_attention = nn.ModuleList(_CrossAttention(*like) for _ in self.layers)

    def forward(self, model: Encoder, vectors: Tensor, packed: Packed) -> Tensor:
        """(tokens, d) states, from which each token of `packed` predicts the next, given the (sentences, e) vectors."""
        angles = pad_rows(packed.positions)[:, None] * self.frequencies
        positions = torch.cat([angles.sin(), angles.cos()], dim=-1)[:, : model.hidden_size]
        words = self.widen(model.words(pad_rows(packed.ids)))
        states = self.norm(words + positions.to(words.dtype))[None]
        return self.through(self.layers, states, vectors, packed)
