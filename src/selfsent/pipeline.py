"""A run of `train`: corpus, views, hold-out, training, scores, page and card."""

from __future__ import annotations

import gc
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any

from selfsent.augment.augmenter import Augmenter
from selfsent.augment.make import with_views
from selfsent.augment.registry import parse_augmenters
from selfsent.data.corpus import Corpus, read_corpus
from selfsent.distributed import by_first, join, rank, wait
from selfsent.errors import DataError, SettingsError
from selfsent.evaluation.datasets.leaks import trained_by
from selfsent.evaluation.dev import check_dev, dev_scorer
from selfsent.evaluation.exam import Exam
from selfsent.evaluation.hold_out import HoldOut
from selfsent.evaluation.load_scorer import scorer_of
from selfsent.evaluation.suites import TASKS
from selfsent.evaluation.tasks.context import CONTEXT
from selfsent.evaluation.warranty import held_exam
from selfsent.files import remove, write_json, write_text
from selfsent.methods import METHODS, get_method, method_of
from selfsent.methods.method import MethodOptions
from selfsent.models.bases import resolve
from selfsent.models.loading import load_encoder
from selfsent.models.saved import is_cross_encoder, needs_selfsent
from selfsent.naming import name_of
from selfsent.progress import Progress
from selfsent.report.card import licence_of, model_card
from selfsent.report.run import Run, load_run
from selfsent.report.run_page import run_page
from selfsent.report.scoring import neighbours_of, paired, score_base
from selfsent.report.warranted import keep_warranted
from selfsent.settings import non_defaults, split_arguments
from selfsent.training.budget import Clock
from selfsent.training.defaults import DEFAULT_METHOD, is_strong
from selfsent.training.fit import fit, rows_with_neighbours
from selfsent.training.plan import Plan, config_of, default_plan, doubt, make_plan
from selfsent.training.run_config import Notice, RunConfig
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

    @classmethod
    def of(cls, method: AnyMethod, base: AnyBase, hold_out: HoldOut | int | None = None, **changes: Any) -> Request:
        """The request, with a method's options resolved to its name."""
        if isinstance(method, MethodOptions):
            changes = {**non_defaults(method), **changes}
            method = method_of(method).name
        run_config, changes = split_arguments(RunConfig, changes)
        return cls(method, name_of(base), hold_out, run_config, changes)

    def checked(self) -> tuple[Plan, list[Augmenter]]:
        """The plan as far as known without the corpus, and the augmenters of the views.

        Raises:
            SelfsentError: a fault of the base or the settings, in one line.
        """
        check_dev(self.run_config.dev, self.run_config.dev_every, self.run_config.keep_best)
        method, changes = get_method(self.method or DEFAULT_METHOD), self.changes
        views = ",".join(self.run_config.views)
        augmenters = parse_augmenters(views) if views else []
        if augmenters and "columns" in {item.name for item in fields(method.options)}:
            changes = {"columns": True, **changes}
        plan = make_plan(method, self.base, **changes)
        if augmenters and plan.columns < 2:
            advice = "give method=bootstrap, ntxent, simcse or mnrl"
            raise SettingsError(f"views= makes two views, and {method.name} reads one: {advice}")
        if plan.keep_adapter and self.run_config.warranty is not None:
            raise SettingsError("a warranty mixes whole weights: leave out keep_adapter")
        return plan, augmenters


