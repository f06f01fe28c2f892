"""A run of `train`: corpus, views, hold-out, training, scores, page and card."""

from __future__ import annotations

import gc
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from selfsent.augment.augmenter import Augmenter
from selfsent.augment.make import with_augmentations
from selfsent.augment.registry import parse_augmenters
from selfsent.data.corpus import Corpus, read_corpus
from selfsent.distributed import by_first, join, rank, wait
from selfsent.errors import DataError, SettingsError
from selfsent.evaluation.dev import check_dev, dev_scorer
from selfsent.evaluation.held_out import Before, score_base, score_trained
from selfsent.evaluation.hold_out import HoldOut
from selfsent.evaluation.suites import TASKS
from selfsent.evaluation.tasks.context import CONTEXT
from selfsent.exam.exam import Exam
from selfsent.exam.warranty import held_exam, titles_find_texts, warranty
from selfsent.files import remove, write_json, write_text
from selfsent.lexical import language_code
from selfsent.methods import METHODS, get_method, method_of
from selfsent.methods.method import MethodOptions
from selfsent.models.base_info import BaseInfo
from selfsent.models.bases import BUNDLED, table_for
from selfsent.models.loading import load_encoder
from selfsent.models.merge import WeightInterpolation
from selfsent.models.saved import is_cross_encoder, needs_selfsent
from selfsent.naming import name_of
from selfsent.progress import Progress
from selfsent.report.card import licence_of, model_card
from selfsent.report.run import Run, load_run
from selfsent.report.run_page import run_page
from selfsent.scorers.leaks import trained_by
from selfsent.search.dedup import copies_across
from selfsent.search.exact import sampled
from selfsent.settings import non_defaults, split_arguments, with_current_names
from selfsent.training.advice import Situation, advice_on, single_sentences
from selfsent.training.budget import Clock
from selfsent.training.defaults import DEFAULT_METHOD
from selfsent.training.fit import fit
from selfsent.training.models import save_model
from selfsent.training.plan import Plan, config_of, default_plan
from selfsent.training.prepared import PreparedRun, rows_with_neighbours
from selfsent.training.run_config import RunConfig
from selfsent.training.run_directory import RunDirectory

_LABELLED = "rows with labels are not scored at the end: selfsent evaluate does it, with --pairs or --labels"
Source = Corpus | str | Path | Iterable[str]
"""A corpus, or anything `read_corpus` reads."""


AnyMethod = str | MethodOptions | None
AnyBase = str | PathLike[str] | None


@dataclass(frozen=True)
class Request:
    """The arguments of `train`; `changes` are for the plan."""

    method: str | None
    base: str | None
    hold_out: HoldOut | int | None
    run_config: RunConfig
    changes: dict[str, Any]
    resume: bool = False

    @classmethod
    def of(
        cls,
        method: AnyMethod,
        base: AnyBase,
        hold_out: HoldOut | int | None = None,
        resume: bool = False,
        **changes: Any,
    ) -> Request:
        """The request, with a method's options resolved to its name."""
        if isinstance(method, MethodOptions):
            changes = {**non_defaults(method), **changes}
            method = method_of(method).name
        run_config, changes = split_arguments(RunConfig, with_current_names(changes, RunConfig))
        return cls(method, name_of(base), hold_out, run_config, changes, resume)

    def checked(self) -> CheckedRun:
        """Resolve the plan as far as known without the corpus.

        Raises:
            SelfsentError: a fault of the base or the settings, in one line.
        """
        check_dev(self.run_config.dev, self.run_config.dev_every, self.run_config.keep_best)
        method, changes = get_method(self.method or DEFAULT_METHOD), self.changes
        names = ",".join(self.run_config.augmentations)
        augmenters = parse_augmenters(names) if names else []
        if augmenters and "columns" in {item.name for item in fields(method.options)}:
            changes = {"columns": True, **changes}
        base = None if self.base is None else BaseInfo.read(self.base)
        plan = Plan.resolve(method, base, **changes)
        if augmenters and plan.columns < 2:
            advice = "give method=bootstrap, ntxent, simcse or mnrl"
            raise SettingsError(f"augmentations= makes two views, and {method.name} reads one: {advice}")
        if plan.keep_adapter and self.run_config.warranty is not None:
            raise SettingsError("a warranty mixes whole weights: leave out keep_adapter")
        return CheckedRun(replace(self, changes=changes) if self.method else self, plan, augmenters, base)


