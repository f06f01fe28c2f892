"""From a corpus and a plan to a trained model in a run directory."""

from __future__ import annotations

import dataclasses
import time
import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial, reduce
from operator import or_
from typing import Any

import numpy as np
import torch

from selfsent.data.batches import Batches, Lead
from selfsent.data.corpus import Corpus
from selfsent.data.token_table import LONGEST, TokenTable, build_table
from selfsent.data.tokenizing import seam
from selfsent.data.views.positives import Documents
from selfsent.display import counted
from selfsent.distributed import by_first, rank, wait, world_size
from selfsent.errors import SettingsError
from selfsent.methods import Learner
from selfsent.methods.matryoshka import all_sizes, of_sizes
from selfsent.methods.postprocessing import ENOUGH, at_the_end, whiten
from selfsent.methods.ranking import MNRL
from selfsent.models.assemble import put_head
from selfsent.models.bases import known_elsewhere
from selfsent.models.encoder import Encoder
from selfsent.models.health import SENTENCES, probe
from selfsent.models.loading import load_encoder
from selfsent.models.lora import halve, merge, put_lora, restore_frozen
from selfsent.models.precision import autocast
from selfsent.models.reading import LOOKED_AT, reading_notice
from selfsent.models.texts_read import TextsRead
from selfsent.progress import Progress
from selfsent.settings import Precision, Settings
from selfsent.training.checks import reject_alike, reject_constant, reject_wordless
from selfsent.training.hard_negatives import mine, teacher_scores
from selfsent.training.loop import Loop, precision_of
from selfsent.training.models import save_model
from selfsent.training.plan import Plan, check_batch_size
from selfsent.training.prepared import PreparedRun
from selfsent.training.run_config import RunConfig
from selfsent.training.run_directory import RunDirectory
from selfsent.training.teacher_vectors import cached_vectors

_MOST_IN_ONE = 0.5
"""Share of the sentences in one document above which they are negatives of each other, for lack of others."""


def isolated_rng() -> AbstractContextManager[None]:
    """Context that restores torch's random state at its end."""
    return torch.random.fork_rng([torch.cuda.current_device()] if torch.cuda.is_available() else [])


def fit(prepared: PreparedRun, directory: RunDirectory, run_config: RunConfig, progress: Progress) -> Encoder:
    """Train, and save the model in the run directory.

    Nothing is written before all user errors have been checked for.

    Args:
        prepared: corpus, plan, rows and labels.
        directory: a run directory that was checked and matched.
        run_config: checkpoints and scores along the way.
        progress: receives notices and progress.

    Raises:
        BaseEncoderError: the base cannot be loaded.
        SettingsError: the settings do not fit the data or the base.
        OutputError: the run directory cannot be written.
        TrainingError: the run went wrong; the last good checkpoint is kept.
    """
    plan = prepared.plan
    low = bool(plan.lora) and precision_of(plan.settings, directory) == "bfloat16"
    model, learner = _model_and_learner(plan, low)
    learner.class_names = prepared.class_names
    batches = _batches(prepared, learner, progress)
    if rank() == 0:
        known = [model.texts_read, *(teacher.texts_read for teacher in learner.teachers)]
        learner.model.texts_read = reduce(or_, known, TextsRead.of_corpus(prepared.corpus, prepared.rows))
    wait()
    directory.begin()

    def finish(encoder: Encoder) -> None:
        if low:
            with isolated_rng():
                restore_frozen(encoder, _encoder(plan))
        if plan.lora and not plan.keep_adapter:
            merge(encoder)
        if plan.whiten:
            once = batches.single_pass(str(encoder.device), ENOUGH)
            whiten(encoder, once, at_the_end(plan.whiten), linear=encoder.is_static)

    loop = None
    try:
        if plan.method.closed_form:
            _fit_once(learner, batches, directory, finish)
        else:
            settings = _with_steps(plan, batches, progress)
            loop = Loop(learner, batches, settings, directory, run_config, progress, finish)
            loop.run()
            if plan.keep_adapter:
                merge(model)
    except SettingsError:  # such as for vectors that vary in too few directions
        if not directory.resumed and (loop is None or not loop.step):
            directory.abandon()
        raise
    return model


def _fit_once(learner: Learner, batches: Batches, directory: RunDirectory, finish: Callable[[Encoder], None]) -> None:
    """Prepare a learner of a method without steps, which is all its training, and save its model.

    A run that was cut short begins again.
    """
    started = time.perf_counter()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    precision: Precision = "bfloat16" if batches.settings.precision == "bfloat16" else "float32"
    learner.to(device)
    directory.update(steps=0, precision=precision, processes=world_size())
    batches.precompute(learner.features, directory.path, device, precision)
    with autocast(device, precision):
        learner.prepare(batches.single_pass(device))
        finish(learner.model)
    if rank() == 0:
        views = batches.views_of(batches.rows[:SENTENCES], 0, device)
        directory.forget_after(-1)
        directory.log({"step": 0, **probe(learner.model, views).to_json()})
        save_model(directory.model, learner.model.save, learner.model)
    directory.update(status="trained", seconds=time.perf_counter() - started)
    wait()


