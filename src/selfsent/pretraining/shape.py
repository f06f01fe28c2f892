"""The encoder that is pretrained: BERT's architecture, in any size, and the directory it ends up in."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from selfsent.models.encoder import Encoder
from selfsent.pretraining.options import POSITIONS, Shape

_LATER_DROPOUT = 0.1


def new_language_model(shape: Shape, tokenizer: Any) -> Any:
    """A BERT with its masked-language-model head and random weights, without dropout: one pass sees little twice."""
    from transformers import BertConfig, BertForMaskedLM

    config = BertConfig(
        vocab_size=len(tokenizer),
        hidden_size=shape.hidden_size,
        num_hidden_layers=shape.layers,
        num_attention_heads=shape.heads,
        intermediate_size=shape.feed_forward,
        max_position_embeddings=POSITIONS,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
        pad_token_id=tokenizer.pad_token_id,
        tie_word_embeddings=True,
    )
    return BertForMaskedLM(config)


def as_language_model(encoder: Encoder) -> Any:
    """The encoder and its head as the transformers model they came from, with the dropout of later training."""
    from transformers import BertConfig, BertForMaskedLM

    own = encoder.transformer.config.to_dict()
    own.update(hidden_dropout_prob=_LATER_DROPOUT, attention_probs_dropout_prob=_LATER_DROPOUT)
    model = BertForMaskedLM(BertConfig.from_dict(own))
    model.bert.load_state_dict(encoder.transformer.state_dict(), strict=False)  # which has a pooler, too
    head: Any = encoder.require_head("the directory")
    model.cls.predictions.transform.load_state_dict(head.transform.cls.predictions.transform.state_dict())
    model.cls.predictions.bias.data.copy_(head.output.bias.data)
    return model.eval()


def save_model(encoder: Encoder, directory: Path, half: bool) -> None:
    """Write a directory that transformers loads with its language-model head, and sentence-transformers with pooling.

    Args:
        encoder: the pretrained encoder.
        directory: an existing, empty directory.
        half: whether the weights are written in half precision.
    """
    model = as_language_model(encoder)
    encoder.sentence_transformer.save(str(directory), create_model_card=False)
    (model.half() if half else model).save_pretrained(directory)