@dataclass(frozen=True)
class CheckedRun:
    """A run whose request was checked, as `check_train` returns it and `train` takes it.

    Args:
        request: the arguments.
        plan: the plan as far as known without the corpus.
        augmenters: augmenters that make the texts of both views.
        base: the base encoder; None for the default.
        directory: the run directory, checked and held; None before `into`.
        clock: begins where the request was made.
    """

    request: Request
    plan: Plan
    augmenters: list[Augmenter]
    base: BaseInfo | None
    directory: RunDirectory | None = None
    clock: Clock = field(default_factory=lambda: Clock(time.perf_counter()))

    def into(self, output: Path, resume: bool, overwrite: bool) -> CheckedRun:
        """Check the run directory and hold it, so that no other process takes it meanwhile.

        Raises:
            SelfsentError: it cannot be used.
        """
        join()
        directory = RunDirectory(output)
        directory.check(resume, overwrite, self.plan.encoders)
        return replace(self, directory=directory)


def _prepared(corpus: Corpus, checked: CheckedRun, progress: Progress) -> tuple[PreparedRun, HoldOut]:
    """The run that can begin, and the split of its corpus.

    Raises:
        SelfsentError: the corpus does not fit the plan.
    """
    request, plan, augmenters = checked.request, checked.plan, checked.augmenters
    dev = request.run_config.dev
    base = checked.base or _table_for(corpus, plan, progress)
    if request.method is None:
        plan, reason = default_plan(corpus, base, **request.changes)
        progress.notice(f"training with {plan.method.name}, as {reason}; `method` chooses another")
        if line := single_sentences(Situation(plan, corpus)):
            progress.notice(line)
    elif base is not checked.base:
        plan = Plan.resolve(plan.method, base, **request.changes)
    if augmenters:
        if rank() == 0:
            with_augmentations(corpus, augmenters, plan.settings.seed, progress)
        wait()
        corpus = with_augmentations(corpus, augmenters, plan.settings.seed)
    plan = plan.on(corpus)
    hold_out = request.hold_out
    if not isinstance(hold_out, HoldOut):
        pairs = plan.contrasts_pairs and not augmenters  # views of one text are not a search pair
        hold_out = HoldOut.of(corpus, dev == CONTEXT, plan.joins, hold_out, pairs)
        labelled = plan.options.labels() is not None
        if hold_out.reason and not (labelled and dev):
            progress.notice(_LABELLED if labelled else hold_out.reason)
    if request.run_config.dedup:
        hold_out = _without_copies(corpus, hold_out, progress)
    hold_out = replace(hold_out, train=rows_with_neighbours(plan, corpus, hold_out.train, progress))
    hold_out = hold_out.thinned(request.run_config.sentences)
    return PreparedRun.of(corpus, plan, hold_out.train), hold_out


def _without_copies(corpus: Corpus, hold_out: HoldOut, progress: Progress) -> HoldOut:
    """The split without training rows that are near-copies of held-out ones.

    Raises:
        SettingsError: fewer than two rows are left.
    """
    held = [rows for rows in (hold_out.dev, hold_out.test) if rows is not None]
    if not held:
        progress.notice("dedup=True changes nothing: no text is kept apart to score by")
        return hold_out
    copies = copies_across(corpus, hold_out.train, np.concatenate(held))
    left = np.setdiff1d(hold_out.train, copies)
    if len(left) < 2:
        raise SettingsError("dedup leaves nothing to train on: all texts are near-copies of those kept apart")
    what = corpus.report.counted(len(copies))
    progress.notice(f"{what} to train on with a near-copy among those kept apart to score by: left out of training")
    return replace(hold_out, train=left)