def _encoder(plan: Plan) -> Encoder:
    """The encoder of a plan, with its adapter."""
    model = load_encoder(plan.base, plan.pooling, plan.dropout, plan.keep_adapter, plan.prompts)
    if plan.lora:
        put_lora(model, plan.lora, known_elsewhere(plan.base))
    return model


def _model_and_learner(plan: Plan, low: bool = False) -> tuple[Encoder, Learner]:
    """The encoder of a plan and its learner; their random initial weights are a function of the seed.

    Args:
        plan: the plan.
        low: whether weights below an adapter are kept in bfloat16.

    Raises:
        SettingsError: an adapter does not suit the method.
    """
    torch.manual_seed(plan.settings.seed)
    model = _encoder(plan)
    if low:
        halve(model)
    model.mini_batch_size = plan.settings.mini_batch_size  # before the learner copies it
    model.space = ""  # training leaves that of the base
    if plan.head:
        put_head(model, plan.head)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        learner = (of_sizes(plan.method.learner) if plan.sizes else plan.method.learner)(model, plan.options)
    model.sizes = all_sizes(plan.sizes, model.embedding_size)  # as it is now: a learner may add layers
    if plan.lora:
        trained = {each for group in learner.parameter_groups(plan.settings) for each in group["params"]}
        if trained.isdisjoint(learner.model.transformer.parameters()):
            raise SettingsError(f"{plan.method.name} trains no transformer: leave out lora")
    if plan.keep_adapter and getattr(model.transformer.config, "output_hidden_states", False):
        raise SettingsError("an adapter cannot say that several layers are read: leave out keep_adapter")
    return model, learner


def _batches(prepared: PreparedRun, learner: Learner, progress: Progress) -> Batches:
    """The tokenised batches, with notices and errors where they do not suit the encoder or the method."""
    plan, corpus, rows, labels = prepared.plan, prepared.corpus, prepared.rows, prepared.labels
    model = learner.model
    settings = fitted(plan, len(rows), progress)
    limit = int(model.tokenizer.model_max_length)
    if settings.max_length > limit:
        if not plan.options.reads_whole_documents:
            progress.notice(f"this base reads at most {limit} tokens: max_length={settings.max_length} is cut to that")
        settings = settings.replace(max_length=limit)
    template = model.template
    reject_constant(model, template)
    for view in plan.views:
        if view.noise is not None:
            reject_wordless(model.tokenizer, view.noise, corpus.texts(rows[:500], corpus.input_columns[view.column]))
    if line := reading_notice(model, corpus.texts(rows[:LOOKED_AT], corpus.input_columns[0])):
        progress.notice(line)
    documents = None if corpus.documents is None else Documents(np.asarray(corpus.documents))
    longest = max(LONGEST, settings.max_length)
    columns = corpus.input_columns[: plan.columns]
    make_table = partial(build_table, corpus, model.tokenizer, progress=progress, longest=longest)
    tables = [make_table(column) for column in columns]
    if not (template.prefix or template.suffix):
        left = rows[np.all([table.lengths(rows) > 0 for table in tables], axis=0)]
        if len(left) < 2:
            raise SettingsError("this encoder makes no token of these texts: choose another `base`")
        if len(left) < len(rows):
            progress.notice(f"this encoder makes no token of {counted(len(rows) - len(left), 'text')}, left out")
            rows, settings = left, fitted(plan, len(left), progress).replace(max_length=settings.max_length)
    encoding = progress.counting("encoding", len(rows) * max(1, len(learner.teachers)))
    apart = documents is None or documents.largest_share(rows) <= _MOST_IN_ONE
    leads = _leads(plan, model, settings.max_length, lambda at, before: make_table(columns[at], before=before))
    batches = Batches(tables, rows, plan.views, template, settings, encoding, labels, documents, apart, leads=leads)
    if line := notice_of_cut(batches, bool(corpus.report.split)):
        progress.notice(line)
    if (compares := plan.method.learner.compares) in ("texts", "documents"):
        reject_alike(batches)
        if compares == "documents" and not batches.separate_documents:
            progress.notice("one document has most of the sentences: they count as negatives of each other")
    if isinstance(plan.options, MNRL) and plan.options.mined:
        batches.mined, batches.labels = _mined(plan, plan.options, corpus, batches, progress)
    if learner.teachers:

        def of_teachers(column: int, device: str, precision: Precision) -> list[np.ndarray]:
            name, length = corpus.input_columns[column], batches.settings.max_length
            return [
                cached_vectors(corpus, name, batches.rows, teacher, base, length, precision, device, batches.on_read)
                for base, teacher in zip(plan.options.teachers, learner.teachers, strict=True)
            ]

        batches.teacher_vectors = of_teachers
    return batches


