"""The states of a transformer's tokens, on packed batches."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, cast

import torch
from torch import Tensor, nn

from selfsent.data.packed import Packed
from selfsent.fast import attention
from selfsent.fast.padding import pad_rows
from selfsent.foreign.transformers import attention_of, not_packed
from selfsent.models.dropout import without_dropout

Read = Callable[[Any], Tensor]
"""From a transformer's output to (batch, length, d) states."""


def last_layer(output: Any) -> Tensor:
    """The last layer's states, the default."""
    return cast(Tensor, output.last_hidden_state)


class TokenStates:
    """Runs a transformer on packed batches: concatenated, or where that changes the result, in small padded blocks.

    Args:
        transformer: of transformers, without any head; its attention is replaced where that changes no state.
        tokenizer: its tokenizer.
    """

    def __init__(self, transformer: Any, tokenizer: Any) -> None:
        self.transformer, self.tokenizer = transformer, tokenizer
        self.position_offset = position_offset(transformer)
        """Position id of the first token."""
        self.reads_types = "token_type_ids" in inspect.signature(transformer.forward).parameters
        self.runs_packed = self._try_packed()
        """Whether sentences are concatenated, without padding."""

    def __call__(self, packed: Packed, read: Read = last_layer) -> Tensor:
        """Last-layer states of every token, (tokens, d), in packed order.

        Args:
            packed: the batch.
            read: makes (batch, length, d) states of the transformer's output, where the last layer's are not wanted.
        """
        return self._end_to_end(packed, read) if self.runs_packed else self.by_blocks(packed, read)

    def types(self, packed: Packed) -> Tensor | None:
        """(tokens,) token types in packed order, where the batch has any and the transformer reads them."""
        return packed.types if self.reads_types else None

    def by_blocks(self, packed: Packed, read: Read = last_layer) -> Tensor:
        """The same states from small padded blocks of sentences of similar length, for any architecture."""
        parts, types = [], self.types(packed)
        for group in packed.groups:
            here = slice(group.start, group.start + group.tokens)
            inputs = {"input_ids": packed.ids[here]}
            if types is not None:  # zeros would matter: GPT-2 adds the embedding of whatever type it is given
                inputs["token_type_ids"] = types[here]
            mask = torch.ones(group.sentences, group.length, dtype=torch.long, device=packed.ids.device)
            if group.slots is not None and group.mask is not None:
                mask, real, pad = group.mask[:, 0, 0].long(), group.mask.flatten(), group.slots.pad
                fill = {"input_ids": self.tokenizer.pad_token_id or 0, "token_type_ids": 0}
                inputs = {name: values[pad].where(real, fill[name]) for name, values in inputs.items()}
            blocks = {name: values.view_as(mask) for name, values in inputs.items()}
            states = read(self.transformer(**blocks, attention_mask=mask)).flatten(0, 1)
            parts.append(states if group.slots is None else states[group.slots.unpad])
        return torch.cat(parts)

    def _end_to_end(self, packed: Packed, read: Read = last_layer) -> Tensor:
        ids, positions = pad_rows(packed.ids), pad_rows(packed.positions) + self.position_offset
        typed = {} if (types := self.types(packed)) is None else {"token_type_ids": pad_rows(types)[None]}
        output = self.transformer(input_ids=ids[None], position_ids=positions[None], packed=packed, **typed)
        return read(output)[0, : packed.tokens]

    def _try_packed(self) -> bool:
        """Switch to packed attention if this architecture provably gives the same states with it as without."""
        if not getattr(self.transformer, "is_backend_compatible", lambda: False)():
            return False
        attention.register()
        low = max(self.tokenizer.all_special_ids, default=0) + 1
        ids = (torch.arange(12) * 7 + low).numpy() % int(self.transformer.config.vocab_size)
        probe = Packed(ids, torch.tensor([5, 3, 4]).numpy(), device=next(self.transformer.parameters()).device)
        before = attention_of(self.transformer.config)
        with torch.no_grad(), without_dropout(self.transformer):
            padded = self.by_blocks(probe)
            self.transformer.set_attn_implementation(attention.ATTENTION)
            try:
                fits = torch.allclose(self._end_to_end(probe), padded, atol=1e-3, rtol=1e-3)
                # A window that is only in the mask would be lost, and the probe is too short to show it.
                kinds = getattr(self.transformer.config, "layer_types", None) or ["sliding_attention"]
                windows = getattr(self.transformer.config, "sliding_window", None) and "sliding_attention" in kinds
                fits = fits and (probe.saw_window or not windows)
            except (TypeError, ValueError, RuntimeError, IndexError):
                fits = False
        if not fits:
            self.transformer.set_attn_implementation(before)
            not_packed(self.transformer.config.model_type)
        return fits


def position_offset(transformer: nn.Module) -> int:
    """RoBERTa and its kin count positions from the padding id plus one; everyone else from zero."""
    for module in transformer.modules():
        padding = getattr(module, "padding_idx", None)
        if isinstance(padding, int) and isinstance(getattr(module, "position_embeddings", None), nn.Embedding):
            return padding + 1
    return 0