def _table_for(corpus: Corpus, plan: Plan, progress: Progress) -> BaseInfo | None:
    """The multilingual table where the English one is the default and the text is surely in another language."""
    if plan.base_info.name != BUNDLED:
        return None
    table = table_for(language_code(sampled(corpus)))
    if table == BUNDLED:
        return None
    progress.notice(
        f"the text is not English: training starts from {table} (base={BUNDLED} would take the English table)"
    )
    return BaseInfo.read(table)


def train_once(source: Source, checked: CheckedRun, progress: Progress) -> Run:
    """Train with one seed, or continue, in a run directory; see `train`."""
    request, directory = checked.request, checked.directory
    assert directory is not None
    clock = request.run_config.clock or checked.clock
    if request.resume and not directory.resumed:
        progress.notice(f"there is no run in {directory.path} to go on with: beginning at the first step")
    text = read(source, None if checked.plan.reads_documents else False, progress)
    prepared, hold_out = _prepared(text, checked, progress)
    plan, corpus = prepared.plan, prepared.corpus
    for line in advice_on(_situation(prepared, hold_out, request)):
        progress.notice(line)
    description = config_of(plan, corpus, prepared.rows)
    # Older runs did not record their rows.
    directory.match(description, {**plan.defaults, "corpus": description["corpus"]})
    if directory.status == "finished":
        progress.notice(f"{directory.path} is finished already: nothing is left to do")
        return by_first(lambda: load_run(directory.path))
    exam = _exam_for_warranty(corpus, hold_out, request.run_config)
    if directory.status != "trained":
        if plan.settings.budget and not directory.record.get("split"):
            clock = _with_scores(clock, plan, corpus, hold_out)
        scorer = dev_scorer(request.run_config.dev, corpus, hold_out, request.run_config.data)
        fit(prepared, directory, replace(request.run_config, clock=clock, scorer=scorer), progress)
        gc.collect()  # reference cycles between loop and batches keep encoders and mapped files alive
    if rank() == 0:
        if exam is not None:
            _keep_warranted(directory, plan, exam, request.run_config, progress)
        _finish(corpus, hold_out, plan, directory, progress, request.run_config)
    return by_first(lambda: load_run(directory.path))


def _situation(prepared: PreparedRun, hold_out: HoldOut, request: Request) -> Situation:
    """Facts that advice depends on."""
    dev = request.run_config.dev
    scored = hold_out.test is not None
    told = scored and not isinstance(request.hold_out, HoldOut)
    supervised = prepared.plan.method.name == "tsdae" and trained_by(prepared.plan.base_info.directory)
    return Situation(
        prepared.plan,
        prepared.corpus,
        held_out=hold_out.summary(prepared.corpus) if told else "",
        is_scored=scored,
        dev_test_set=dev if dev in TASKS and not dev.endswith("-dev") else "",
        trained_with_labels=tuple(name for name in supervised or () if name in METHODS and METHODS[name].supervised),
    )


def _exam_for_warranty(corpus: Corpus, hold_out: HoldOut, config: RunConfig) -> Exam | None:
    """The exam of held-out documents that a warranty needs; None without warranty.

    Raises:
        SettingsError: nothing is held out.
        DataError: nothing can be asked.
    """
    if config.warranty is None:
        return None
    if hold_out.test is None:
        raise SettingsError("warranty asks of documents kept apart, and there are none: see `hold_out`")
    return held_exam(corpus, hold_out.train, hold_out.test, hold_out.pairs)


