"""An encoder from any model: a directory, a hub id, a function, a file of vectors, or a name."""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, cast

import numpy as np

from selfsent import extensions
from selfsent.data.corpus.passages import check_passages
from selfsent.data.vector_files import SUFFIX, UNKNOWN, StoredVectors, Vectors
from selfsent.errors import BaseEncoderError, SelfsentError, SettingsError, first_line
from selfsent.files import cache_folder
from selfsent.foreign.transformers import silent
from selfsent.models.bases import resolve
from selfsent.models.encoding import Side, encode, prompt_of
from selfsent.models.fingerprint import files_fingerprint, fingerprint
from selfsent.models.opening import is_encoder, open_table
from selfsent.models.prompts import Prompts
from selfsent.models.saved import is_cross_encoder, saved_pooling
from selfsent.models.table import check_tokenizer
from selfsent.models.texts_read import TextsRead
from selfsent.models.weights import require_weights
from selfsent.naming import name_of
from selfsent.resumable import key_of
from selfsent.scorers.api import ApiVectors, address_of, api_model
from selfsent.scorers.leaks import trained_by, trained_on
from selfsent.scorers.lexical import LEXICAL, WITH_WORDS, Hybrid, LexicalScorer, without_words
from selfsent.scorers.passages import InPassages, passages_in
from selfsent.scorers.programs import Program, program_in
from selfsent.scorers.rerank import CANDIDATES, Reranked, Reranker, reranking
from selfsent.scorers.scorer import Encode, PairScorer, Scorer
from selfsent.scorers.word_vectors import WordVectors, words_file

__all__ = ["PairScorer", "Scorer", "check_model", "check_pooling", "load_object", "load_scorer"]

BATCH_SIZE = 64
_KEPT = 1
"""Format of kept vectors; bump when they are computed in another way."""
_FACTORY = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*")


def load_scorer(
    model: Any,
    *,
    name: str | None = None,
    fast: bool = False,
    int8: bool = False,
    pooling: str | None = None,
    prompts: Prompts | None = None,
) -> Scorer:
    """An encoder from any model.

    Args:
        model: a `Scorer`, an encoder of selfsent, a `Run`, anything with `encode` (a SentenceTransformer) or
            `predict` (a CrossEncoder), a function from texts to vectors, or a string: `bundled`, a directory (also a
            run directory), a hub id, `package.module:factory`, vectors with their texts (see `StoredVectors`), `tfidf`
            or `bm25` (see `LexicalScorer`), `glove:FILE` and the like (see `WordVectors`), `api:MODEL`, also with
            `?prompt=query: |passage: ` (see `ApiVectors`), or of an extension, such as `dbow:FILE`. The suffix `+words`
            adds words to any of those with vectors, as in `search` (see `Hybrid`); `FIRST+rerank:SECOND` searches with
            one model and puts what it finds in order by another, as `search --rerank` does (see `Reranked`).
            `+passages:120` counts a document by its best passage of 120 words (see `InPassages`); `+sentences:0.4`,
            `+hubs:0.5` and `+feedback:0.3` are programs above a search (see `Program`).
        name: in results.
        fast: compute in bfloat16 if this machine is faster in it, for models given by directory or hub id.
        int8: likewise, with some products in 8 bits on a CPU that supports them.
        pooling: one of `POOLINGS` for the transformer of a directory or hub id, instead of its own. It also makes a
            cross-encoder's transformer an encoder.
        prompts: before queries and documents, in place of the model's own, for the encoder of a directory or hub id,
            also with words and in passages.

    Raises:
        BaseEncoderError: the model cannot be found or loaded.
        DataError: an invalid file of vectors.
        SettingsError: `pooling` or `prompts` without a directory or hub id; no prompts for a model that has none.
    """
    model = name_of(model)
    if pooling is not None:
        check_pooling(model)
    if isinstance(model, Scorer):
        return model
    if isinstance(model, str):
        label = name or (f"{model}, {pooling}" if pooling else model)
        if prompts is not None and not _has_one(model):
            raise SettingsError(f"prompts are for one encoder of a directory or hub id, and {model} is none")
        if both := reranking(model):
            return Reranked(load_scorer(both[0], fast=fast, int8=int8), as_reranker(both[1], fast=fast, int8=int8))
        if parts := passages_in(model):
            return InPassages(load_scorer(parts[0], fast=fast, int8=int8, prompts=prompts), parts[1])
        if programmed := program_in(model):
            search, kind, share = programmed
            return Program(load_scorer(search, name=name, fast=fast, int8=int8, prompts=prompts), kind, share)
        if alone := without_words(model):
            return Hybrid(load_scorer(alone, name=name, fast=fast, int8=int8, prompts=prompts))
        if is_directory_or_id(model):
            found = _from_directory(resolve(model), label, fast, int8, pooling, prompts)
            found.texts_read |= TextsRead.read(resolve(model))
            return found
        return _from_name(model, label)
    label = name or _own_name(model)
    if is_encoder(model):
        return scorer_of(model, label)
    directory = _directory_of(model)
    corpora, methods = (trained_on(directory), trained_by(directory)) if directory else ((), ())
    if callable(getattr(model, "encode", None)):
        pooling = _pooling_of(model, directory)
        found = Scorer(_encode_with(model), label, pooling, corpora, methods, _sides_of(model))
    elif callable(getattr(model, "predict", None)):
        found = PairScorer(lambda pairs: model.predict(pairs, show_progress_bar=False), label, corpora)
    elif callable(model):
        found = Scorer(model, label)
    else:
        problem = "it needs a method encode(list of texts), or to be such a function"
        raise BaseEncoderError(f"{label} is no encoder: {problem}")
    found.texts_read = TextsRead.read(directory) if directory else found.texts_read
    return found


