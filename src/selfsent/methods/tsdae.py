"""TSDAE: rebuild a sentence, word by word, from the one vector of its damaged copy."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, Literal, cast

import torch
from torch import Tensor, nn

from selfsent.attention import ATTENTION
from selfsent.dropout import without_dropout
from selfsent.encoder import Encoder
from selfsent.errors import SettingsError
from selfsent.methods.decoder import OwnDecoder, from_one_slot, start_for
from selfsent.methods.losses import linear_cross_entropy
from selfsent.methods.method import Learner, Loss, Method
from selfsent.packing import Packed
from selfsent.settings import Settings, check_limits, setting
from selfsent.views import AddWords, DeleteWords, MaskWords, Noise, ReplaceWords, SwapWords, View

NOISES: dict[str, Callable[[float], Noise]] = {
    "delete": DeleteWords,
    "swap": SwapWords,
    "mask": MaskWords,
    "replace": ReplaceWords,
    "add": AddWords,
}
"""The paper found deletion best, then swapping, masking, replacing and adding."""


@dataclass(frozen=True)
class Options:
    """Options of TSDAE."""

    ratio: float = setting(0.6, "share of the words damaged before encoding", minimum=0.0, maximum=1.0)
    noise: Literal["delete", "swap", "mask", "replace", "add"] = setting(
        "delete", "what happens to these words", choices=tuple(NOISES)
    )
    tie: bool = setting(True, "encoder and decoder share their weights, where the architecture allows it")
    decoder_layers: int = setting(0, "layers of a small decoder of its own instead of the encoder's layers", minimum=0)
    scratch: bool = setting(False, "begin with random weights instead of the base's")
    drop_heads: bool = setting(False, "drop whole heads of the look at the vector, as the authors' code does")
    decoder_dropout: bool = setting(True, "drop out in the decoder, too, as the encoder does")

    def __post_init__(self) -> None:
        check_limits(self)
        if self.drop_heads and not self.decoder_dropout:
            raise SettingsError("--drop-heads and --no-decoder-dropout contradict each other: give one of them")


class Memory(nn.Module):
    """Cross-attention to a memory of one slot, computed as what it is.

    With a single key the softmax is 1 whatever query and key are, so every position of a sentence gets W_o W_v s:
    computed once per sentence, without query and key. Dropout on the attention weight would drop whole heads of it at
    each position: left out unless `head_dropout` says so. Dropout on the result and the residual with its norm are as
    in the decoder of BERT.
    """

    def __init__(
        self,
        memory_size: int,
        size: int,
        epsilon: float,
        dropout: float,
        spread: float,
        heads: int,
        head_dropout: float,
    ) -> None:
        super().__init__()
        self.heads, self.head_dropout = heads, head_dropout
        self.value = nn.Linear(memory_size, size)
        self.output = nn.Linear(size, size)
        self.norm = nn.LayerNorm(size, eps=epsilon)
        self.dropout = nn.Dropout(dropout)
        for layer in (self.value, self.output):
            nn.init.normal_(layer.weight, std=spread)
            nn.init.zeros_(layer.bias)

    def forward(self, states: Tensor, vectors: Tensor, sentence: Tensor) -> Tensor:
        """(1, tokens, d) states, plus what their sentences' (sentences, e) vectors say, normalised."""
        rate = self.head_dropout if self.training else 0.0
        said = from_one_slot(self.value, self.output, vectors, sentence, self.heads, rate)
        return cast(Tensor, self.norm(self.dropout(said)[None] + states))


class TiedDecoder(nn.Module):
    """The encoder's own embeddings and layers, read from left to right, each layer with a look at the sentence vector.

    For transformers built like BERT. With `tie` it has no weights but those of the looks; otherwise it starts as a
    copy.
    """

    def __init__(self, model: Encoder, options: Options) -> None:
        super().__init__()
        config = model.transformer.config
        self.start = _start(model)
        self.copied = (
            None if options.tie else nn.ModuleList([copy.deepcopy(part) for part in _parts(model.transformer)])
        )
        self.position_offset = model.states.position_offset
        self.memory = nn.ModuleList(
            Memory(
                model.embedding_size,
                config.hidden_size,
                config.layer_norm_eps,
                config.hidden_dropout_prob,
                config.initializer_range,
                config.num_attention_heads,
                config.attention_probs_dropout_prob if options.drop_heads else 0.0,
            )
            for _ in range(config.num_hidden_layers)
        )

    def forward(self, model: Encoder, vectors: Tensor, packed: Packed) -> Tensor:
        """(tokens, d) states, from which each token of `packed` predicts the next, given the (sentences, e) vectors."""
        embeddings, layers, *projection = self.copied or _parts(model.transformer)
        states = embeddings(input_ids=packed.ids[None], position_ids=packed.positions[None] + self.position_offset)
        for narrow_to_wide in projection:
            states = narrow_to_wide(states)
        for layer, memory in zip(cast(nn.ModuleList, layers), self.memory, strict=True):
            states, _ = cast(Any, layer).attention(states, None, packed=packed, is_causal=True)
            states = memory(states, vectors, packed.sentence)
            states = cast(Any, layer).feed_forward_chunk(states)
        return cast(Tensor, states[0])


def _parts(transformer: Any) -> list[nn.Module]:
    """Embeddings, layers, and what leads from narrow embeddings to the layers, where there is such a thing."""
    projection = getattr(transformer, "embeddings_project", None)
    return [transformer.embeddings, transformer.encoder.layer, *([] if projection is None else [projection])]


