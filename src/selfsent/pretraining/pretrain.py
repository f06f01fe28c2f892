"""From text to a base: a vocabulary with an untrained table, or with an encoder by masked language modelling."""

from __future__ import annotations

import dataclasses
import time
from pathlib import Path
from typing import Any

import torch

from selfsent.api import check_train, train
from selfsent.data.corpus import Corpus
from selfsent.data.token_table import build_table
from selfsent.distributed import by_first, join
from selfsent.errors import SettingsError, guess
from selfsent.files import write_text
from selfsent.foreign.transformers import silent
from selfsent.models.bases import RAW
from selfsent.models.heads.language_model import LanguageModelHead
from selfsent.models.loading import load_encoder
from selfsent.models.new_bases import in_cache, new_language_model, tokenizer_digest
from selfsent.models.static import new_table
from selfsent.pretraining.counts import start_from_counts
from selfsent.pretraining.options import DEFAULTS, Options, TableOptions
from selfsent.pretraining.vocabulary import Text, given_tokenizer, text_of, train_vocabulary
from selfsent.progress import Progress, shown
from selfsent.report.run import Run
from selfsent.settings import split_arguments
from selfsent.training.budget import Clock
from selfsent.training.fit import isolated_rng
from selfsent.training.models import save_model
from selfsent.training.run_directory import RunDirectory

_DROPOUT = 0.1
"""Dropout rate of later training."""
_VERSION = 1
"""Version of the starting weights; raise it when they change."""


def pretrain(
    corpus: Text,
    output: str | Path,
    *,
    tokenizer: str | Path | None = None,
    resume: bool = False,
    overwrite: bool = False,
    progress: Progress | None = None,
    quiet: bool = False,
    **changes: Any,
) -> Run:
    """Train a vocabulary and a BERT-shaped encoder from scratch, by `selfsent.train` with the method `mlm`.

    Args:
        corpus: a corpus, anything `read_corpus` reads, or a function that is called for it.
        output: the run directory; the encoder is in `model`.
        tokenizer: an encoder (directory, hub id or `bundled-raw`) to take the tokenizer from, instead of a new one.
        resume: go on with the run in `output`.
        overwrite: throw away the run in `output`.
        progress: follows the run; by default it is shown, as in `selfsent.train`.
        quiet: nothing is shown.
        **changes: fields of `Options`, of `selfsent.settings.Settings` and of `RunConfig`, and `hold_out`.

    Returns:
        The run.

    Raises:
        SelfsentError: a fault in the corpus, the settings or the run directory, in one line.

    Examples:
        >>> run = pretrain("corpus.txt", "runs/base", budget=3600)
        >>> train("sentences.txt", "simcse", base=run, output="runs/tuned")
    """
    clock = Clock(time.perf_counter())
    options, rest = split_arguments(Options, changes)
    defaults = {name: value for name, value in dataclasses.asdict(DEFAULTS).items() if value is not None}
    # Without dropout: one pass sees little twice. Embeddings of counts are good already, and mlm makes them worse.
    read = {"ratio": options.ratio, "span": options.span, "embedding_rate": options.embedding_rate}
    settings = {**read, "dropout": 0.0, **defaults, **rest}
    with shown(progress, quiet) as listener, silent():
        join()
        check_train("mlm", RAW, **settings)
        given = None if tokenizer is None else given_tokenizer(tokenizer, changes)
        RunDirectory(Path(output)).check(resume, overwrite, [tokenizer])
        text = text_of(corpus)
        if text.documents is None:  # single sentences, with as many tokens in a batch
            settings |= {"span": changes.get("span", 1), "batch_size": rest.get("batch_size", 128)}
        base = _base(text, given, options, int(settings["seed"]), listener)
        common: dict[str, Any] = {"resume": resume, "overwrite": overwrite, "progress": listener, "clock": clock}
        run: Run = train(text, "mlm", base, output, **common, **settings)
        by_first(lambda: _publish(run.directory / "model"))
    return run