def _prepared(corpus: Corpus, request: Request, progress: Progress) -> tuple[Corpus, Plan, HoldOut]:
    """The corpus with its views, its plan, and its split.

    Raises:
        SelfsentError: the corpus does not fit the plan.
    """
    plan, augmenters = request.checked()
    notice, dev = progress.notice, request.run_config.dev
    if request.method is None:
        plan, reason = default_plan(corpus, request.base, **request.changes)
        notice(f"training with {plan.method.name}, as {reason}; `method` chooses another")
        if line := doubt(plan):
            notice(line)
    if augmenters:
        if rank() == 0:
            advance = partial(progress.count, "making views", total=len(corpus))
            with_views(corpus, augmenters, plan.settings.seed, advance, notice)
        wait()
        corpus = with_views(corpus, augmenters, plan.settings.seed)
    plan = plan.on(corpus)
    hold_out = request.hold_out
    if not isinstance(hold_out, HoldOut):
        labelled = plan.options.labels() is not None
        warn = (lambda line: None if dev else notice(_LABELLED)) if labelled else notice
        pairs = plan.contrasts_pairs and not augmenters  # views of one text are not a search pair
        hold_out = HoldOut.of(corpus, dev == CONTEXT, warn, plan.joins, hold_out, pairs)
    hold_out = replace(hold_out, train=rows_with_neighbours(plan, corpus, hold_out.train, notice))
    hold_out = hold_out.thinned(request.run_config.sentences)
    plan.known(corpus, hold_out.train)  # reject bad labels before anything slow
    return corpus, plan, hold_out


def train_once(
    source: Source, request: Request, output: Path, resume: bool, overwrite: bool, progress: Progress
) -> Run:
    """Train with one seed, or go on, in a run directory; see `train`."""
    clock = request.run_config.clock or Clock(time.perf_counter())
    join()
    notice = progress.notice
    plan, _ = request.checked()
    directory = RunDirectory(output)
    directory.check(resume, overwrite, plan.encoders)
    if resume and not directory.resumed:
        notice(f"there is no run in {output} to go on with: beginning at the first step")
    text = read(source, None if plan.reads_documents else False, notice)
    corpus, plan, hold_out = _prepared(text, request, progress)
    for line in _notices(plan, corpus, hold_out, request):
        notice(line)
    description = config_of(plan, corpus, hold_out.train)
    # Older runs did not record their rows.
    directory.match(description, {**plan.defaults, "corpus": description["corpus"]})
    if directory.status == "finished":
        notice(f"{output} is finished already: nothing is left to do")
        return by_first(lambda: load_run(output))
    exam = _exam_for_warranty(corpus, hold_out, request.run_config)
    if directory.status != "trained":
        if plan.settings.budget and not directory.record.get("split"):
            clock = _with_scores(clock, plan, corpus, hold_out)
        scorer = dev_scorer(request.run_config.dev, corpus, hold_out, request.run_config.data)
        fit(corpus, hold_out.train, plan, directory, replace(request.run_config, clock=clock, scorer=scorer), progress)
        gc.collect()  # reference cycles between loop and batches keep encoders and mapped files alive
    if rank() == 0:
        if exam is not None:
            keep_warranted(directory, plan, exam, request.run_config, notice)
        _finish(corpus, hold_out, plan, directory, notice, request.run_config)
    return by_first(lambda: load_run(output))


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


def _finish(
    corpus: Corpus, hold_out: HoldOut, plan: Plan, directory: RunDirectory, notice: Notice, config: RunConfig
) -> None:
    """Score the base and the trained model on the held-out documents, and write scores, page and card.

    Args:
        corpus: the text.
        hold_out: its parts.
        plan: of the run.
        directory: of the run.
        notice: receives the reason of a missing score.
        config: whether checkpoints stay.
    """
    scores, neighbours = dict[str, Any](), list[dict[str, Any]]()
    if hold_out.test is not None:
        after = scorer_of(load_encoder(directory.model), "trained")
        try:
            before = score_base(corpus, hold_out, plan.base, plan.prompts)
            sizes = directory.record["config"].get("sizes", ())
            scores = {name: paired(each, after, sizes) for name, each in before.items()}
            first = next(iter(before.values()))
            sides = after.query_document_vectors(*first.texts, search=first.with_words is not None)
            neighbours = neighbours_of(*first.texts, first.sides, sides)
        except DataError as error:  # only near-duplicates: a model without a score
            notice(f"no label-free score: {error}")
    context, search = scores.get("context"), scores.get("search")
    write_json(directory.path / "scores.json", {"scores": context, "search": search, "neighbours": neighbours})
    page = run_page(directory.record, context, neighbours, directory.metrics(), search=search)
    write_text(directory.path / "report.html", page)
    joins, alone = is_cross_encoder(directory.model), not needs_selfsent(directory.model)
    summary, licence = corpus.report.summary("; "), licence_of(resolve(plan.base))
    card = model_card(directory.record, summary, context, alone, joins, licence, search)
    write_text(directory.model / "README.md", card)
    directory.sweep()
    remove(directory.path / "best")  # left by a kill right after training
    if config.keep is None:
        remove(directory.checkpoints)
    directory.update(status="finished")


