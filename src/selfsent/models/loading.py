"""From a base to an encoder: resolve its name, load its SentenceTransformer, check it, wrap it for packed batches."""

from __future__ import annotations

from functools import reduce
from operator import or_
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from tokenizers import Tokenizer
from torch import nn

from selfsent.errors import BaseEncoderError, SelfsentError, first_line
from selfsent.files import read_json
from selfsent.foreign.transformers import silent
from selfsent.models.bases import below_adapter, resolve
from selfsent.models.dropout import DROPOUTS, without_dropout
from selfsent.models.encoder import Encoder, pooling_index
from selfsent.models.encoding import prompt_of
from selfsent.models.heads.language_model import HEAD_FILE, load_head, predicts_by_decoder
from selfsent.models.heads.layers import is_layer_mean
from selfsent.models.heads.options import CNN_POOL, POOLINGS, Pooling
from selfsent.models.lora import merge, require_peft
from selfsent.models.packing import pack
from selfsent.models.prompts import Prompts
from selfsent.models.saved import (
    is_static,
    load_sentence_transformer,
    modules_of,
    register_architecture,
    transformer_folder,
)
from selfsent.models.search_file import tell_search
from selfsent.models.static import PlainTable, StaticEncoder, rows_of_model2vec
from selfsent.models.table import LONGEST, check_tokenizer
from selfsent.models.texts_read import TextsRead
from selfsent.models.token_states import position_offset

_PROBE = "The printer on the second floor does not answer. "
_ENCODER_STATES = {"method": "forward", "method_output_name": "encoder_last_hidden_state"}
"""Configuration for the encoder of BART; for T5, sentence-transformers loads only the encoder."""
_LONG = 2048
"""Rough limit, in tokens, of the long probe."""


def load_encoder(
    base: str | Path,
    pooling: Pooling | None = None,
    dropout: float | None = None,
    keep_adapter: bool = False,
    prompts: Prompts | None = None,
) -> Encoder:
    """Load an encoder in float32: its modules, and the language-model head when the base has one.

    Args:
        base: `bundled`, a directory or a hub id; see `selfsent.models.bases.resolve`.
        pooling: name of the pooling; by default that of the base, else mean.
        dropout: dropout rate everywhere in the transformer; by default that of the base's configuration.
        keep_adapter: whether a PEFT adapter is left as it is, instead of merged with the weights of its base.
        prompts: in place of its own.

    Raises:
        BaseEncoderError: the base cannot be found or loaded, has no single pooling after its tokens, or is not
            computed as sentence-transformers computes it.
    """
    directory = resolve(base)
    encoder: Encoder
    try:
        if is_static(directory):
            check_table(base, pooling=pooling, dropout=dropout)
            encoder = _load_static(directory)
        else:
            encoder = _load_transformer(base, directory, pooling, dropout, keep_adapter)
        check_tokenizer(base, encoder.tokenizer, encoder.vocabulary_size)
        _truncate(encoder)
        difference = None if encoder.is_static else _difference_to_peer(encoder)
    except SelfsentError:
        raise
    except Exception as error:  # libraries raise anything over a damaged file
        raise _unreadable(base, error) from error
    if difference:
        other = f"other {difference} than sentence-transformers does, which may use a chat template"
        raise BaseEncoderError(f"selfsent cannot use {base}: for the same text it gets {other}")
    tell_search(encoder, directory, base)
    folders = directory, below_adapter(directory)
    encoder.texts_read = reduce(or_, [TextsRead.read(each) for each in folders if each])
    if prompts is not None:
        prompts.put(encoder)
    return encoder


def _unreadable(base: str | Path, error: Exception) -> BaseEncoderError:
    return BaseEncoderError(f"{base} cannot be loaded as an encoder: {first_line(error)}")


def read_config(base: str | Path, directory: Path) -> Any:
    """The configuration of the transformer of a base, by transformers; below an adapter, that of its base.

    Raises:
        BaseEncoderError: there is no transformer, it needs code of its own, or its configuration cannot be read.
    """
    from transformers import CONFIG_MAPPING, AutoConfig

    modules = modules_of(directory)
    if modules and (kind := modules[0][0].rpartition(".")[2]) != "Transformer":
        raise BaseEncoderError(f"the first module of {base} is a {kind}; selfsent needs a transformer there")
    folder = below_adapter(directory) or transformer_folder(directory)
    about = read_json(folder / "config.json")
    if "auto_map" in about and about.get("model_type") not in CONFIG_MAPPING:
        raise BaseEncoderError(
            f"{base} needs code of its own ({about.get('model_type')!r}), and selfsent runs no code that comes with a"
            " model: take a copy for a class that transformers has, or another base"
        )
    register_architecture(about)
    try:
        return AutoConfig.from_pretrained(folder, trust_remote_code=False)
    except Exception as error:
        raise _unreadable(base, error) from error


