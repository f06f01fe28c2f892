"""Transformer decoders that attend to one sentence vector: the encoder's own layers, new ones, or a checkpoint's.

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
from selfsent.data.views.tokens import Template
from selfsent.errors import BaseEncoderError
from selfsent.fast.attention import ATTENTION, register
from selfsent.fast.filled_rows import filled
from selfsent.foreign.transformers import set_attention, silent
from selfsent.models.dropout import DROPOUTS
from selfsent.models.encoder import Encoder

_BERT_LIKE = ("bert", "roberta", "xlm-roberta", "electra")
_CROSS_ATTENTIONS = {
    "encoder_attn": ("v_proj", "out_proj", "num_heads", 2),
    "EncDecAttention": ("v", "o", "n_heads", 3),
}
"""The cross-attention of BART and of T5: names of its value, output and number of heads, and how much it returns."""


def start_for(model: Encoder, candidates: Iterable[int | None]) -> int | None:
    """The token to read in front of every sentence, so that its first word is predicted as well.

    Args:
        model: whose tokenizer may put a special token there itself; then nothing is needed, and this is None.
        candidates: tokens to take instead; the first that exists, or 0.
    """
    if Template.of(model.tokenizer, model.vocabulary_size).prefix:
        return None
    return next((int(token) for token in candidates if token is not None), 0)


class _OneSlot(nn.Module):
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
        """(..., d) what each position reads of the (sentences, e) vector of its sentence, whose number is given."""
        values: Tensor = self.value(vectors)
        if not (self.training and self.head_dropout):
            return cast(Tensor, self.output(values)[sentence])
        kept = F.dropout(values.new_ones(*sentence.shape, self.heads, 1), self.head_dropout)
        return cast(Tensor, self.output((values[sentence].reshape(*sentence.shape, self.heads, -1) * kept).flatten(-2)))


class _CrossAttention(_OneSlot):
    """Dropout on the result, and the residual with its norm, as in the decoder of BERT."""

    def __init__(
        self, memory: int, size: int, epsilon: float, dropout: float, spread: float, heads: int, head_dropout: float
    ) -> None:
        super().__init__(nn.Linear(memory, size), nn.Linear(size, size), heads, head_dropout)
        self.norm, self.dropout = nn.LayerNorm(size, eps=epsilon), nn.Dropout(dropout)
        for layer in (self.value, self.output):
            nn.init.normal_(cast(nn.Linear, layer).weight, std=spread)
            nn.init.zeros_(cast(nn.Linear, layer).bias)

    def forward(self, states: Tensor, vectors: Tensor, sentence: Tensor) -> Tensor:
        """(1, tokens, d) states, plus what they read of their sentences' (sentences, e) vectors, normalised."""
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
        sentence = filled(packed.sentence)
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
        ids, positions = filled(packed.ids), filled(packed.positions)
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
        BaseEncoderError: it is known to, and does not with what is installed: a new decoder would have to be learned.
    """
    layers = list(getattr(getattr(model.transformer, "encoder", None), "layer", ()))
    kind = model.transformer.config.model_type
    halves = ("attention", "feed_forward_chunk")  # cross-attention goes between the two
    fits = (
        model.states.runs_packed and bool(layers) and all(hasattr(layer, half) for layer in layers for half in halves)
    )
    if kind in _BERT_LIKE and not fits:
        raise BaseEncoderError(
            f"with transformers {metadata.version('transformers')} a {kind} has no tied decoder, as it had: install the"
            " version of constraints.txt, or train a new decoder with --decoder-layers 2"
        )
    return fits


class SmallDecoder(_LayerDecoder):
    """For every other architecture: a few new layers built like BERT's, over the encoder's word embeddings.

    They begin with random weights and drop out at the encoder's rate.
    """

    def __init__(self, model: Encoder, layers: int, drop_heads: bool) -> None:
        super().__init__(model)
        from transformers import BertConfig, BertModel

        register()  # which is not done for every base
        size, rate = model.hidden_size, model.dropout_rate
        heads = next(n for n in (max(1, size // 64), 4, 2, 1) if size % n == 0)
        config = BertConfig(
            vocab_size=1,
            hidden_size=size,
            num_hidden_layers=layers,
            num_attention_heads=heads,
            intermediate_size=4 * size,
            max_position_embeddings=1,
            hidden_dropout_prob=rate,
            attention_probs_dropout_prob=rate,
            attn_implementation=ATTENTION,
        )
        set_attention(config, ATTENTION)
        self.layers = BertModel(config, add_pooling_layer=False).encoder.layer
        words = model.transformer.get_input_embeddings().embedding_dim
        self.widen = nn.Linear(words, size) if words != size else nn.Identity()
        self.norm = nn.LayerNorm(size)
        self.frequencies: Tensor
        self.register_buffer("frequencies", 10_000 ** -(torch.arange(0, size, 2) / size), persistent=False)
        like = model.embedding_size, size, 1e-12, rate, 0.02, heads, rate if drop_heads else 0.0
        self.cross_attention = nn.ModuleList(_CrossAttention(*like) for _ in self.layers)

    def forward(self, model: Encoder, vectors: Tensor, packed: Packed) -> Tensor:
        """(tokens, d) states, from which each token of `packed` predicts the next, given the (sentences, e) vectors."""
        angles = filled(packed.positions)[:, None] * self.frequencies
        positions = torch.cat([angles.sin(), angles.cos()], dim=-1)[:, : model.hidden_size]
        words = self.widen(model.word_vectors(filled(packed.ids)))
        states = self.norm(words + positions.to(words.dtype))[None]
        return self.through(self.layers, states, vectors, packed)


class _CheckpointAttention(_OneSlot):
    """Stands in for a cross-attention of transformers."""

    def __init__(self, attention: Any, name: str, drop_heads: bool) -> None:
        value, output, heads, self.results = _CROSS_ATTENTIONS[name]
        rate = float(attention.dropout) if drop_heads else 0.0
        super().__init__(getattr(attention, value), getattr(attention, output), getattr(attention, heads), rate)

    def forward(self, states: Tensor, key_value_states: Tensor, **_: Any) -> tuple[Tensor | None, ...]:
        """What each of the (sentences, length, d) states reads; of weights and position biases there are none."""
        sentence = torch.arange(len(states), device=states.device)[:, None].expand(states.shape[:2])
        return self.read(key_value_states[:, 0], sentence), *[None] * (self.results - 1)


class _Head(nn.Module):
    """From the decoder's states to its scores over the vocabulary, in the form of a language-model head."""

    def __init__(self, output: nn.Linear, scale: float) -> None:
        super().__init__()
        self.output, self.scale = output, scale

    def forward(self, states: Tensor) -> Tensor:
        """(tokens, d) states to the (tokens, d) inputs of the vocabulary projection `output`."""
        return states * self.scale


