"""The language-model head of a base encoder, which methods that predict words start from."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any, cast

from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from selfsent.errors import BaseEncoderError
from selfsent.foreign.transformers import has_masked_language_model

HEAD_FILE = "language_model_head.safetensors"
"""The head's file in a saved model, which sentence-transformers ignores."""


class LanguageModelHead(nn.Module):
    """The part of a language model above its encoder: from token states to scores over the vocabulary.

    `transform` is everything up to the vocabulary projection, whatever the architecture calls it: the language model
    itself, with its encoder replaced by a stub that hands the given states on, and its projection by the identity.

    Args:
        language_model: a transformers model for masked or causal language modelling.
        transformer: the encoder below it, which replaces the model's own; tied weights stay tied.
    """

    def __init__(self, language_model: Any, transformer: nn.Module) -> None:
        super().__init__()
        prefix = str(language_model.base_model_prefix)
        setattr(language_model, prefix, transformer)
        language_model.tie_weights()
        output: nn.Linear = language_model.get_output_embeddings()
        name = next(name for name, module in language_model.named_modules() if module is output)
        self.transform = _replaced(_replaced(language_model, prefix, _HandOn()), name, nn.Identity())
        self.output = output

    def forward(self, states: Tensor) -> Tensor:
        """(tokens, d) states to the (tokens, e) inputs of the vocabulary projection `output`."""
        return cast(Tensor, self.transform(inputs_embeds=states[None]).logits[0])

    def own_tensors(self, transformer: nn.Module) -> dict[str, Tensor]:
        """The tensors that are not also the transformer's, each once, by name."""
        shared = {tensor.data_ptr() for tensor in transformer.state_dict().values()}
        own = {tensor.data_ptr(): (name, tensor) for name, tensor in reversed(self.state_dict().items())}
        return {name: tensor.detach().contiguous() for pointer, (name, tensor) in own.items() if pointer not in shared}


class _HandOn(nn.Module):
    """Stands in for an encoder: its output is its input."""

    def forward(self, *_: Any, inputs_embeds: Tensor, **__: Any) -> Any:
        from transformers.modeling_outputs import BaseModelOutputWithPastAndCrossAttentions

        return BaseModelOutputWithPastAndCrossAttentions(last_hidden_state=inputs_embeds)


def _replaced(module: nn.Module, path: str, new: nn.Module) -> nn.Module:
    """A copy of `module` that shares every parameter with it and has another submodule at `path`."""
    twin = copy.copy(module)
    twin._modules = dict(module._modules)
    name, _, rest = path.partition(".")
    child = twin._modules[name]
    twin._modules[name] = _replaced(child, rest, new) if rest and child is not None else new
    return twin


def predicts_by_decoder(config: Any) -> bool:
    """Whether a transformers configuration is of an encoder-decoder, or of the encoder half of one."""
    return bool(getattr(type(config), "is_encoder_decoder", False))


def new_head(transformer: Any) -> LanguageModelHead:
    """A head with fresh weights for a transformer that came without one.

    The head of a causal model is tied to the word embeddings, so that it needs no training of its own; a separate
    output matrix in the checkpoint is ignored.

    Raises:
        BaseEncoderError: transformers has no language model of this architecture.
    """
    from transformers import AutoModelForCausalLM, AutoModelForMaskedLM

    kind, config = transformer.config.model_type, transformer.config
    if predicts_by_decoder(config):
        raise BaseEncoderError(f"a {kind!r} predicts words by its decoder: choose another base or method")
    try:
        if has_masked_language_model(config):
            language_model = AutoModelForMaskedLM.from_config(config)
        else:
            tied = copy.deepcopy(config)
            tied.tie_word_embeddings = True
            language_model = AutoModelForCausalLM.from_config(tied)
    except ValueError:
        raise BaseEncoderError(f"there is no language model for {kind!r}: choose another base or method") from None
    return LanguageModelHead(language_model, transformer)


def load_head(directory: Path, transformer: Any) -> LanguageModelHead | None:
    """The language-model head in a directory: one that selfsent saved, or a transformers checkpoint's.

    Args:
        directory: where the transformer was loaded from.
        transformer: the transformer; the head shares its tied weights.

    Raises:
        BaseEncoderError: the head in the directory does not fit the transformer.
    """
    from transformers import AutoModelForMaskedLM

    path = directory / HEAD_FILE
    if path.is_file():
        head, tensors = new_head(transformer), load_file(str(path))
        if set(head.own_tensors(transformer)) != set(tensors):
            raise BaseEncoderError(f"{path} does not fit the model next to it: delete it, or save the model again")
        head.load_state_dict(tensors, strict=False)
        return head
    if not any("MaskedLM" in name or "PreTraining" in name for name in transformer.config.architectures or []):
        return None
    language_model, found = AutoModelForMaskedLM.from_pretrained(
        directory, dtype=transformer.dtype, use_safetensors=True, output_loading_info=True
    )
    own = f"{language_model.base_model_prefix}."
    if any(not name.startswith(own) for name in found["missing_keys"]):  # such as of ELECTRA's discriminator
        return None
    return LanguageModelHead(language_model, transformer)


def save_head(head: LanguageModelHead, directory: Path, transformer: nn.Module) -> None:
    """Write the head into the directory of a saved model, unless the transformer has all of its weights."""
    if own := head.own_tensors(transformer):
        save_file(own, str(directory / HEAD_FILE), metadata={"format": "pt"})
