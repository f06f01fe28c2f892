"""The library as its users know it: train, with a hold-out, scores before and after, and a card."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from functools import partial
from pathlib import Path
from typing import Any

from selfsent.augment.augmenter import Augmenter
from selfsent.augment.columns import with_views
from selfsent.augment.registry import parse_makers
from selfsent.data.corpus import Corpus, read_corpus
from selfsent.distributed import by_first, join, rank, wait
from selfsent.errors import DataError, SettingsError
from selfsent.evaluation.datasets.leaks import trained_by
from selfsent.evaluation.dev import LABEL_FREE, Dev, check_dev, dev_scorer
from selfsent.evaluation.hold_out import HoldOut
from selfsent.evaluation.suites import TASKS
from selfsent.methods import METHODS, get_method
from selfsent.models.bases import resolve
from selfsent.models.encoder import Pooling
from selfsent.naming import name_of
from selfsent.progress import Progress, shown
from selfsent.report.maps import check_points
from selfsent.report.run import Run, load_run
from selfsent.report.scoring import finish, score_base
from selfsent.training.budget import Clock
from selfsent.training.default import USUAL, default_plan, doubt
from selfsent.training.fit import fit, in_company, random_apart
from selfsent.training.identity import asked, read_by
from selfsent.training.plan import Plan, make_plan
from selfsent.training.run_config import Notice, RunConfig
from selfsent.training.run_directory import RunDirectory

_LABELLED = "rows with labels are not scored at the end: selfsent evaluate does it, with --pairs or --labels"


def train(
    corpus: Corpus | str | Path | Iterable[str] | Callable[[], Corpus],
    method: str | None = None,
    base: str | Path | None = None,
    output: str | Path = "run",
    *,
    preset: str | None = None,
    pooling: Pooling | None = None,
    dropout: float | None = None,
    whiten: float | None = None,
    head: str | None = None,
    views: str | None = None,
    sentences: int | None = None,
    hold_out: HoldOut | int | None = None,
    resume: bool = False,
    overwrite: bool = False,
    data: str | Path | None = None,
    progress: Progress | None = None,
    quiet: bool = False,
    clock: Clock | None = None,
    **changes: Any,
) -> Run:
    """Train a sentence encoder, and score it before and after where the corpus has documents or pairs.

    Args:
        corpus: sentences, or pairs and triples with labels or without: a corpus, anything `read_corpus` reads, or a
            function that is called for it when all else has been checked.
        method: name of a method; see `selfsent.methods.METHODS`. None for what is best for the corpus: `neighbours`
            where sentences have neighbours in documents (long texts, one to a row, are split so that they have).
        base: the encoder to start from: `bundled` or another one that ships with selfsent, a
            directory, a run, or a hub id. None for the best of the first two that the method can train.
        output: the run directory: `run.json`, `metrics.jsonl`, `checkpoints/` and, at the end, `model/`.
        preset: `published` for the settings of the paper, or another preset of the method.
        pooling: `cls`, `mean`, `max` or `lasttoken` instead of what the base was saved with, or the method's own where
            it was saved with none.
        dropout: dropout rate of the encoder instead of the base's own.
        whiten: whiten the trained encoder's vectors with this strength, by a fit on the training sentences: 1 in full,
            0 not at all; by default 0.1 after `neighbours` on a table of token vectors, else 0.
        head: `ngram-cnn` or `cnn-pool`, to give the encoder that head; one that the base has already stays without it.
        views: one or two makers between commas, such as `synonym` or `translate:pivot=spa,translate:pivot=cat`: the
            views they make become the two columns that the method reads, and stay in the corpus' cache.
        sentences: train on no more rows than this, drawn at random, the same for every seed.
        hold_out: how many documents are kept apart to score by (and as many again for `dev="context"`), 0 for none; or
            which, where they are shared out already. None for a tenth, 500 at least, and a fifth of fewer than 1,000.
            Of pairs, those that share a text count as one document.
        resume: go on with the run in `output`.
        overwrite: throw away the run in `output`.
        data: a mirror of the evaluation data sets; without it SELFSENT_DATA.
        progress: hears what the user should know and how far the run is. By default this is shown, as bars in a
            terminal and in a notebook.
        quiet: nothing is shown.
        clock: when a `budget` began to run, and what of it the caller needs afterwards. By default it begins now, and
            all of it, scores and pages included, is this run's.
        **changes: how the run goes, by the names of `selfsent.settings.Settings` (`steps`, `budget`, `batch_size`,
            `learning_rate`, `seed` ...) and of `selfsent.training.run_config.RunConfig` (`dev`, `keep_best`,
            `checkpoint_every`, `map_points`, `trackers` ...); and options of the method and of the head.

    Raises:
        SelfsentError: what is wrong with the corpus, the base, the settings or the run directory, in one line.
    """
    clock = clock or Clock(time.perf_counter())
    with shown(progress, quiet) as told, random_apart():
        run_config, changes = RunConfig.taken_from(changes)
        run_config = replace(run_config, clock=clock)
        base = name_of(base)
        given = {"preset": preset, "pooling": pooling, "dropout": dropout, "whiten": whiten, "head": head, **changes}
        asked_for = _Asked(method, base, views, given, sentences, hold_out, run_config, data)
        return _train(corpus, asked_for, Path(output), resume, overwrite, told)


@dataclass(frozen=True)
class _Asked:
    """What `train` is asked for, whatever the corpus: its arguments of the same names, `given` for the plan."""

    method: str | None
    base: str | Path | None
    views: str | None
    given: dict[str, Any]
    sentences: int | None
    hold_out: HoldOut | int | None
    run_config: RunConfig
    data: str | Path | None


def _train(
    corpus: Corpus | str | Path | Iterable[str] | Callable[[], Corpus],
    wanted: _Asked,
    output: Path,
    resume: bool,
    overwrite: bool,
    progress: Progress,
) -> Run:
    join()
    dev, notice = wanted.run_config.dev, progress.notice
    check_dev(dev, wanted.run_config.dev_every, wanted.run_config.keep_best)
    check_points(wanted.run_config.map_points)
    plan, makers = _plan(wanted.method or USUAL, wanted.base, wanted.views, **wanted.given)
    directory = RunDirectory(output)
    directory.check(resume, overwrite, read_by(plan))
    if resume and not directory.resumed:
        notice(f"there is no run in {output} to go on with: beginning at the first step")
    if not isinstance(corpus, Corpus):
        split = None if plan.reads_documents else False
        corpus = corpus() if callable(corpus) else read(corpus, split, notice)
    if wanted.method is None:
        plan, reason = default_plan(corpus, wanted.base, **wanted.given)
        notice(f"training with {plan.method.name}, as {reason}; --method chooses another")
        if line := doubt(plan):
            notice(line)
    if makers:
        corpus = _with_views(corpus, makers, plan.settings.seed, progress)
    plan = plan.on(corpus)
    before = directory.record.get("asked", {}).get("whiten")
    if wanted.given["whiten"] is None and isinstance(before, bool):  # a run of before there were strengths
        plan = replace(plan, whiten=float(before))
    hold_out = wanted.hold_out
    shared_out = isinstance(hold_out, HoldOut)
    if not isinstance(hold_out, HoldOut):
        hold_out = _hold_out(corpus, plan, dev, hold_out, views=bool(makers), notice=notice)
    hold_out = replace(hold_out, train=in_company(plan, corpus, hold_out.train, notice)).thinned(wanted.sentences)
    plan.known(corpus, hold_out.train)  # bad labels are refused before anything slow
    for line in _told(plan, corpus, hold_out, dev, shared_out=shared_out):
        notice(line)
    description = asked(plan, corpus, hold_out.train)
    # Older runs did not tell their rows.
    directory.match(description, {**plan.defaults, "corpus": description["corpus"]})
    if directory.status == "finished":
        notice(f"{output} is finished already")
        return by_first(lambda: load_run(output))
    if directory.status != "trained":
        scored = replace(wanted.run_config, scorer=dev_scorer(dev, corpus, hold_out, wanted.data))
        if plan.settings.budget and not directory.record.get("split"):
            scored = replace(scored, clock=_with_scores(wanted.run_config.clock, plan, corpus, hold_out))
        fit(corpus, hold_out.train, plan, directory, scored, progress)
        gc.collect()  # loop and batches know each other, and would keep encoders and mapped files for long
    if rank() == 0:
        finish(corpus, hold_out, plan.base, directory, notice, wanted.run_config.map_points)
    return by_first(lambda: load_run(output))


def read(source: str | Path | Iterable[str], split: bool | None, notice: Notice) -> Corpus:
    """The corpus that `train` is given by name; a notice says where its texts ask for cleaning."""
    corpus = read_corpus(source, split_sentences=split)
    if line := corpus.report.advice("read_corpus(..., clean=) with "):
        notice(line)
    return corpus


def _with_scores(clock: Clock | None, plan: Plan, corpus: Corpus, hold_out: HoldOut) -> Clock | None:
    """The clock of a run that scores base and result: the base's score is taken now, and the other takes as long."""
    if clock is None or plan.method.closed_form or hold_out.test is None:
        return clock
    since = time.perf_counter()
    if rank() == 0:
        with suppress(DataError):  # of which the end of the run speaks
            score_base(corpus, hold_out, plan.base)
    wait()
    return replace(clock, after=clock.after + time.perf_counter() - since)