class CheckpointDecoder(nn.Module):
    """The decoder that an encoder-decoder was pretrained with; of its cross-attentions, value and output are kept.

    It shares its word embeddings with the encoder, as in the checkpoint, and nothing else. It runs on padded blocks of
    sentences of similar length.

    Args:
        model: the encoder half, with the directory of the whole in `model.whole`.
        drop_heads: whether dropout of attention weights drops whole heads.
        scratch: begin with random weights.

    Raises:
        BaseEncoderError: the base has no decoder, or one of an unknown architecture.
    """

    def __init__(self, model: Encoder, drop_heads: bool = False, scratch: bool = False) -> None:
        super().__init__()
        language_model = _load(model, scratch)
        config, words = language_model.config, model.transformer.get_input_embeddings()
        output = language_model.get_output_embeddings()
        if output.weight is language_model.get_input_embeddings().weight:
            output.weight = words.weight
        language_model.set_input_embeddings(words)
        bias = getattr(language_model, "final_logits_bias", None)
        if bias is not None and bias.any():
            output.bias = nn.Parameter(bias[0].clone())
        scaled = getattr(config, "scale_decoder_outputs", False)
        self.head = _Head(output, config.hidden_size**-0.5 if scaled else 1.0)
        self.decoder = language_model.get_decoder()
        replaced = 0
        for module in list(self.decoder.modules()):
            for name in _CROSS_ATTENTIONS.keys() & dict(module.named_children()):
                setattr(module, name, _CheckpointAttention(getattr(module, name), name, drop_heads))
                replaced += 1
                if name == "EncDecAttention":  # T5 has a norm for the query alone
                    module.layer_norm = nn.Identity()
        if not replaced:
            raise BaseEncoderError(
                f"the decoder of a {config.model_type!r} cannot attend to a sentence vector alone: choose BART or T5"
            )
        size, width = model.embedding_size, int(config.hidden_size)
        self.fit = nn.Identity() if size == width else nn.Linear(size, width)
        places = config, getattr(language_model, "generation_config", None)
        starts = [getattr(place, "decoder_start_token_id", None) for place in places]
        self.start = start_for(model, (*starts, config.pad_token_id))

    def forward(self, model: Encoder, vectors: Tensor, packed: Packed) -> Tensor:
        """(tokens, d) states, from which each token of `packed` predicts the next, given the (sentences, e) vectors."""
        slots = self.fit(vectors)[torch.from_numpy(packed.order).to(vectors.device)]
        parts, first = [], 0
        for group in packed.groups:
            ids = packed.ids.narrow(0, group.start, group.tokens)
            ids = ids if group.slots is None else ids[group.slots.pad]
            slot = slots[first : (first := first + group.sentences), None]
            # Padding stands behind the real tokens, so that causality alone hides it from them.
            block = ids.view(group.sentences, group.length)
            states = self.decoder(input_ids=block, encoder_hidden_states=slot, use_cache=False)[0].flatten(0, 1)
            parts.append(states if group.slots is None else states[group.slots.unpad])
        return torch.cat(parts)


def _load(model: Encoder, scratch: bool) -> Any:
    """The language model whose encoder half the base is, in float32, with the encoder's dropout rates."""
    from transformers import AutoConfig, AutoModelForSeq2SeqLM

    own = model.transformer.config
    missing = BaseEncoderError(
        f"this base is the encoder half of a {own.model_type!r} alone, and tsdae needs its decoder: give the whole"
        " checkpoint, or choose another method"
    )
    if model.whole is None:
        raise missing
    rates = {name: getattr(own, name) for name in DROPOUTS if hasattr(own, name)}
    config = AutoConfig.from_pretrained(model.whole, **rates)
    if not config.is_encoder_decoder or getattr(config, "decoder_layers", 1) == 0:
        raise missing
    if scratch:
        return AutoModelForSeq2SeqLM.from_config(config)
    with silent():
        language_model, found = AutoModelForSeq2SeqLM.from_pretrained(
            model.whole, config=config, dtype=torch.float32, use_safetensors=True, output_loading_info=True
        )
    if any("decoder." in name and "embed_tokens" not in name for name in found["missing_keys"]):
        raise missing
    return language_model