def as_reranker(model: Any, candidates: int | None = None, *, fast: bool = False, int8: bool = False) -> Reranker:
    """A reranker from any model.

    Vectors of texts by a model of a name are kept in the cache folder, apart for each model and precision, and so by
    its prompts; those of other models as long as the process runs.

    Args:
        model: a `Reranker`; a sentence encoder or a cross-encoder, as for `load_scorer`; or an encoder of selfsent.
        candidates: of each query; None for 200.
        fast: as for `load_scorer`.
        int8: likewise.

    Raises:
        BaseEncoderError: the model cannot be found or loaded.
        SettingsError: it is neither a sentence encoder nor a cross-encoder, or there are no candidates.
    """
    model = name_of(model)
    if isinstance(model, Reranker):
        return model
    scorer = load_scorer(model, fast=fast, int8=int8)
    named = isinstance(model, str) and is_directory_or_id(model)
    digest: Callable[[], str] = str
    if named:
        digest = partial(files_fingerprint, model)
    elif is_encoder(model):
        digest = partial(fingerprint, model)
    reranker = Reranker(scorer, CANDIDATES if candidates is None else candidates, digest)
    if named and not reranker.crosses:
        key = key_of([_KEPT, reranker.fingerprint, scorer.pooling])
        scorer.keep(cache_folder() / "vectors" / f"{key}.sqlite")
    return reranker


def check_pooling(model: Any) -> None:
    """Check that a model can have another pooling.

    Raises:
        SettingsError: it is not loaded from a directory.
    """
    if not isinstance(model, str | Path) or not is_directory_or_id(str(model)):
        raise SettingsError(f"pooling is for models given by directory or hub id, and {_own_name(model)} is none")


def check_model(path: str) -> None:
    """Check quickly that a model of this name exists.

    Raises:
        BaseEncoderError: no such model.
        DataError: an invalid file of vectors.
        SettingsError: words added to a lexical model.
    """
    if both := reranking(path):
        for each in both:
            check_model(each)
    elif parts := passages_in(path):
        check_passages(parts[1])
        check_model(parts[0])
    elif programmed := program_in(path):
        check_model(programmed[0])
    elif alone := without_words(path):
        if alone in LEXICAL:
            raise SettingsError(f"{path}: {LEXICAL[alone]} counts words already: {WITH_WORDS} is for encoders")
        check_model(alone)
    elif is_directory_or_id(path):
        resolve(path)
    elif _FACTORY.fullmatch(path) and not (api_model(path) or extensions.prefixed("scorers", path)):
        load_object(path)
    else:
        _from_name(path, path)