def _told(plan: Plan, corpus: Corpus, hold_out: HoldOut, dev: Dev | None, shared_out: bool) -> Iterator[str]:
    """What the user should know before a run begins, line by line.

    Args:
        plan: what is done.
        corpus: on which text.
        hold_out: what is trained on and scored.
        dev: what is scored along the way.
        shared_out: whether the hold-out was given, and its owner has spoken of it.
    """
    method = plan.method.name
    if plan.columns < len(corpus.view_columns):
        read, left = corpus.view_columns[: plan.columns], corpus.view_columns[plan.columns :]
        yield f"{method} reads {', '.join(read)} and not {', '.join(left)}"
    yield plan.summary()
    if flags := plan.for_encoders:
        yield f"the base is a sentence encoder already, so training keeps what it knows: {flags}"
    if hold_out.test is not None and (own := plan.other_pooling):
        yield (
            f"the untrained base pools by {own}, and is scored so: a part of the difference comes from the pooling"
            f" (--pooling {own} trains with it, too)"
        )
    if plan.reads_documents and (together := corpus.report.together):
        first, *_, last = together
        yield (
            f"{' and '.join(together)} become one document, so training reads each {first} beside its own {last}: a"
            f" search test that asks for this {last} would be a test on training data. For such a test train on one"
            f" column (--text-column {last}), or on pairs kept apart (--text-columns {first},{last})"
        )
    if dev in TASKS and not dev.endswith("-dev"):
        yield f"{dev} is a test set: it cannot test a model that was chosen by it"
    if hold_out.test is not None and not shared_out:
        yield hold_out.summary(corpus)
    if method == "tsdae" and (
        labelled := [name for name in trained_by(resolve(plan.base)) if name in METHODS and METHODS[name].supervised]
    ):
        yield (
            f"this base was trained by {labelled[0]} before: tsdae after labels made models worse"
            " (sentence-transformers issues 962 and 1131); train tsdae first and with labels afterwards"
        )
    if plan.ignored:
        flags = ", ".join("--" + name.replace("_", "-") for name in plan.ignored)
        yield f"{method} takes no steps: {flags} {'is' if len(plan.ignored) == 1 else 'are'} ignored"


