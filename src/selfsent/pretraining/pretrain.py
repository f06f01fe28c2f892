"""From text to an encoder: vocabulary, starting weights, masked language modelling by the clock, and a card."""

from __future__ import annotations

import dataclasses
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from selfsent.data.batches import Batches
from selfsent.data.corpus import Corpus, read_corpus
from selfsent.data.views.tokens import Template
from selfsent.data.views.view import View
from selfsent.display import counted
from selfsent.distributed import join, rank, wait
from selfsent.errors import CorpusError, SelfsentError, SettingsError
from selfsent.files import write_text
from selfsent.foreign.transformers import silent
from selfsent.models.loading import load_encoder
from selfsent.pretraining.blocks import Blocks, MaskBlocks, block_template
from selfsent.pretraining.card import PROMPTS, fill, pretraining_card
from selfsent.pretraining.held_out import HeldOut
from selfsent.pretraining.learner import PretrainingLearner
from selfsent.pretraining.loop import PretrainingLoop
from selfsent.pretraining.options import DEFAULTS, POSITIONS, Options, Shape
from selfsent.pretraining.page import PAGE, pretraining_page
from selfsent.pretraining.prepare import Prepared, load_tokenizer, prepare, tokenizer_digest
from selfsent.pretraining.start import check_start
from selfsent.progress import Progress, shown
from selfsent.settings import Settings
from selfsent.training.fit import random_apart
from selfsent.training.run_config import RunConfig
from selfsent.training.run_directory import RunDirectory


@dataclass
class PretrainingRun:
    """A run of pretraining, or what there is of it after a leg.

    Args:
        directory: where it lies; the encoder is in `model`.
        record: the content of its `run.json`.
        finished: whether the encoder is there, and not only a checkpoint to go on from.
        fills: for each prompt, the words that the encoder fills in, and their probabilities.
    """

    directory: Path
    record: dict[str, Any]
    finished: bool
    fills: dict[str, list[tuple[str, float]]]


def pretrain(
    corpus: Corpus | str | Path | Sequence[str] | Callable[[], Corpus],
    output: str | Path,
    *,
    tokenizer: str | Path | None = None,
    sources: Sequence[str] = (),
    prompts: Sequence[str] = PROMPTS,
    leg: float | None = None,
    resume: bool = False,
    overwrite: bool = False,
    keep: int = 2,
    progress: Progress | None = None,
    quiet: bool = False,
    **changes: Any,
) -> PretrainingRun:
    """Train a vocabulary and a BERT-shaped encoder from scratch, with masked language modelling.

    Args:
        corpus: a corpus, anything `read_corpus` reads, or a function that is called for it; a run that is resumed does
            not read it again.
        output: the run directory; the encoder is in `model`.
        tokenizer: a directory, hub id or `bundled`, whose tokenizer is used instead of a new one.
        sources: what the text is and its licence, for the card.
        prompts: sentences with a [MASK], for the card.
        leg: seconds after which to stop with a checkpoint, data preparation included; None for no stop.
        resume: go on with the run in `output`.
        overwrite: throw away the run in `output`.
        keep: checkpoints kept, at least 2.
        progress: hears the run; its steps are thousandths. By default it is shown, as in `selfsent.train`.
        quiet: nothing is shown.
        **changes: fields of `Shape`, `Options` and `selfsent.settings.Settings`. `budget` is the whole schedule, over
            all legs, in seconds spent on training steps.

    Raises:
        SelfsentError: what is wrong with the corpus, the settings or the run directory, in one line.
    """
    with shown(progress, quiet, lines=False) as told, silent(), random_apart():
        return _pretrain(corpus, output, tokenizer, sources, prompts, leg, resume, overwrite, keep, told, changes)


def _pretrain(
    corpus: Corpus | str | Path | Sequence[str] | Callable[[], Corpus],
    output: str | Path,
    tokenizer: str | Path | None,
    sources: Sequence[str],
    prompts: Sequence[str],
    leg: float | None,
    resume: bool,
    overwrite: bool,
    keep: int,
    progress: Progress,
    changes: dict[str, Any],
) -> PretrainingRun:
    started = time.perf_counter()
    join()
    shape, options, settings = _resolve(changes)
    if odd := next((prompt for prompt in prompts if prompt.count("[MASK]") != 1), None):
        raise SettingsError(f"the prompt {odd!r} must have one [MASK], to be filled in")
    run_config = RunConfig(keep=keep)
    given = None if tokenizer is None else load_tokenizer(tokenizer, changes)
    directory = RunDirectory(Path(output))
    directory.check(resume, overwrite, [tokenizer])
    prepared = Prepared(directory.path / "prepared")
    asked = {
        "method": "pretrain",
        "shape": dataclasses.asdict(shape),
        "options": dataclasses.asdict(options),
        "settings": dataclasses.asdict(settings),
        "tokenizer": None if given is None else tokenizer_digest(given),
    }
    if directory.resumed and prepared.is_whole:
        text, about = None, directory.record["asked"]["corpus"]
    else:
        text = corpus if isinstance(corpus, Corpus) else corpus() if callable(corpus) else read_corpus(corpus)
        about = {"source": text.source, "fingerprint": text.fingerprint, "sentences": len(text)}
    directory.match({**asked, "corpus": about})
    if directory.status == "finished":
        progress.notice(f"{output} is finished already")
    directory.begin()
    loop = None
    try:
        if text is not None:
            directory.update(corpus=text.report.summary("; "))
            prepare(prepared, text, given, shape, options, settings.seed, progress)
        if directory.status == "running":
            loop = _loop(prepared, directory, options, settings, run_config, progress, started, leg)
    except SelfsentError:
        if not directory.resumed:
            directory.abandon()
        raise
    if loop is not None and not loop.pretrain():
        progress.notice(f"the leg is over: {loop.share_done(loop.step):.0%} of the run is done, and saved")
        return PretrainingRun(directory.path, directory.record, False, {})
    return _finish(directory, prepared, sources, prompts)