def is_directory_or_id(path: str) -> bool:
    """Whether this names a model in a directory or on the hub, which could be trained."""
    named = words_file(path) or api_model(path) or extensions.prefixed("scorers", path)
    special = path in LEXICAL or named or path.endswith(SUFFIX) or _FACTORY.fullmatch(path)
    inside = passages_in(path) or program_in(path) or without_words(path)
    return not (special or reranking(path) or inside)


def _has_one(path: str) -> bool:
    """Whether this names a search by one encoder that is in a directory or on the hub."""
    inner_name = (passages_in(path) or program_in(path) or ("",))[0] or without_words(path)
    return _has_one(inner_name) if inner_name else is_directory_or_id(path)


def _from_name(path: str, label: str) -> Scorer:
    """An encoder that is not in a directory; files are checked."""
    if path in LEXICAL:
        return LexicalScorer(path, label)
    if named := words_file(path):
        words = WordVectors(named[1], stop_words=named[0] != "nostop")
        words.check()
        return Scorer(words, label, "mean" if words.stop_words else "nostop")
    if api_model(path):
        asked = ApiVectors(path)
        sides: tuple[Side, Side] = ("query", "document")
        found = Scorer(asked, label, searching=[partial(asked, side=s) if asked.fields else None for s in sides])
        found.remote = address_of(path)
        return found
    if other := extensions.prefixed("scorers", path):
        made = extensions.load("scorers", other[0])(*other)
        made.check()
        return Scorer(made, label, other[0])
    if path.endswith(SUFFIX):
        vectors = StoredVectors(Path(path))
        found = Scorer(vectors, label, vectors.pooling, vectors.trained_on, vectors.trained_by)
        found.texts_read = TextsRead.of_line(vectors.texts_read)
        return found
    return load_scorer(load_object(path)(), name=label)


def _of_peer(kind: str, directory: Path, label: str, **options: Any) -> Scorer:
    """A model loaded quietly by sentence-transformers, with any error as one line."""
    import sentence_transformers

    try:
        with silent():
            load, options = getattr(sentence_transformers, kind), {"use_safetensors": True, **options}
            model = load(str(directory), local_files_only=True, model_kwargs=options)
        require_weights(model, directory)
        first: Any = next(iter(model.children()), None)
        if hasattr(getattr(first, "model", None), "get_input_embeddings"):
            check_tokenizer(label, first.tokenizer, first.model.get_input_embeddings().num_embeddings)
        return load_scorer(model, name=label)
    except SelfsentError:
        raise
    except Exception as error:  # damaged files raise many kinds
        raise BaseEncoderError(f"cannot load the model {label}: {first_line(error)}") from error


def _from_directory(
    directory: Path, label: str, fast: bool, int8: bool, pooling: str | None, prompts: Prompts | None
) -> Scorer:
    """A model without padding if selfsent supports it, otherwise through sentence-transformers."""
    if prompts is not None and not (prompts or Prompts.of(directory)):
        raise SettingsError(f"{label} has no prompts that could be left out")
    if pooling is None and is_cross_encoder(directory):
        return _of_peer("CrossEncoder", directory, label)
    trained = trained_on(directory), trained_by(directory)
    if pooling is None and (table := open_table(directory)) is not None:
        if prompts is not None:
            prompts.put(table)
        return scorer_of(table, label, trained=trained)
    import torch

    from selfsent.models.loading import load_encoder, transformer_alone
    from selfsent.models.precision import inference_device, quick_precision, quicken

    device = inference_device()
    try:
        model = load_encoder(directory)
        model = (transformer_alone(model, cast(Any, pooling)) if pooling else model).to(device)
        if prompts is not None:
            prompts.put(model)
    except BaseEncoderError:
        if pooling or prompts is not None:
            raise
        precision = quick_precision(device, fast=fast or int8)
        dtype = torch.bfloat16 if precision == "bfloat16" else torch.float32
        found = _of_peer("SentenceTransformer", directory, label, dtype=dtype)
        found.pooling = _in(precision, found.pooling)
        return found
    if model.is_static:  # nothing to speed up
        fast = int8 = False
    quicken(model, fast=fast, int8=int8)
    described = _in(quick_precision(device, fast=fast, int8=int8), model.pooling)
    return scorer_of(model, label, described, trained)