def _plan(method: str, base: str | Path | None, views: str | None, **arguments: Any) -> tuple[Plan, list[Augmenter]]:
    """The plan before the data are known, and who makes views for it."""
    makers = parse_makers(views) if views else []
    if makers and "columns" in {item.name for item in fields(get_method(method).options)}:
        arguments = {"columns": True, **arguments}
    plan = make_plan(get_method(method), base, **arguments)
    if makers and plan.columns < 2:
        raise SettingsError(
            f"--views makes two views, and {method} reads one: give --method bootstrap, ntxent, simcse or mnrl"
        )
    return plan, makers


def reads_documents(
    method: str | None = None, base: str | Path | None = None, *, views: str | None = None, **arguments: Any
) -> bool:
    """Whether `train` with these arguments reads what stands beside a sentence, as far as is known before the corpus.

    Raises:
        SelfsentError: what is wrong with the base or the settings, in one line.
    """
    rows = ("sentences", "hold_out")
    _, plan = RunConfig.taken_from({name: value for name, value in arguments.items() if name not in rows})
    return _plan(method or USUAL, base, views, **plan)[0].reads_documents


def check_train(
    corpus: Corpus,
    method: str | None = None,
    base: str | Path | None = None,
    *,
    views: str | None = None,
    sentences: int | None = None,
    hold_out: int | None = None,
    **arguments: Any,
) -> dict[str, Any]:
    """What `train` would be asked for with these arguments, as JSON; the seed is left out. No views are made.

    Raises:
        SelfsentError: what is wrong with the corpus, the base or the settings, in one line.
    """
    run_config, arguments = RunConfig.taken_from(arguments)
    dev = run_config.dev
    check_dev(dev, run_config.dev_every, run_config.keep_best)
    plan, makers = _plan(method or USUAL, base, views, **arguments)
    if method is None:
        plan, _ = default_plan(corpus, base, **arguments)
    plan = plan if makers else plan.on(corpus)
    parts = _hold_out(corpus, plan, dev, hold_out, views=bool(makers))
    parts = replace(parts, train=in_company(plan, corpus, parts.train)).thinned(sentences)
    if not makers:
        plan.known(corpus, parts.train)
    wanted = asked(plan, corpus, parts.train)
    wanted["settings"].pop("seed")
    return {**wanted, "views": views}


def _with_views(corpus: Corpus, makers: list[Augmenter], seed: int, progress: Progress) -> Corpus:
    """The corpus with views as columns, made by the first process alone."""
    if rank() == 0:
        with_views(corpus, makers, seed, partial(progress.count, "making views", total=len(corpus)), progress.notice)
    wait()
    return with_views(corpus, makers, seed)


def _hold_out(
    corpus: Corpus, plan: Plan, dev: Dev | None, count: int | None, *, views: bool, notice: Notice = lambda line: None
) -> HoldOut:
    """What is trained on and what scored; `views` that were made of one text are no pairs to be searched."""
    labelled = plan.options.labels() is not None
    told = (lambda line: None if dev else notice(_LABELLED)) if labelled else notice
    pairs = plan.contrasts_pairs and not views
    return HoldOut.of(corpus, dev in LABEL_FREE, told, plan.joins, count, dev == "judges", pairs)
