"""From a base to an encoder."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from selfsent.errors import BaseEncoderError, SelfsentError
from selfsent.files import read_json
from selfsent.foreign.transformers import silent
from selfsent.lexical.weight import LARGEST, SEARCH_FILE
from selfsent.models.bases import resolve
from selfsent.models.dropout import DROPOUTS, without_dropout
from selfsent.models.encoder import Encoder, Pooling
from selfsent.models.encoder_decoder import keep_encoder
from selfsent.models.encoding import pack, prompt_of
from selfsent.models.heads.affine import affine
from selfsent.models.heads.language_model import load_head, predicts_by_decoder
from selfsent.models.heads.layers import is_layer_mean
from selfsent.models.heads.loading import (
    is_recurrent,
    is_static,
    load_sentence_transformer,
    modules_of,
    pooling_place,
    transformer_place,
)
from selfsent.models.heads.options import CNN_POOL, POOLINGS
from selfsent.models.plain_table import read_plain_table
from selfsent.models.recurrent import RecurrentEncoder
from selfsent.models.static import LONGEST, StaticEncoder
from selfsent.models.token_states import position_offset

_PROBE = "The printer on the second floor does not answer. "
_LONG = 2048
"""Tokens of a text that is read on both sides, at most about so many."""


def load_encoder(base: str | Path, pooling: Pooling | None = None, dropout: float | None = None) -> Encoder:
    """Assemble an encoder in float32 from a base: transformer, pooling, and the language-model head when it has one.

    Args:
        base: `bundled`, a directory or a hub id; see `selfsent.models.bases.resolve`.
        pooling: how token states become a vector; by default what the base was saved with, else mean.
        dropout: dropout rate everywhere in the transformer; by default what the base's configuration says.

    Raises:
        BaseEncoderError: the base cannot be found or loaded, or has no text transformer with a single pooling.
    """
    directory = resolve(base)
    load = _load_static if is_static(directory) else _load_recurrent if is_recurrent(directory) else _load_transformer
    try:
        encoder = load(base, directory, pooling, dropout)
    except SelfsentError:
        raise
    except Exception as error:  # a damaged file makes what reads it raise whatever it likes
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise BaseEncoderError(f"{base} cannot be loaded as an encoder: {reason}") from error
    if (directory / SEARCH_FILE).is_file():
        weight = read_json(directory / SEARCH_FILE).get("lexical_weight")
        if not isinstance(weight, int | float) or not 0 <= weight <= LARGEST:
            raise BaseEncoderError(f"{base}: {SEARCH_FILE} must say lexical_weight, a number of 0 to {LARGEST:,}")
        encoder.lexical_weight = float(weight)
    return encoder


def _load_transformer(base: str | Path, directory: Path, pooling: Pooling | None, dropout: float | None) -> Encoder:
    from sentence_transformers.sentence_transformer.modules import Pooling as PoolingModule
    from transformers import AutoConfig

    transformer_directory = transformer_place(directory)
    kind = next(iter(modules_of(directory)), "Transformer").rpartition(".")[2]
    if kind != "Transformer":
        raise BaseEncoderError(f"the first module of {base} is a {kind}; selfsent needs a transformer there")
    held = [name for name in ("config.json", "adapter_config.json") if (transformer_directory / name).is_file()]
    if held == ["adapter_config.json"]:
        raise BaseEncoderError(f"{base} is a PEFT adapter without its base: merge the two, and save the whole model")
    config = AutoConfig.from_pretrained(transformer_directory, trust_remote_code=False)
    rates = {name: dropout for name in DROPOUTS if dropout is not None and hasattr(config, name)}
    with torch.random.fork_rng([]):
        torch.manual_seed(0)  # what the files lack, such as a pooler, is the same in every process
        model = _truncated(
            load_sentence_transformer(
                directory,
                device="cpu",
                config_kwargs=rates,
                model_kwargs={"dtype": torch.float32, "use_safetensors": True},
            )
        )
    saved = bool(modules_of(directory))
    keep_encoder(model[0], saved)
    _complete(model, saved)
    with silent():
        head = load_head(transformer_directory, model[0].model)
    place = pooling_place(model)
    if place is None or not _known(list(model)[1:place]):
        raise BaseEncoderError(f"{base} is not a transformer followed by a pooling, which is what selfsent can train")
    if pooling is not None:
        model[place] = PoolingModule(model[place].embedding_dimension, pooling)
    if model[place].pooling_mode not in (*POOLINGS, CNN_POOL):
        raise BaseEncoderError(
            f"{base} pools by {model[place].pooling_mode}, selfsent by {', '.join(POOLINGS)}: choose one with --pooling"
        )
    encoder = Encoder(model, head, transformer_directory if predicts_by_decoder(config) else None)
    if odd := _other_than_peer(encoder):
        raise BaseEncoderError(
            f"selfsent cannot use {base}: for the same text it gets other {odd} than sentence-transformers does,"
            " which may use a chat template, or leave a prompt out of the mean"
        )
    return encoder


def _other_than_peer(encoder: Encoder) -> str | None:
    """What of texts is not the same as sentence-transformers makes it: `tokens`, `vectors`, or nothing.

    What is trained here would not be what is used there: a model may have settings that are not read here.
    """
    prompts = dict.fromkeys((prompt_of(encoder), prompt_of(encoder, "query"), prompt_of(encoder, "document")))
    return next(filter(None, (_other_with(encoder, prompt) for prompt in prompts)), None)


def _other_with(encoder: Encoder, prompt: str) -> str | None:
    """The same behind one prompt."""
    peer = encoder.sentence_transformer
    for text in (_PROBE, _PROBE * (min(int(encoder.tokenizer.model_max_length), _LONG) // 8 + 1)):
        features = peer.preprocess([text], prompt=prompt or None)
        theirs = features["input_ids"][features["attention_mask"].bool()].tolist()
        if not theirs:
            return None
        if theirs != pack(encoder, [prompt + text]).ids.tolist():
            return "tokens"
    expected = peer.encode([_PROBE], prompt=prompt, show_progress_bar=False)[0]
    with torch.inference_mode(), without_dropout(encoder):
        found = encoder(pack(encoder, [prompt + _PROBE]))[0].numpy()
    if len(found) != (told := encoder.embedding_size):
        raise ValueError(f"its vectors have {len(found)} numbers, but its pooling says {told}")
    near = np.allclose(found, expected, rtol=1e-3, atol=1e-3 * max(1.0, float(np.abs(expected).max())))
    return None if near else "vectors"


def _load_static(base: str | Path, directory: Path, pooling: Pooling | None, dropout: float | None) -> StaticEncoder:
    """Assemble a table of token vectors, in float32.

    Raises:
        BaseEncoderError: it cannot be loaded, or has not what is asked for.
    """
    if pooling not in (None, "mean"):
        raise BaseEncoderError(
            f"{base} is a table of token vectors, and takes their mean: leave out --pooling {pooling}"
        )
    if dropout:
        raise BaseEncoderError(f"{base} is a table of token vectors, without dropout: leave out --dropout")
    if not (directory / "modules.json").is_file():
        return StaticEncoder(_load_model2vec(directory).float())
    if (table := read_plain_table(directory)) is not None:
        return StaticEncoder(table)
    return StaticEncoder(_truncated(load_sentence_transformer(directory, device="cpu").float()))


def _complete(model: Any, saved: bool) -> None:
    """Give a tokenizer what its files do not say, and what the trained model needs: a token to pad with, a limit.

    A language model that is to become an encoder reads texts as they are, and not as messages of a chat.
    """
    tokenizer, transformer = model[0].tokenizer, model[0].model
    if tokenizer.pad_token is None:
        tokenizer.pad_token = tokenizer.eos_token or tokenizer.unk_token
    if not saved and model[0].modality_config.pop("message", None):
        model[0].input_formatter.supported_modalities = list(model[0].modality_config)
    positions = getattr(transformer.config, "max_position_embeddings", None) or 0
    if positions > 0 and not getattr(transformer.config, "rope_parameters", None):
        limit = positions - position_offset(transformer)
    else:
        limit = LONGEST
    if limit < tokenizer.model_max_length:
        tokenizer.model_max_length = limit


def _truncated(model: Any) -> Any:
    """A SentenceTransformer that was saved with `truncate_dim`, with a layer that cuts its vectors instead.

    It would cut them in its own `encode` alone; training and packed batches would see them whole.
    """
    width, model.truncate_dim = model.truncate_dim, None
    if width is not None and width < (whole := model.get_embedding_dimension()):
        model.append(affine(torch.eye(whole)[:width], torch.zeros(width)))
    return model


def _load_model2vec(directory: Path) -> Any:
    """A table in model2vec's own layout, whose configuration says whether vectors get length 1."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Normalize, StaticEmbedding

    ends = [Normalize()] if read_json(directory / "config.json").get("normalize") else []
    return SentenceTransformer(modules=[StaticEmbedding.load(str(directory)), *ends], device="cpu")