def _keep_warranted(directory: RunDirectory, plan: Plan, exam: Exam, config: RunConfig, progress: Progress) -> None:
    """Replace the model of a run by the interpolation with its base that an exam warrants, and record it.

    The trained model stays in `trained/`, so that an interrupted run repeats this.

    Args:
        directory: of a run that is trained.
        plan: of the run.
        exam: of held-out documents.
        config: how many points general sentences may lose, and the mirror of evaluation data sets.
        progress: receives the result in a few sentences.

    Raises:
        BaseEncoderError: the weights cannot be merged. The run stays as it is.
    """
    if "warranty" in directory.record:
        return
    aside = directory.path / "trained"
    trained = load_encoder(aside if aside.is_dir() else directory.model)
    interpolation = WeightInterpolation(load_encoder(plan.base, prompts=plan.prompts), trained)
    found = warranty(interpolation, exam, config.data, most=config.warranty or 0.0)
    if not aside.is_dir():
        directory.model.rename(aside)
    kept = interpolation.at(found.alpha) if found.chosen else interpolation.base
    save_model(directory.model, kept.save, kept)
    directory.update(warranty=found.to_json())
    progress.notice(f"warranty: {found.line} All of the training is in {aside}")


def _finish(
    corpus: Corpus, hold_out: HoldOut, plan: Plan, directory: RunDirectory, progress: Progress, config: RunConfig
) -> None:
    """Score the base and the trained model on the held-out documents, and write scores, page and card.

    Args:
        corpus: the text.
        hold_out: its parts.
        plan: of the run.
        directory: of the run.
        progress: receives the reason of a missing score.
        config: whether checkpoints stay.
    """
    scores, neighbours = dict[str, Any](), list[dict[str, Any]]()
    if hold_out.test is not None:
        try:
            before = score_base(corpus, hold_out, plan.base_info, plan.prompts, titles_find_texts)
            if line := _read_before(before):
                progress.notice(line)
            scores, neighbours = score_trained(before, directory.model, directory.record["config"].get("sizes", ()))
        except DataError as error:  # only near-duplicates: a model without a score
            progress.notice(f"no label-free score: {error}")
    context, search = scores.get("context"), scores.get("search")
    write_json(directory.path / "scores.json", {"scores": context, "search": search, "neighbours": neighbours})
    page = run_page(directory.record, context, neighbours, directory.metrics(), search=search)
    write_text(directory.path / "report.html", page)
    joins, alone = is_cross_encoder(directory.model), not needs_selfsent(directory.model)
    summary, licence = corpus.report.summary("; "), licence_of(plan.base_info.directory)
    card = model_card(directory.record, summary, context, alone, joins, licence, search)
    write_text(directory.model / "README.md", card)
    directory.sweep()
    remove(directory.path / "best")  # left by a kill right after training
    if config.keep is None:
        remove(directory.checkpoints)
    directory.update(status="finished", reading={**corpus.reading, "title": corpus.title})


def _read_before(before: Mapping[str, Before]) -> str | None:
    """The warning where the base has read what was kept apart; None where it has not."""
    found = [each.score.has_read for each in before.values() if each.score.has_read]
    if not found:
        return None
    read, asked = found[0]
    fact = f"the base has read {read:,} of the {asked:,} texts kept apart"
    return f"{fact}: the scores below are too good, and no verdict; begin with another base to have one"


def read(source: Source, split: bool | None, progress: Progress) -> Corpus:
    """Read a corpus, with a notice if its texts need cleaning."""
    if isinstance(source, Corpus):
        return source
    corpus = read_corpus(source, split_sentences=split)
    if line := corpus.report.advice("read_corpus(..., clean=) with "):
        progress.notice(line)
    return corpus


def _with_scores(clock: Clock, plan: Plan, corpus: Corpus, hold_out: HoldOut) -> Clock:
    """The clock of a run with scores: the base is scored now, and the same time is reserved for the result."""
    if plan.method.closed_form or hold_out.test is None:
        return clock
    since = time.perf_counter()
    if rank() == 0:
        with suppress(DataError):  # reported at the end of the run
            score_base(corpus, hold_out, plan.base_info, plan.prompts, titles_find_texts)
    wait()
    return replace(clock, after=clock.after + time.perf_counter() - since)