def make_table(
    corpus: Text | None,
    output: str | Path,
    *,
    tokenizer: str | Path | None = None,
    overwrite: bool = False,
    progress: Progress | None = None,
    quiet: bool = False,
    **changes: Any,
) -> Path:
    """Make an untrained table of token vectors, as a base for `selfsent.train`.

    Args:
        corpus: text for the vocabulary: a corpus, anything `read_corpus` reads, or a function that is called
            for it; None where there is a tokenizer.
        output: the directory; the table is in `model`.
        tokenizer: an encoder to take the tokenizer from, instead.
        overwrite: throw away what is in `output`.
        progress: follows how it goes; by default it is shown.
        quiet: nothing is shown.
        **changes: fields of `TableOptions`.

    Returns:
        The directory of the table, which sentence-transformers loads.

    Raises:
        SelfsentError: a fault in the corpus, tokenizer, options or directory, in one line.

    Examples:
        >>> base = make_table("tickets.txt", "table")
        >>> train("tickets.txt", base=base, output="run")
    """
    names = [item.name for item in dataclasses.fields(TableOptions)]
    if unknown := changes.keys() - set(names):
        raise SettingsError(f"a table has no option {min(unknown)!r}; {guess(min(unknown), names)}")
    options = TableOptions(**changes)
    if (corpus is None) == (tokenizer is None):
        raise SettingsError("give either a corpus to learn a vocabulary on, or tokenizer=ENCODER")
    given: Any = None if tokenizer is None else given_tokenizer(tokenizer, changes, special=())
    directory = RunDirectory(Path(output))
    directory.check(resume=False, overwrite=overwrite, read=[tokenizer])
    about: dict[str, Any] = {"method": "table", "options": dataclasses.asdict(options)}
    with shown(progress, quiet) as listener:
        if corpus is not None:
            text = text_of(corpus)
            given = train_vocabulary(text, options, listener)
            about["corpus"] = {"source": text.source, "fingerprint": text.fingerprint, "sentences": len(text)}
        directory.match({**about, "tokenizer": tokenizer_digest(given)})
        directory.begin(steps=False)
        table = new_table(given.backend_tokenizer, options.size, options.seed)
        save_model(directory.model, table.save, table)
        directory.update(status="finished", parameters=table.table.weight.numel())
        listener.notice(f"{table.vocabulary_size:,} tokens, {options.size} numbers each")
    return directory.model


def _base(corpus: Corpus, given: Any, options: Options, seed: int, progress: Progress) -> Path:
    """The untrained encoder, in the cache; made by the first process, for all."""
    key = "bert", _VERSION, corpus.fingerprint, options, seed, None if given is None else tokenizer_digest(given)

    def write(folder: Path) -> None:
        tokenizer = given or train_vocabulary(corpus, options, progress)
        shape = {"num_hidden_layers": options.layers, "num_attention_heads": options.heads}
        shape |= {"hidden_size": options.hidden_size, "intermediate_size": options.feed_forward}
        model = new_language_model("bert", tokenizer, seed, **shape)
        table = build_table(corpus, tokenizer, corpus.text_columns[0], progress)
        with isolated_rng():
            torch.manual_seed(seed)
            start_from_counts(model, table, tokenizer.mask_token_id, seed)
        model.save_pretrained(folder)
        tokenizer.save_pretrained(folder)

    by_first(lambda: in_cache(key, write))
    return in_cache(key, write)  # on a machine that does not see the first one's cache, made again


def _publish(directory: Path) -> None:
    """Save a trained model so that transformers loads it with its head."""
    from transformers import AutoModelForMaskedLM

    card = (directory / "README.md").read_text(encoding="utf-8").replace("from `model` on", "from new weights on")
    encoder = load_encoder(directory, dropout=_DROPOUT)
    model = AutoModelForMaskedLM.from_config(encoder.transformer.config)
    trained = encoder.require_head("the directory")
    LanguageModelHead(model, encoder.transformer).load_state_dict(trained.state_dict())

    def save(folder: Path) -> None:
        encoder.sentence_transformer.save(str(folder), create_model_card=False)
        model.save_pretrained(folder)
        encoder.texts_read.save(folder)
        write_text(folder / "README.md", card)

    save_model(directory, save, encoder)
    RunDirectory(directory.parent).sweep()  # files of a killed process that published