def _built_like_bert(model: Encoder) -> bool:
    layers = getattr(getattr(model.transformer, "encoder", None), "layer", None)
    return (
        model.states.runs_packed
        and layers is not None
        and all(hasattr(layer, "attention") and hasattr(layer, "feed_forward_chunk") for layer in layers)
    )


class SmallDecoder(nn.Module):
    """For every other architecture: a few layers of its own, in the manner of BERT, over the encoder's word embeddings.

    They begin with random weights and drop out at the encoder's rate.
    """

    def __init__(self, model: Encoder, options: Options) -> None:
        super().__init__()
        from transformers import BertConfig, BertModel

        self.start = _start(model)
        size = model.hidden_size
        heads = next(n for n in (max(1, size // 64), 4, 2, 1) if size % n == 0)
        config = BertConfig(
            vocab_size=1,
            hidden_size=size,
            num_hidden_layers=options.decoder_layers or 2,
            num_attention_heads=heads,
            intermediate_size=4 * size,
            max_position_embeddings=1,
            hidden_dropout_prob=model.dropout_rate,
            attention_probs_dropout_prob=model.dropout_rate,
            attn_implementation=ATTENTION,
        )
        config._attn_implementation = ATTENTION
        self.layers = BertModel(config, add_pooling_layer=False).encoder.layer
        words = model.transformer.get_input_embeddings().embedding_dim
        self.widen = nn.Linear(words, size) if words != size else nn.Identity()
        self.norm = nn.LayerNorm(size)
        self.frequencies: Tensor
        self.register_buffer("frequencies", 10_000 ** -(torch.arange(0, size, 2) / size), persistent=False)
        rate = model.dropout_rate
        look = model.embedding_size, size, 1e-12, rate, 0.02, heads, rate if options.drop_heads else 0.0
        self.memory = nn.ModuleList(Memory(*look) for _ in self.layers)

    def forward(self, model: Encoder, vectors: Tensor, packed: Packed) -> Tensor:
        """(tokens, d) states, from which each token of `packed` predicts the next, given the (sentences, e) vectors."""
        angles = packed.positions[:, None] * self.frequencies
        places = torch.cat([angles.sin(), angles.cos()], dim=-1)[:, : model.hidden_size]
        words = self.widen(model.transformer.get_input_embeddings()(packed.ids))
        states = self.norm(words + places.to(words.dtype))[None]
        for layer, memory in zip(self.layers, self.memory, strict=True):
            states, _ = layer.attention(states, None, packed=packed, is_causal=True)
            states = memory(states, vectors, packed.sentence)
            states = layer.feed_forward_chunk(states)
        return cast(Tensor, states[0])


def _start(model: Encoder) -> int | None:
    tokenizer = model.tokenizer
    return start_for(model, (tokenizer.bos_token_id, tokenizer.eos_token_id, tokenizer.pad_token_id))


def _decoder_for(model: Encoder, options: Options) -> nn.Module:
    """The decoder that goes with an encoder: of an encoder-decoder its own; else like the encoder, or a small one."""
    if model.is_half:
        if options.decoder_layers:
            raise SettingsError("--decoder-layers is for encoders alone, and this base has a decoder: leave it out")
        return OwnDecoder(model, options.drop_heads, options.scratch)
    model.require_head("TSDAE's decoder", hidden=False)
    like_encoder = _built_like_bert(model) and not options.decoder_layers
    return (TiedDecoder if like_encoder else SmallDecoder)(model, options)


class DenoisingLearner(Learner):
    """−Σₜ log p(wₜ | w₁…wₜ₋₁, s): s the vector of the damaged sentence (Wang et al. 2021, equation 1)."""

    options: Options

    def __init__(self, model: Encoder, options: Options) -> None:
        super().__init__(model, options)
        if options.scratch:
            self.model.forget()
        self.decoder = _decoder_for(model, options)

    def forward(self, views: Sequence[Packed], labels: Tensor | None = None) -> Loss:
        """The loss of one batch: the damaged sentences are encoded, the whole ones predicted."""
        damaged, whole = views
        own = self.decoder.head if isinstance(self.decoder, OwnDecoder) else None
        head = own or self.model.require_head("tsdae", hidden=False)
        start = cast(int | None, self.decoder.start)
        read = whole.without_last() if start is None else whole.behind(start)
        vectors = self.model(damaged)
        with ExitStack() as still:
            if not self.options.decoder_dropout:
                for part in (self.model, self.decoder):  # a tied decoder runs the encoder's layers
                    still.enter_context(without_dropout(part))
            states = self.decoder(self.model, vectors, read)
        total = linear_cross_entropy(head(states), head.output.weight, head.output.bias, read.targets)
        return Loss(total, read.tokens)


TSDAE = Method(
    name="tsdae",
    title="Transformer-based sequential denoising auto-encoder",
    citation="Wang, Reimers and Gurevych, 2021. arXiv:2104.06979",
    objective="−Σₜ log p(wₜ | w₁…wₜ₋₁, s), s the vector of the sentence with most of its words deleted",
    learner=DenoisingLearner,
    options=Options,
    views=lambda options: (View(noise=NOISES[options.noise](options.ratio)), View()),
    compares=False,
    pooling="cls",
    published=Settings(batch_size=8, learning_rate=3e-5, steps=100_000, schedule="constant", warmup=0),
    defaults=Settings(batch_size=32, learning_rate=1e-3, epochs=1),
    large_learning_rate=3e-5,
    presets={"faithful": {"drop_heads": True}},
)