def scorer_of(model: Any, label: str, pooling: str | None = None, trained: tuple[Any, Any] = ((), ())) -> Scorer:
    """A model of selfsent as evaluation takes it, with its prompts and weight of words.

    Args:
        model: a `selfsent.models.encoder.Encoder`, of which a `CrossEncoder` scores pairs, or a `Table`.
        label: its name in results.
        pooling: for the signature; by default its own.
        trained: known training corpora and methods.
    """
    if hasattr(model, "peer"):  # a cross-encoder
        return load_scorer(model.peer, name=label)
    sides: tuple[Side, Side] = ("query", "document")
    apart = [partial(encode, model, side=s) if prompt_of(model, s) != prompt_of(model) else None for s in sides]
    found = Scorer(partial(encode, model), label, pooling or model.pooling, *trained, apart)
    found.lexical_weight = model.lexical_weight
    found.texts_read = getattr(model, "texts_read", found.texts_read)  # a table in numpy has none in memory
    return found


def _in(precision: str, pooling: str) -> str:
    """A pooling for the signature, with a lower precision if any."""
    return pooling if precision == "float32" else f"{pooling}+{precision}"


def load_object(path: str) -> Any:
    """The function named `package.module:name`, importable also from the current directory.

    Raises:
        BaseEncoderError: another form, or no such callable.
    """
    if not _FACTORY.fullmatch(path):
        raise BaseEncoderError(f"{path} must have the form package.module:name")
    module, name = path.split(":")
    if (here := str(Path.cwd())) not in sys.path:  # the command's own directory comes first otherwise
        sys.path.append(here)
    try:
        found = getattr(importlib.import_module(module), name)
    except Exception as error:  # arbitrary user code
        raise BaseEncoderError(f"cannot import {path}: {first_line(error)}") from error
    if not callable(found):
        raise BaseEncoderError(f"{path} is no function: it is {type(found).__name__}")
    return found


def _sides_of(model: Any) -> list[Encode | None]:
    """A model's functions for queries and documents, if they differ from its default by a prompt or route."""
    sides: tuple[Side, Side] = ("query", "document")
    apart = [side for side in sides if callable(getattr(model, f"encode_{side}", None))]
    if _is_peer(model) and not any(type(module).__name__ == "Router" for module in model.modules()):
        apart = [side for side in apart if prompt_of(model, side) != prompt_of(model)]
    return [_encode_with(model, f"encode_{side}") if side in apart else None for side in sides]


def _is_peer(model: Any) -> bool:
    return type(model).__module__.startswith("sentence_transformers")


def _encode_with(model: Any, method: str = "encode") -> Encode:
    options: dict[str, Any] = {"batch_size": BATCH_SIZE, "show_progress_bar": False} if _is_peer(model) else {}

    def encode(texts: Sequence[str]) -> Vectors:
        vectors = getattr(model, method)(list(texts), **options)
        if hasattr(vectors, "detach"):
            vectors = vectors.detach().float().cpu().numpy()
        return np.asarray(vectors, np.float32)

    return encode


def _pooling_of(model: Any, directory: Path | None) -> str:
    for module in getattr(model, "modules", list)():
        if type(module).__name__ == "Pooling":
            mode = module.get_config_dict().get("pooling_mode", UNKNOWN)
            return mode if isinstance(mode, str) else "+".join(mode)
    return (saved_pooling(directory) if directory else None) or UNKNOWN


def _directory_of(model: Any) -> Path | None:
    """The source directory of a model of sentence-transformers; None for other models."""
    if not _is_peer(model):
        return None
    names = (getattr(getattr(module, "config", None), "_name_or_path", None) for module in model.modules())
    paths = (Path(path) for path in (getattr(model, "loaded_from", None), *names) if path)
    return next((path for path in paths if path.is_dir()), None)


def _own_name(model: Any) -> str:
    if isinstance(model, str | Path):
        return str(model)
    card = getattr(model, "model_card_data", None)
    return str(getattr(card, "base_model", None) or getattr(model, "__name__", None) or type(model).__name__)