def check_table(
    base: object, *, pooling: str | None, dropout: float | None, head: str | None = None, layers: str = "last"
) -> None:
    """Reject what a table of token vectors has not.

    Raises:
        BaseEncoderError: another pooling than the mean, dropout, a head or layers to average.
    """
    table = f"{base} is a table of token vectors"
    if pooling not in (None, "mean"):
        raise BaseEncoderError(f"{table}, which takes means: leave out pooling={pooling}")
    if dropout:
        raise BaseEncoderError(f"{table}, without dropout: leave out `dropout`")
    if head:
        raise BaseEncoderError(f"{table}, without states for a head: leave out head={head}")
    if layers != "last":
        raise BaseEncoderError(f"{table}, without layers: leave out layers={layers}")


def load_prompted(base: str | Path) -> Encoder:
    """An encoder with its prompts as a run would train it: before texts of one kind, too."""
    return load_encoder(base, prompts=Prompts.of(resolve(base)))


def _load_static(directory: Path) -> StaticEncoder:
    if (directory / "modules.json").is_file():
        return StaticEncoder(PlainTable.read(directory) or load_sentence_transformer(directory, device="cpu").float())
    from safetensors.torch import load_file
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Normalize, StaticEmbedding

    # model2vec's own layout: its configuration has the flag for vectors of length 1
    ends = [Normalize()] if read_json(directory / "config.json").get("normalize") else []
    tokenizer = Tokenizer.from_file(str(directory / "tokenizer.json"))
    table = StaticEmbedding(tokenizer, rows_of_model2vec(load_file(directory / "model.safetensors")))
    return StaticEncoder(SentenceTransformer(modules=[table, *ends], device="cpu"))


def _load_transformer(
    base: str | Path, directory: Path, pooling: Pooling | None, dropout: float | None, keep_adapter: bool
) -> Encoder:
    modules, folder, config = modules_of(directory), transformer_folder(directory), read_config(base, directory)
    if adapted := below_adapter(directory):
        require_peft()
        folder = folder if (folder / HEAD_FILE).is_file() else adapted
    rates = {name: dropout for name in DROPOUTS if dropout is not None and hasattr(config, name)}
    with torch.random.fork_rng([]):
        torch.manual_seed(0)  # weights missing in the files, such as a pooler, are the same in every process
        model = load_sentence_transformer(
            directory, device="cpu", config_kwargs=rates, model_kwargs={"dtype": torch.float32, "use_safetensors": True}
        )
    if getattr(model[0].model.config, "is_encoder_decoder", False):
        _keep_encoder_half(base, model[0], bool(modules))
    _complete_tokenizer(model[0])
    if not modules and model[0].modality_config.pop("message", None):  # a language model is to read texts, not chats
        model[0].input_formatter.supported_modalities = list(model[0].modality_config)
    index = pooling_index(model)
    if index is None or not _runs_packed(list(model)[1:index]):
        raise BaseEncoderError(f"{base} is not a transformer followed by a pooling, which is what selfsent can train")
    _set_pooling(model, index, pooling)
    if (mode := model[index].pooling_mode) not in (*POOLINGS, CNN_POOL):
        raise BaseEncoderError(f"{base} pools by {mode}, selfsent by {', '.join(POOLINGS)}: choose one with `pooling`")
    encoder = Encoder(model, None, (adapted or folder) if predicts_by_decoder(config) else None)
    if adapted and not keep_adapter:
        before = model.encode([_PROBE], show_progress_bar=False)
        merge(encoder)
        encoder.transformer.requires_grad_(True)
        if not _alike(model.encode([_PROBE], show_progress_bar=False), before):
            problem = f"the adapter in {base} computes something else than plain LoRA"
            raise BaseEncoderError(f"{problem}: merge it with peft (merge_and_unload), and save the whole model")
    with silent():  # with tied weights as they are now, without the adapter's wrapping
        encoder.language_model_head = load_head(folder, model[0].model)
    return encoder