def _leads(
    plan: Plan, model: Encoder, max_length: int, make_table: Callable[[int, str], TokenTable]
) -> dict[str, Lead]:
    """The prompts of views, by their side.

    Args:
        plan: with the views and the prompts.
        model: the encoder.
        max_length: tokens of an input.
        make_table: the tokens of a column's texts with something before each.

    Raises:
        SettingsError: a prompt leaves no room for a text.
    """
    found = dict[str, Lead]()
    for side in {view.side for view in plan.views} - {"bare"}:
        if prompt := str(getattr(plan.prompts, side)):
            ids, end = seam(model.tokenizer.backend_tokenizer, prompt)
            if len(model.tokenizer(prompt)["input_ids"]) > max_length - 4:  # tokens of a text that it must leave
                raise SettingsError(f"max_length={max_length} leaves no room for a text behind {prompt!r}: raise it")
            columns = sorted({view.column for view in plan.views if view.side == side and end})
            tables = {column: make_table(column, end) for column in columns}
            found[side] = Lead(ids, model.left_out(prompt), tables)
    return found


def _mined(
    plan: Plan, options: MNRL, corpus: Corpus, batches: Batches, progress: Progress
) -> tuple[np.ndarray, np.ndarray | None]:
    """The mined candidates of all rows of the corpus, and their teacher's scores; the first process makes them."""
    rows, whole = batches.rows, options.reads_whole_documents
    how: dict[str, Any] = {
        "retriever": options.retriever,
        "max_relative_score": options.max_relative_score,
        "whole": whole,
        "prompts": plan.prompts,
    }

    def made() -> tuple[np.ndarray, np.ndarray | None]:
        length = batches.settings.max_length
        found = mine(corpus, rows, plan.base, options.mined, **how, max_length=length, progress=progress)
        if not options.teachers:
            return found.rows, found.scores if options.teacher else None
        return found.rows, teacher_scores(corpus, rows, found, options.teacher, whole, progress)

    return by_first(made)


def _with_steps(plan: Plan, batches: Batches, progress: Progress) -> Settings:
    """The settings, with epochs converted to steps."""
    settings = batches.settings
    if settings.epochs:
        steps = max(1, round(settings.epochs * batches.steps_per_epoch))
        settings = dataclasses.replace(settings, epochs=None, steps=min(steps, plan.longest or steps))
    if settings.steps and settings.warmup >= max(1, settings.steps):
        fact = f"the warm-up of {settings.warmup:,.0f} steps is not shorter than the run of {settings.steps:,}"
        reached = f"the rate gets no higher than {settings.steps / (settings.warmup + 1):.0%} of learning_rate"
        progress.notice(f"{fact}: {reached}")
    return settings


def notice_of_cut(batches: Batches, split: bool) -> str | None:
    """Notice where more than a few texts, or passages, are longer than the maximum length.

    Args:
        batches: the texts, as views read them.
        split: whether the texts were split into their sentences, so that they are no paragraphs.
    """
    longest, total = batches.settings.max_length, len(batches.rows)
    cut = sum(int((lengths > longest).sum()) for lengths in batches.lengths())
    if cut < max(2, 0.02 * total) or (len(batches.views) == 1 and batches.views[0].passage):
        return None  # few; or another row's passage holds what is cut of this one
    what, instead = ("sentences", "") if split else ("texts", "split_sentences=True if they are paragraphs, or ")
    if grown := {view.passage.length_option for view in batches.views if view.passage} - {None}:
        what, instead = "passages", f"a smaller {' or '.join(f'`{name}`' for name in sorted(map(str, grown)))}, or "
    return f"{cut:,} of {total:,} {what} are cut after {longest} tokens: give {instead}max_length"


def fitted(plan: Plan, sentences: int, progress: Progress) -> Settings:
    """The settings, with a batch no larger than the corpus.

    Raises:
        SettingsError: the batch cannot be shared out evenly, or is too small for the method.
    """
    settings, batchwise = plan.settings, plan.options.is_batchwise
    if plan.method.closed_form:
        return settings
    if settings.batch_size > sentences:
        fits = sentences - sentences % world_size() if batchwise else sentences
        fact = f"the corpus has {counted(sentences, 'row')} to train on"
        cut = f"batch_size={settings.batch_size} is cut to {'that' if fits == sentences else fits}"
        progress.notice(f"{fact}: {cut}")
        settings = settings.replace(batch_size=max(1, fits))
    check_batch_size(plan.method, plan.options, settings.batch_size)
    if settings.batch_size < world_size() * settings.accumulate:
        parts = f"{world_size()} processes with {settings.accumulate} micro-batches each"
        raise SettingsError(f"batch_size={settings.batch_size} is too small for {parts}")
    if batchwise and settings.batch_size % world_size():
        raise SettingsError(f"batch_size={settings.batch_size} cannot be shared evenly by {world_size()} processes")
    return settings
