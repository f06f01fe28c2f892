"""LoRA: the transformer stays as it is, and a small product beside each of its matrices is trained.

W becomes W + (α / r) B A, with A of shape (r, in) and B of shape (out, r), zero at first (Hu et al., 2021,
arXiv:2106.09685).
"""

from __future__ import annotations

import warnings
from importlib.metadata import version
from importlib.util import find_spec
from typing import Any

import torch
from torch import Tensor, nn

from selfsent.errors import SettingsError, install
from selfsent.foreign.transformers import forget_adapter
from selfsent.models.bfloat16 import in_bfloat16
from selfsent.models.encoder import Encoder

ALPHA = 32
"""α, the same for every rank: so the best learning rate hardly depends on the rank."""
_NAME = "default"
"""Name of the adapter in a model, which transformers loads it by."""


def require_peft() -> None:
    """Check that the library is there, and new enough for this transformers.

    Raises:
        SettingsError: it is not.
    """
    if find_spec("peft") is None:
        raise SettingsError(f"LoRA needs peft: {install('lora')}")
    from transformers.integrations.peft import MIN_PEFT_VERSION
    from transformers.utils import check_peft_version

    try:
        check_peft_version(MIN_PEFT_VERSION)
    except ValueError:
        wants = f"this transformers wants peft {MIN_PEFT_VERSION} or newer, here is {version('peft')}"
        raise SettingsError(f"LoRA needs another peft: {wants}") from None


def put_lora(model: Encoder, rank: int, base: str) -> None:
    """Freeze a transformer, and give each of its linear layers an adapter, which changes nothing at first.

    An adapter that came with the base and was kept is trained on instead.

    Args:
        model: the encoder. Modules after the transformer are trained as ever.
        rank: r.
        base: name of the transformer for plain sentence-transformers, for an adapter that is saved.

    Raises:
        SettingsError: the adapter of the base has another rank.
    """
    from peft import LoraConfig

    whole = model.sentence_transformer[0].model
    if model.adapted:
        if (own := whole.peft_config[_NAME].r) != rank:
            raise SettingsError(f"the adapter of this base has rank {own}: give lora={own}, or leave out keep_adapter")
        for name, weight in whole.named_parameters():
            weight.requires_grad_("lora_" in name)
        return
    # A pooler on the first token gets no gradient, and two processes would wait for it.
    unread = r".*\bpooler\b.*" if hasattr(whole, "pooler") else None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # GPT-2's layers have transposed weights, as peft finds by itself
        whole.add_adapter(LoraConfig(r=rank, lora_alpha=ALPHA, target_modules="all-linear", exclude_modules=unread))
    whole.peft_config[_NAME].base_model_name_or_path = base


def halve(model: Encoder) -> None:
    """Keep the frozen matrices in bfloat16, in which they are multiplied anyway, and the word embeddings.

    The transformer computes in bfloat16 from here on, for any caller. Biases and norms outside of linear layers, and
    the adapter, stay in float32.
    """
    for part in _adapted(model).values():
        part.get_base_layer().to(torch.bfloat16)
    model.words.to(torch.bfloat16).register_forward_hook(_in_float32)
    in_bfloat16(model.transformer)


def _in_float32(words: nn.Module, inputs: Any, output: Tensor) -> Tensor:
    return output.float()


@torch.no_grad()
def restore_frozen(model: Encoder, fresh: Encoder) -> None:
    """Undo `halve`: take the frozen weights, in float32, from the same encoder as it was before."""
    del model.transformer.forward
    model.words._forward_hooks.clear()
    mine, theirs = (encoder.sentence_transformer[0].model.named_parameters() for encoder in (model, fresh))
    for (_, weight), (_, exact) in zip(mine, theirs, strict=True):
        if not weight.requires_grad:
            weight.data = exact.data.to(weight.device)


@torch.no_grad()
def merge(model: Encoder) -> None:
    """Add the adapter to the weights, and take it away: the encoder is an ordinary one again, frozen as it was."""
    whole = model.sentence_transformer[0].model
    for name, part in _adapted(model).items():
        part.merge()
        above, _, last = name.rpartition(".")
        setattr(whole.get_submodule(above), last, part.get_base_layer())
    forget_adapter(whole)


def _adapted(model: Encoder) -> dict[str, Any]:
    """The layers with an adapter, by name."""
    from peft.tuners.tuners_utils import BaseTunerLayer

    named = model.sentence_transformer[0].model.named_modules()
    return {name: part for name, part in named if isinstance(part, BaseTunerLayer)}