def _keep_encoder_half(base: str | Path, module: Any, saved: bool) -> None:
    """Reduce a model like BART to its encoder; sentence-transformers' `Transformer` would read its decoder.

    The decoder loses its layers, so that plain sentence-transformers gives the same states for the saved model.

    Args:
        base: its name.
        module: the transformer.
        saved: whether it was saved as part of a sentence encoder, which keeps its states.

    Raises:
        BaseEncoderError: the model is not built like BART, or its sentence vectors are those of its decoder.
    """
    model = module.model
    if not hasattr(model, "encoder") or not hasattr(getattr(model, "decoder", None), "layers"):
        raise BaseEncoderError(f"{base} is an encoder-decoder of an unknown kind: choose a BART or T5")
    if saved and module.modality_config.get("text") != _ENCODER_STATES:
        raise BaseEncoderError(f"{base} was trained to make vectors of its decoder's states: choose an encoder")
    model.decoder.layers = nn.ModuleList()
    model.config.decoder_layers = 0
    for parameter in set(model.decoder.parameters()) - set(model.encoder.parameters()):
        parameter.requires_grad_(False)
    module.modality_config = {"text": _ENCODER_STATES}


def _complete_tokenizer(module: Any) -> None:
    """Give a tokenizer a token to pad with and a longest length, where its files lack them."""
    tokenizer, transformer = module.tokenizer, module.model
    if tokenizer.pad_token is None:
        tokenizer.pad_token = tokenizer.eos_token or tokenizer.unk_token
    limit = LONGEST
    positions = getattr(transformer.config, "max_position_embeddings", None) or 0
    if positions > 0 and not getattr(transformer.config, "rope_parameters", None):
        limit = positions - position_offset(transformer)
    tokenizer.model_max_length = min(limit, tokenizer.model_max_length)


def _set_pooling(model: Any, index: int, pooling: Pooling | None) -> None:
    from sentence_transformers.sentence_transformer.modules import Pooling as PoolingModule

    if pooling is not None:
        included = getattr(model[index], "include_prompt", True)
        model[index] = PoolingModule(model[index].embedding_dimension, pooling, included)


def _runs_packed(token_modules: list[nn.Module]) -> bool:
    """Whether the modules between transformer and pooling can be run on packed batches."""
    if not token_modules or (len(token_modules) == 1 and is_layer_mean(token_modules[0])):
        return True
    from selfsent.models.heads.ngram_cnn import is_known

    return all(map(is_known, token_modules))


def _truncate(encoder: Encoder) -> None:
    """Replace `truncate_dim`, which only sentence-transformers' own `encode` heeds, by a map that truncates vectors."""
    model = encoder.sentence_transformer
    if (width := getattr(model, "truncate_dim", None)) is not None:
        model.truncate_dim = None
        if width < (whole := encoder.embedding_size):
            encoder.put_affine(torch.eye(whole)[:width], torch.zeros(width))


def _difference_to_peer(encoder: Encoder) -> str | None:
    """Difference to sentence-transformers for the same text: `tokens`, `vectors` or None.

    A model may have settings that are not read here; training would then miss what is used later.
    """
    peer = encoder.sentence_transformer
    for prompt in dict.fromkeys((prompt_of(encoder), prompt_of(encoder, "query"), prompt_of(encoder, "document"))):
        for text in (_PROBE, _PROBE * (min(int(encoder.tokenizer.model_max_length), _LONG) // 8 + 1)):
            features = peer.preprocess([text], prompt=prompt or None)
            theirs = features["input_ids"][features["attention_mask"].bool()].tolist()
            if theirs and theirs != pack(encoder, [text], prompt).ids.tolist():
                return "tokens"
            if not theirs:
                break
        else:
            expected = peer.encode([_PROBE], prompt=prompt, show_progress_bar=False)[0]
            with torch.inference_mode(), without_dropout(encoder):
                found = encoder(pack(encoder, [_PROBE], prompt))[0].numpy()
            if len(found) != (size := encoder.embedding_size):
                raise ValueError(f"its vectors have {len(found)} numbers, but its pooling says {size}")
            if not _alike(found, expected):
                return "vectors"
    return None


def _alike(found: NDArray[np.float32], expected: NDArray[np.float32]) -> bool:
    """Whether vectors are the same but for rounding."""
    return np.allclose(found, expected, rtol=1e-3, atol=1e-3 * max(1.0, float(np.abs(expected).max())))


def transformer_alone(encoder: Encoder, pooling: Pooling) -> Encoder:
    """The transformer of an encoder with a pooling right after it, and nothing else.

    Raises:
        BaseEncoderError: it has no transformer.
    """
    encoder.require_transformer("pairs are read by a transformer")
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Pooling as PoolingModule

    modules = [encoder.sentence_transformer[0], PoolingModule(encoder.hidden_size, pooling)]
    alone = SentenceTransformer(modules=modules, device=str(encoder.device))
    return Encoder(alone, encoder.language_model_head)
