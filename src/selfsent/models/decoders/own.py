"""Decoders for encoders alone: the encoder's own layers read from left to right, or a few new ones."""

from __future__ import annotations

import copy
from importlib import metadata
from typing import Any, cast

import torch
from torch import Tensor, nn

from selfsent.data.packed import Packed
from selfsent.errors import BaseEncoderError
from selfsent.fast.attention import ATTENTION, register
from selfsent.fast.filled_rows import filled
from selfsent.foreign.transformers import attend_then_feed, set_attention
from selfsent.models.decoders.cross_attention import CrossAttention, start_for
from selfsent.models.encoder import Encoder

TIED = ("bert", "roberta", "xlm-roberta", "electra")
"""Architectures that are known to be built like BERT."""


class TiedDecoder(nn.Module):
    """The encoder's own embeddings and layers, read from left to right; each layer also attends to the sentence vector.

    For transformers built like BERT. With `tie` it has no weights but those of the cross-attention; otherwise it
    starts as a copy.
    """

    def __init__(self, model: Encoder, tie: bool, drop_heads: bool) -> None:
        super().__init__()
        config = model.transformer.config
        self.start = _start(model)
        self.copied = None if tie else nn.ModuleList([copy.deepcopy(part) for part in _parts(model.transformer)])
        self.position_offset = model.states.position_offset
        self.cross_attention = nn.ModuleList(
            CrossAttention(
                model.embedding_size,
                config.hidden_size,
                config.layer_norm_eps,
                config.hidden_dropout_prob,
                config.initializer_range,
                config.num_attention_heads,
                config.attention_probs_dropout_prob if drop_heads else 0.0,
            )
            for _ in range(config.num_hidden_layers)
        )

    def forward(self, model: Encoder, vectors: Tensor, packed: Packed) -> Tensor:
        """(tokens, d) states, from which each token of `packed` predicts the next, given the (sentences, e) vectors."""
        embeddings, layers, *projection = self.copied or _parts(model.transformer)
        ids, positions, sentence = map(filled, (packed.ids, packed.positions, packed.sentence))
        states = embeddings(input_ids=ids[None], position_ids=positions[None] + self.position_offset)
        for narrow_to_wide in projection:
            states = narrow_to_wide(states)
        for layer, cross_attention in zip(cast(nn.ModuleList, layers), self.cross_attention, strict=True):
            states, _ = cast(Any, layer).attention(states, None, packed=packed, is_causal=True)
            states = cross_attention(states, vectors, sentence)
            states = cast(Any, layer).feed_forward_chunk(states)
        return cast(Tensor, states[0, : packed.tokens])


def _parts(transformer: Any) -> list[nn.Module]:
    """Embeddings, layers, and what leads from narrow embeddings to the layers, where there is such a thing."""
    projection = getattr(transformer, "embeddings_project", None)
    return [transformer.embeddings, transformer.encoder.layer, *([] if projection is None else [projection])]


def built_like_bert(model: Encoder) -> bool:
    """Whether the layers of a transformer have the parts that `TiedDecoder` calls, and run packed.

    Raises:
        BaseEncoderError: it is known to, and does not with what is installed: a new decoder would have to be learned.
    """
    layers = getattr(getattr(model.transformer, "encoder", None), "layer", None)
    kind = model.transformer.config.model_type
    fits = model.states.runs_packed and layers is not None and all(map(attend_then_feed, layers))
    if kind in TIED and not fits:
        raise BaseEncoderError(
            f"with transformers {metadata.version('transformers')} a {kind} has no tied decoder, as it had: install the"
            " version of constraints.txt, or train a new decoder with --decoder-layers 2"
        )
    return fits


class SmallDecoder(nn.Module):
    """For every other architecture: a few layers of its own, in the manner of BERT, over the encoder's word embeddings.

    They begin with random weights and drop out at the encoder's rate.
    """

    def __init__(self, model: Encoder, layers: int, drop_heads: bool) -> None:
        super().__init__()
        from transformers import BertConfig, BertModel

        register()  # which is not done for every base
        self.start = _start(model)
        size = model.hidden_size
        heads = next(n for n in (max(1, size // 64), 4, 2, 1) if size % n == 0)
        config = BertConfig(
            vocab_size=1,
            hidden_size=size,
            num_hidden_layers=layers,
            num_attention_heads=heads,
            intermediate_size=4 * size,
            max_position_embeddings=1,
            hidden_dropout_prob=model.dropout_rate,
            attention_probs_dropout_prob=model.dropout_rate,
            attn_implementation=ATTENTION,
        )
        set_attention(config, ATTENTION)
        self.layers = BertModel(config, add_pooling_layer=False).encoder.layer
        words = model.transformer.get_input_embeddings().embedding_dim
        self.widen = nn.Linear(words, size) if words != size else nn.Identity()
        self.norm = nn.LayerNorm(size)
        self.frequencies: Tensor
        self.register_buffer("frequencies", 10_000 ** -(torch.arange(0, size, 2) / size), persistent=False)
        rate = model.dropout_rate
        like = model.embedding_size, size, 1e-12, rate, 0.02, heads, rate if drop_heads else 0.0
        self.cross_attention = nn.ModuleList(CrossAttention(*like) for _ in self.layers)

    def forward(self, model: Encoder, vectors: Tensor, packed: Packed) -> Tensor:
        """(tokens, d) states, from which each token of `packed` predicts the next, given the (sentences, e) vectors."""
        ids, positions, sentence = map(filled, (packed.ids, packed.positions, packed.sentence))
        angles = positions[:, None] * self.frequencies
        places = torch.cat([angles.sin(), angles.cos()], dim=-1)[:, : model.hidden_size]
        words = self.widen(model.transformer.get_input_embeddings()(ids))
        states = self.norm(words + places.to(words.dtype))[None]
        for layer, cross_attention in zip(self.layers, self.cross_attention, strict=True):
            states, _ = layer.attention(states, None, packed=packed, is_causal=True)
            states = cross_attention(states, vectors, sentence)
            states = layer.feed_forward_chunk(states)
        return cast(Tensor, states[0, : packed.tokens])


def _start(model: Encoder) -> int | None:
    tokenizer = model.tokenizer
    return start_for(model, (tokenizer.bos_token_id, tokenizer.eos_token_id, tokenizer.pad_token_id))
