"""The decoder that an encoder-decoder was pretrained with, attending to one sentence vector."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from selfsent.data.packed import Packed
from selfsent.errors import BaseEncoderError
from selfsent.foreign.transformers import silent
from selfsent.models.decoders.transformer import OneSlot, start_for
from selfsent.models.dropout import DROPOUTS
from selfsent.models.encoder import Encoder

_ATTENTIONS = {"encoder_attn": ("v_proj", "out_proj", "num_heads", 2), "EncDecAttention": ("v", "o", "n_heads", 3)}
"""Cross-attentions of BART and T5: names of value, output and number of heads, and number of results."""
_OTHERS = re.compile(r"(^|\.)(encoder|shared|embed_tokens)\.")
"""Weights that are the encoder's, which has its own."""


class _CheckpointAttention(OneSlot):
    """Replacement for a cross-attention of transformers."""

    def __init__(self, attention: Any, name: str, drop_heads: bool) -> None:
        value, output, heads, self.results = _ATTENTIONS[name]
        rate = float(attention.dropout) if drop_heads else 0.0
        super().__init__(getattr(attention, value), getattr(attention, output), getattr(attention, heads), rate)

    def forward(self, states: Tensor, key_value_states: Tensor, **_: Any) -> tuple[Tensor | None, ...]:
        """(sentences, length, d) results, and None for weights and position biases."""
        sentence = torch.arange(len(states), device=states.device)[:, None].expand(states.shape[:2])
        return self.read(key_value_states[:, 0], sentence), *[None] * (self.results - 1)


class CheckpointDecoder(nn.Module):
    """The decoder of a checkpoint, with only value and output of its cross-attentions.

    It shares its word embeddings with the encoder, as in the checkpoint, and nothing else. It runs on padded blocks of
    sentences of similar length.

    Args:
        model: the encoder half.
        whole: the directory of the checkpoint.
        drop_heads: whether dropout of attention weights drops whole heads.
        scratch: begin with random weights.

    Raises:
        BaseEncoderError: the checkpoint has no decoder, or one of an unknown architecture.
    """

    def __init__(self, model: Encoder, whole: Path, drop_heads: bool, scratch: bool) -> None:
        super().__init__()
        language_model, missing = _load(model, whole, scratch)
        config, output = language_model.config, language_model.get_output_embeddings()
        if output.weight is language_model.get_input_embeddings().weight:
            output.weight = model.words.weight
        language_model.set_input_embeddings(model.words)
        bias = getattr(language_model, "final_logits_bias", None)
        if bias is not None and bias.any():
            output.bias = nn.Parameter(bias[0].clone())
        self.head = nn.Identity()  # as in `LanguageModelHead`: a transform and the vocabulary projection
        self.head.output = output
        scaled = getattr(config, "scale_decoder_outputs", False)
        self.scale = config.hidden_size**-0.5 if scaled else 1.0
        self.decoder = language_model.get_decoder()
        replaced = 0
        for module in list(self.decoder.modules()):
            for name in _ATTENTIONS.keys() & dict(module.named_children()):
                setattr(module, name, _CheckpointAttention(getattr(module, name), name, drop_heads))
                replaced += 1
                if name == "EncDecAttention":  # T5 has a norm for the query alone
                    module.layer_norm = nn.Identity()
        if missing or not replaced:
            advice = "give the whole checkpoint of a BART or T5"
            raise BaseEncoderError(f"tsdae needs the decoder of this {config.model_type!r}: {advice}")
        size, width = model.embedding_size, int(config.hidden_size)
        self.fit = nn.Identity() if size == width else nn.Linear(size, width)
        self.start = start_for(model, (language_model.generation_config.decoder_start_token_id, config.pad_token_id))

    def forward(self, model: Encoder, vectors: Tensor, packed: Packed) -> Tensor:
        """(tokens, d) states, from which each token of `packed` predicts the next, given the (sentences, e) vectors."""
        slots = self.fit(vectors)[torch.from_numpy(packed.order).to(vectors.device)]
        parts, first = [], 0
        for group in packed.groups:
            ids = packed.ids.narrow(0, group.start, group.tokens)
            ids = ids if group.slots is None else ids[group.slots.pad]
            slot = slots[first : (first := first + group.sentences), None]
            # Padding follows the real tokens, so causality already hides it from them.
            block = ids.view(group.sentences, group.length)
            states = self.decoder(input_ids=block, encoder_hidden_states=slot, use_cache=False)[0].flatten(0, 1)
            parts.append(states if group.slots is None else states[group.slots.unpad])
        return torch.cat(parts) * self.scale


def _load(model: Encoder, whole: Path, scratch: bool) -> tuple[Any, bool]:
    """The language model in a directory, in float32 with the encoder's dropout; whether its decoder lacks weights."""
    from transformers import AutoConfig, AutoModelForSeq2SeqLM

    own = model.transformer.config
    config = AutoConfig.from_pretrained(whole, **{name: getattr(own, name) for name in DROPOUTS if hasattr(own, name)})
    if scratch:
        return AutoModelForSeq2SeqLM.from_config(config), False
    with silent():
        language_model, found = AutoModelForSeq2SeqLM.from_pretrained(
            whole, config=config, dtype=torch.float32, use_safetensors=True, output_loading_info=True
        )
    return language_model, not all(map(_OTHERS.search, found["missing_keys"]))
