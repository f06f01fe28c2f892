"""The decoder of an encoder-decoder checkpoint, whose cross-attention is to one sentence vector."""

from __future__ import annotations

from typing import Any, cast

import torch
from torch import Tensor, nn

from selfsent.data.packed import Packed
from selfsent.errors import BaseEncoderError
from selfsent.foreign.transformers import silent
from selfsent.models.decoders.cross_attention import from_one_slot, start_for
from selfsent.models.dropout import DROPOUTS
from selfsent.models.encoder import Encoder

_CROSS_ATTENTIONS = {
    "encoder_attn": ("v_proj", "out_proj", "num_heads", 2),
    "EncDecAttention": ("v", "o", "n_heads", 3),
}
"""What BART and T5 call a layer's cross-attention, in it value, output and number of heads; and how much it returns."""


class _OneSlot(nn.Module):
    """Stands in for a cross-attention of transformers, without its query and key, which have nothing to choose from."""

    def __init__(self, attention: Any, names: tuple[str, str, str, int], drop_heads: bool) -> None:
        super().__init__()
        value, output, heads, self.results = names
        self.value, self.output = getattr(attention, value), getattr(attention, output)
        self.heads, self.head_dropout = getattr(attention, heads), float(attention.dropout) if drop_heads else 0.0

    def forward(self, states: Tensor, key_value_states: Tensor, **_: Any) -> tuple[Tensor | None, ...]:
        """What each of the (sentences, length, d) states is told; of weights and position biases there are none."""
        sentence = torch.arange(len(states), device=states.device)[:, None].expand(states.shape[:2])
        rate = self.head_dropout if self.training else 0.0
        told = from_one_slot(self.value, self.output, key_value_states[:, 0], sentence, self.heads, rate)
        return told, *[None] * (self.results - 1)


class _Words(nn.Module):
    """From the decoder's states to its scores over the vocabulary, in the form of a language-model head."""

    def __init__(self, output: nn.Linear, scale: float) -> None:
        super().__init__()
        self.output, self.scale = output, scale

    def forward(self, states: Tensor) -> Tensor:
        """(tokens, d) states to the (tokens, d) inputs of the vocabulary projection `output`."""
        return states * self.scale


class CheckpointDecoder(nn.Module):
    """The decoder that the base was pretrained with; of its cross-attentions, value and output are what is needed.

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
        self.head = _Words(output, config.hidden_size**-0.5 if scaled else 1.0)
        self.decoder = language_model.get_decoder()
        if not _attend_to_one_slot(self.decoder, drop_heads):
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
        slots = self.fit(vectors)[torch.from_numpy(packed.order).to(vectors.device)].split(
            [group.sentences for group in packed.groups]
        )
        parts = []
        for group, slot in zip(packed.groups, slots, strict=True):
            ids = packed.ids.narrow(0, group.start, group.tokens)
            ids = ids if group.slots is None else ids[group.slots.pad]
            block = ids.view(group.sentences, group.length)
            # Padding stands behind the real tokens, so that causality alone hides it from them.
            states = self.decoder(input_ids=block, encoder_hidden_states=slot[:, None], use_cache=False)[0].flatten(
                0, 1
            )
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


def _attend_to_one_slot(decoder: nn.Module, drop_heads: bool) -> bool:
    """Put cross-attentions to one slot in place of the others; whether there were any."""
    places = [
        (module, name, attention)
        for module in decoder.modules()
        for name, attention in module.named_children()
        if name in _CROSS_ATTENTIONS
    ]
    for module, name, attention in places:
        setattr(module, name, _OneSlot(attention, _CROSS_ATTENTIONS[name], drop_heads))
        if name == "EncDecAttention":  # T5 has a norm for the query alone
            cast(Any, module).layer_norm = nn.Identity()
    return bool(places)