def _load_recurrent(
    base: str | Path, directory: Path, pooling: Pooling | None, dropout: float | None
) -> RecurrentEncoder:
    """Assemble a recurrent network over word vectors, in float32.

    Raises:
        BaseEncoderError: it cannot be loaded, or has not what is asked for.
    """
    from sentence_transformers.sentence_transformer.modules import Pooling as PoolingModule

    if dropout:
        raise BaseEncoderError(f"{base} is a recurrent network of one layer, without dropout: leave out --dropout")
    model = _truncated(load_sentence_transformer(directory, device="cpu").float())
    place = pooling_place(model)
    fits = place is not None and place > 1 and hasattr(model[0].tokenizer, "tokenizer")
    fits = fits and model[1].encoder.num_layers == 1 and _known(list(model)[2:place])
    if fits and (model[0].max_seq_length or LONGEST) < model[0].tokenizer.tokenizer.model_max_length:
        raise ValueError(f"it cuts sentences after {model[0].max_seq_length} words, which its tokenizer does not say")
    if not fits or place is None:
        raise BaseEncoderError(
            f"{base} is not word vectors by a tokenizer of transformers, a recurrent network of one layer and a"
            " pooling, which is what selfsent can train"
        )
    if pooling is not None:
        model[place] = PoolingModule(model[place].embedding_dimension, pooling)
    return RecurrentEncoder(model)


def transformer_alone(encoder: Encoder, pooling: Pooling) -> Encoder:
    """The transformer of an encoder with a pooling right behind it, and nothing else.

    Raises:
        BaseEncoderError: it has no transformer.
    """
    if not encoder.has_transformer:
        kind = "table of token vectors" if encoder.is_static else "recurrent network"
        raise BaseEncoderError(
            f"this base is a {kind}, which reads no pairs: choose a transformer, such as --base bundled-raw"
        )
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Pooling as PoolingModule

    modules = [encoder.sentence_transformer[0], PoolingModule(encoder.hidden_size, pooling)]
    alone = SentenceTransformer(modules=modules, device=str(encoder.device))
    return Encoder(alone, encoder.language_model_head, encoder.whole)


def _known(token_modules: Sequence[nn.Module]) -> bool:
    """Whether these modules between transformer and pooling can be run on packed batches."""
    if not token_modules or (len(token_modules) == 1 and is_layer_mean(token_modules[0])):
        return True
    from selfsent.models.heads.ngram_cnn import is_known

    return all(map(is_known, token_modules))