def _finish(
    directory: RunDirectory, prepared: Prepared, sources: Sequence[str], prompts: Sequence[str]
) -> PretrainingRun:
    """Write card and page; of a finished run again, where the user now says what its text was."""
    fills = fill(directory.model, prompts)
    if rank() == 0 and (directory.status == "trained" or sources):
        write_text(directory.model / "README.md", pretraining_card(directory.record, prepared.about, sources, fills))
        page = pretraining_page(directory.record, prepared.about, directory.metrics(), fills)
        write_text(directory.path / PAGE, page)
        directory.sweep()
        directory.update(status="finished")
    wait()
    return PretrainingRun(directory.path, directory.record, True, fills)


def _resolve(changes: dict[str, Any]) -> tuple[Shape, Options, Settings]:
    """Shape, options and settings of what the user said."""
    kinds: tuple[type[Any], ...] = (Shape, Options, Settings)
    parts: list[dict[str, Any]] = []
    for kind in kinds:
        names = {item.name for item in dataclasses.fields(kind)}
        parts.append({name: value for name, value in changes.items() if name in names})
    unknown = changes.keys() - {name for part in parts for name in part}
    if unknown:
        raise SettingsError(f"pretraining has no option {min(unknown)!r}")
    shape, options, settings = Shape(**parts[0]), Options(**parts[1]), DEFAULTS.but(**parts[2])
    check_start(options.start, shape)
    if settings.max_length > POSITIONS:
        raise SettingsError(f"--max-length is {settings.max_length}; the encoder has {POSITIONS} positions")
    if settings.budget and settings.warmup >= 1:
        raise SettingsError(f"--warmup is {settings.warmup:g} steps; with --budget give a share below 1")
    if not (settings.steps or settings.epochs or settings.budget):
        settings = settings.but(epochs=1.0)
    return shape, options, settings


def _loop(
    prepared: Prepared,
    directory: RunDirectory,
    options: Options,
    settings: Settings,
    run_config: RunConfig,
    progress: Progress,
    started: float,
    leg: float | None,
) -> PretrainingLoop:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        encoder = load_encoder(prepared.start, "mean", dropout=0.0)
        learner = PretrainingLearner(encoder, options.ratio, options.share_for_embeddings)
    template = block_template(Template.of(encoder.tokenizer, encoder.vocabulary_size))
    room = settings.max_length - len(template.prefix)
    table, separator = prepared.table, int(encoder.tokenizer.sep_token_id)
    train, held = (Blocks(table, prepared.rows(part), room, separator) for part in ("train", "held"))
    if not len(train) or not len(held):
        part, count = ("to train on", len(train)) if not len(train) else ("held out", len(held))
        raise CorpusError(
            f"the text {part} fills {count} blocks of {room} tokens: give more text, or a smaller --max-length"
        )
    if settings.batch_size > len(train):
        progress.notice(
            f"the text fills {counted(len(train), 'block')}: --batch-size {settings.batch_size} is cut to that"
        )
        settings = settings.but(batch_size=len(train))
    view = View(noise=MaskBlocks(options.ratio))
    batches = Batches([train], np.arange(len(train)), (view,), template, settings)
    if settings.epochs:
        steps = max(1, round(settings.epochs * batches.steps_per_epoch))
        settings = dataclasses.replace(settings, epochs=None, steps=steps)
    about = prepared.about
    parameters = sum(parameter.numel() for parameter in learner.parameters() if parameter.requires_grad)
    directory.update(parameters=parameters, blocks=len(train))
    progress.notice(
        f"{parameters / 1e6:.1f} million parameters, {about['train_tokens'] / 1e6:.1f} million tokens in"
        f" {counted(len(train), 'block')}, {about['held_out_tokens'] / 1e6:.2f} million held out"
    )
    if about["cut"]:
        cut = f"{counted(about['cut'], 'text is', 'texts are')} cut after 512 tokens"
        progress.notice(f"{cut}: give --split-sentences if they are paragraphs")
    held_out = HeldOut(held, template, float(about["characters_per_token"]))
    loop = PretrainingLoop(
        learner,
        batches,
        settings,
        directory,
        run_config,
        progress,
        held_out=held_out,
        started=started,
        leg=leg,
        half=options.half,
        ratio=options.ratio,
    )
    if options.compiles(loop.device):
        learner.compile_blocks(progress.notice)
    return loop
