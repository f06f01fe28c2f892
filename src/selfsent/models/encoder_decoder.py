"""The encoder half of an encoder-decoder such as BART or T5: all of it that makes sentence vectors."""

from __future__ import annotations

from typing import Any

from torch import nn

from selfsent.errors import BaseEncoderError


def keep_encoder(module: Any, saved: bool) -> None:
    """Leave only the encoder half of an encoder-decoder in a `Transformer` of sentence-transformers.

    Of T5 it loads that half alone. Of BART it loads both, and would read the decoder's states: here the decoder loses
    its layers, and the encoder's states are read. Saved so, plain sentence-transformers reads the same states.

    Args:
        module: the transformer.
        saved: whether it was saved as part of a sentence encoder, which then reads what it was trained to read.

    Raises:
        BaseEncoderError: the model is not built like BART, or its sentence vectors are those of its decoder.
    """
    model = module.model
    if not getattr(model.config, "is_encoder_decoder", False):
        return
    if not hasattr(model, "encoder") or not hasattr(getattr(model, "decoder", None), "layers"):
        raise BaseEncoderError(
            f"{model.config.model_type!r} is an encoder-decoder of which selfsent cannot take the encoder:"
            " choose BART or T5"
        )
    states = {"method": "forward", "method_output_name": "encoder_last_hidden_state"}
    if saved and module.modality_config.get("text") != states:
        raise BaseEncoderError(
            "this model was trained to make vectors of its decoder's states, which selfsent does not read"
        )
    model.decoder.layers = nn.ModuleList()
    model.config.decoder_layers = 0
    for parameter in set(model.decoder.parameters()) - set(model.encoder.parameters()):
        parameter.requires_grad_(False)
    module.modality_config = {"text": states}