def read(source: Source, split: bool | None, notice: Notice) -> Corpus:
    """Read a corpus, with a notice if its texts need cleaning."""
    if isinstance(source, Corpus):
        return source
    corpus = read_corpus(source, split_sentences=split)
    if line := corpus.report.advice("read_corpus(..., clean=) with "):
        notice(line)
    return corpus


def _with_scores(clock: Clock, plan: Plan, corpus: Corpus, hold_out: HoldOut) -> Clock:
    """The clock of a run with scores: the base is scored now, and the same time is reserved for the result."""
    if plan.method.closed_form or hold_out.test is None:
        return clock
    since = time.perf_counter()
    if rank() == 0:
        with suppress(DataError):  # reported at the end of the run
            score_base(corpus, hold_out, plan.base, plan.prompts)
    wait()
    return replace(clock, after=clock.after + time.perf_counter() - since)


def _notices(plan: Plan, corpus: Corpus, hold_out: HoldOut, request: Request) -> Iterator[str]:
    """Notices before a run, line by line."""
    method, dev, given = plan.method.name, request.run_config.dev, isinstance(request.hold_out, HoldOut)
    if plan.columns < len(corpus.view_columns):
        read, left = corpus.view_columns[: plan.columns], corpus.view_columns[plan.columns :]
        yield f"{method} reads {', '.join(read)} and not {', '.join(left)}"
    yield plan.summary()
    if plan.prompts:
        yield f"prompts: {plan.prompts.summary} (prompts=False leaves them out)"
    if plan.reads_documents and is_strong(plan.base):
        fact = "the base is a strong sentence encoder: rank with words, as search does"
        advice = "training adds little here, so look at the scores before you use the result"
        yield f"{fact}; {advice}"
    if flags := plan.for_encoders:
        yield f"the base is a sentence encoder already, so training keeps what it knows: {flags}"
    if hold_out.test is not None and (own := plan.other_pooling):
        fact = f"the untrained base pools by {own}, and is scored so"
        share = f"a part of the difference comes from the pooling (pooling={own} trains with it, too)"
        yield f"{fact}: {share}"
    if plan.reads_documents and (together := corpus.report.together):
        first, *_, last = together
        yield (
            f"{' and '.join(together)} become one document, so training reads each {first} beside its own {last}: a"
            f" search test that asks for this {last} would be a test on training data. For such a test train on one"
            f" column (text_column={last}), or on pairs kept apart (text_columns={first},{last})"
        )
    if natural := corpus.report.natural:
        first, second = natural
        fact = f"the table has {first} beside {second}, so that a {first} could learn to find its {second}"
        advice = f"give text_columns={first},{second}"
        yield f"{fact}: {advice}"
    if dev in TASKS and not dev.endswith("-dev"):
        yield f"{dev} is a test set: it cannot test a model that was chosen by it"
    if hold_out.test is not None and not given:
        yield hold_out.summary(corpus)
    if method == "tsdae" and (
        labelled := [name for name in trained_by(resolve(plan.base)) if name in METHODS and METHODS[name].supervised]
    ):
        worse = "tsdae after labels made models worse (sentence-transformers issues 962 and 1131)"
        advice = "train tsdae first and with labels afterwards"
        yield f"this base was trained by {labelled[0]} before: {worse}; {advice}"
    if plan.ignored:
        ignored = ", ".join(f"`{name}`" for name in plan.ignored)
        yield f"{method} takes no steps: {ignored} {'is' if len(plan.ignored) == 1 else 'are'} ignored"
