"""The public functions: `train`, with a hold-out, scores before and after, and a card; `encode`, `pairs` and others."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from selfsent.augment.augmenter import Augmenter
from selfsent.augment.make import with_views
from selfsent.augment.registry import parse_augmenters
from selfsent.data.corpus import Corpus, read_corpus
from selfsent.distributed import by_first, join, rank, wait
from selfsent.errors import DataError, SettingsError
from selfsent.evaluation.datasets.leaks import trained_by
from selfsent.evaluation.dev import LABEL_FREE, check_dev, dev_scorer, scored
from selfsent.evaluation.exam import Exam
from selfsent.evaluation.hold_out import HoldOut
from selfsent.evaluation.suites import TASKS
from selfsent.evaluation.warranty import held_exam
from selfsent.files import remove, write_json, write_text
from selfsent.lexical.scores import PAIR_WEIGHT, check_weight
from selfsent.methods import METHODS, get_method, method_of
from selfsent.methods.method import MethodOptions
from selfsent.methods.ranking import MinedBy
from selfsent.models.bases import resolve
from selfsent.models.cross_encoder import is_cross_encoder
from selfsent.models.encoder import Encoder
from selfsent.models.encoding import Side, encode as encode_texts
from selfsent.models.export import Exported, check_export, export as export_graph
from selfsent.models.loading import load_encoder
from selfsent.models.saved import needs_selfsent
from selfsent.naming import name_of
from selfsent.progress import Progress, shown
from selfsent.report.card import licence_of, model_card
from selfsent.report.maps import check_points, slowness
from selfsent.report.run import Run, load_run
from selfsent.report.run_page import run_page
from selfsent.report.scoring import map_of_run, neighbours_of, paired, score_base
from selfsent.report.seeds import Seeds, over_seeds
from selfsent.report.warranted import keep_warranted
from selfsent.search import Clusters, Pair, encode_corpus, find_clusters, most_similar_pairs
from selfsent.search.pairs import by_words, candidates_for
from selfsent.search.vectors import open_encoder
from selfsent.settings import Settings, non_defaults, split_arguments, with_signature_of
from selfsent.training.budget import Clock
from selfsent.training.candidates import Candidates, mine as mine_candidates
from selfsent.training.defaults import DEFAULT_METHOD, is_strong
from selfsent.training.fit import fit, isolated_rng, rows_with_neighbours
from selfsent.training.plan import Plan, config_of, default_plan, doubt, make_plan
from selfsent.training.run_config import ModelOptions, Notice, RunConfig
from selfsent.training.run_directory import RunDirectory

_LABELLED = "rows with labels are not scored at the end: selfsent evaluate does it, with --pairs or --labels"
Source = Corpus | str | Path | Iterable[str]
"""A corpus, or anything `read_corpus` reads."""


_Method = str | MethodOptions | None
_Base = str | PathLike[str] | None


@dataclass(frozen=True)
class _Request:
    """The arguments of `train`; `changes` are for the plan."""

    method: str | None
    base: str | None
    hold_out: HoldOut | int | None
    run_config: RunConfig
    changes: dict[str, Any]

    @classmethod
    def of(cls, method: _Method, base: _Base, hold_out: HoldOut | int | None = None, **changes: Any) -> _Request:
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
        check_points(self.run_config.map_points)
        method, changes = get_method(self.method or DEFAULT_METHOD), self.changes
        views = ",".join(self.run_config.views)
        augmenters = parse_augmenters(views) if views else []
        if augmenters and "columns" in {item.name for item in fields(method.options)}:
            changes = {"columns": True, **changes}
        plan = make_plan(method, self.base, **changes)
        if augmenters and plan.columns < 2:
            raise SettingsError(
                f"views= makes two views, and {method.name} reads one: give method=bootstrap, ntxent, simcse or mnrl"
            )
        return plan, augmenters


def check_train(
    method: _Method = None,
    base: _Base = None,
    output: str | Path | None = None,
    resume: bool = False,
    overwrite: bool = False,
    **arguments: Any,
) -> Plan:
    """The plan of `train` with these arguments, as far as known without the corpus.

    Raises:
        SelfsentError: a fault of the base, the settings or the run directory, in one line.
    """
    plan, _ = _Request.of(method, base, **arguments).checked()
    if output is not None:
        RunDirectory(Path(output)).check(resume, overwrite, plan.encoders)
    return plan


@overload
def train(
    corpus: Source, method: _Method = ..., base: _Base = ..., output: _Base = ..., *, seeds: None = ..., **changes: Any
) -> Run: ...


@overload
def train(
    corpus: Source, method: _Method = ..., base: _Base = ..., output: _Base = ..., *, seeds: int, **changes: Any
) -> Seeds: ...


@with_signature_of(RunConfig, ModelOptions, Settings)
def train(
    corpus: Source,
    method: _Method = None,
    base: _Base = None,
    output: _Base = "run",
    *,
    hold_out: HoldOut | int | None = None,
    seeds: int | None = None,
    resume: bool = False,
    overwrite: bool = False,
    progress: Progress | None = None,
    quiet: bool = False,
    **changes: Any,
) -> Run | Seeds:
    """Train a sentence encoder, and score it before and after if the corpus has documents or pairs.

    Args:
        corpus: sentences, or pairs and triples with or without labels: a corpus, or anything `read_corpus` reads.
        method: name of a method of `selfsent.METHODS`, or its options, such as `SimCSE(temperature=0.05)`. None for
            the best for the corpus: `neighbours` if sentences have neighbours in documents (long texts, one per row,
            are split into documents).
        base: the encoder to start from: `bundled` or another shipped one, a directory, a run, or a hub id. None for the
            best shipped one that the method can train.
        output: the run directory: `run.json`, `metrics.jsonl`, `checkpoints/` and, at the end, `model/`.
        hold_out: number of documents to hold out for the score (and as many again for `dev="context"`), 0 for none; or
            an existing split. None for a tenth, at least 500, and a fifth of fewer than 1,000. Pairs that share a text
            count as one document.
        seeds: number of runs, with seeds from `seed` on, to summarise.
        resume: continue the run in `output`.
        overwrite: discard the run in `output`.
        progress: receives notices and the progress of the run. By default they are shown, with bars in terminals and
            notebooks.
        quiet: show nothing.
        **changes: the options in the signature, and those of the method and the head. `views` are one or two
            augmenters, such as `["synonym"]` or `["translate:pivot=spa", "translate:pivot=cat"]`: their views become
            the two columns of the method, and are cached with the corpus.

    Returns:
        The `Run`; with `seeds`, the `Seeds`, with runs in `seeds/SEED/` of `output`.

    Raises:
        SelfsentError: a fault of the corpus, the base, the settings or the run directory, in one line.
    """
    path = Path(output or "run")
    with shown(progress, quiet) as display, isolated_rng():
        request = _Request.of(method, base, hold_out, **changes)
        if seeds is None:
            return _train(corpus, request, path, resume, overwrite, display)
        plan, _ = request.checked()
        RunDirectory(path).check(resume, overwrite, plan.encoders)
        text = read(corpus, None if plan.reads_documents else False, display.notice)
        alone = replace(request, run_config=replace(request.run_config, clock=None))

        def train_one(seed: int, directory: Path, again: bool) -> dict[str, float]:
            seeded = replace(alone, changes={**request.changes, "seed": seed})
            return _train(text, seeded, directory, again, False, display).figures

        return over_seeds(
            seeds,
            path,
            train_one,
            first=request.changes.get("seed", 0),
            resume=resume,
            overwrite=overwrite,
            check=lambda: _without_seed(text, alone),
            read=[] if request.base is None else [resolve(request.base)],
            progress=display,
        )


def _without_seed(corpus: Corpus, request: _Request) -> dict[str, Any]:
    """The configuration common to runs with different seeds, as JSON."""
    corpus, plan, hold_out = _prepared(corpus, request, Progress(), make_views=False)
    wanted = config_of(plan, corpus, hold_out.train)
    wanted["settings"].pop("seed")
    return {**wanted, "views": ",".join(request.run_config.views) or None}


def _prepared(
    corpus: Corpus, request: _Request, progress: Progress, make_views: bool = True, whiten: float | None = None
) -> tuple[Corpus, Plan, HoldOut]:
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
    if augmenters and make_views:
        if rank() == 0:
            advance = partial(progress.count, "making views", total=len(corpus))
            with_views(corpus, augmenters, plan.settings.seed, advance, notice)
        wait()
        corpus = with_views(corpus, augmenters, plan.settings.seed)
    there = make_views or not augmenters  # whether the columns to read exist
    plan = plan.on(corpus) if there else plan
    if request.changes.get("whiten") is None and whiten is not None:
        plan = replace(plan, whiten=whiten)
    hold_out = request.hold_out
    if not isinstance(hold_out, HoldOut):
        labelled = plan.options.labels() is not None
        warn = (lambda line: None if dev else notice(_LABELLED)) if labelled else notice
        pairs = plan.contrasts_pairs and not augmenters  # views of one text are not a search pair
        hold_out = HoldOut.of(corpus, dev in LABEL_FREE, warn, plan.joins, hold_out, dev == "judges", pairs)
    hold_out = replace(hold_out, train=rows_with_neighbours(plan, corpus, hold_out.train, notice))
    hold_out = hold_out.thinned(request.run_config.sentences)
    if there:
        plan.known(corpus, hold_out.train)  # reject bad labels before anything slow
    return corpus, plan, hold_out


def _train(source: Source, request: _Request, output: Path, resume: bool, overwrite: bool, progress: Progress) -> Run:
    clock = request.run_config.clock or Clock(time.perf_counter())
    join()
    notice = progress.notice
    plan, _ = request.checked()
    directory = RunDirectory(output)
    directory.check(resume, overwrite, plan.encoders)
    if resume and not directory.resumed:
        notice(f"there is no run in {output} to go on with: beginning at the first step")
    text = read(source, None if plan.reads_documents else False, notice)
    before = directory.record.get("asked", {}).get("whiten")
    old = float(before) if isinstance(before, bool) else None  # a run from before whitening had strengths
    corpus, plan, hold_out = _prepared(text, request, progress, whiten=old)
    for line in _notices(plan, corpus, hold_out, request):
        notice(line)
    exam = _exam_for_warranty(corpus, hold_out, request.run_config)
    description = config_of(plan, corpus, hold_out.train)
    # Older runs did not record their rows.
    directory.match(description, {**plan.defaults, "corpus": description["corpus"]})
    if directory.status == "finished":
        notice(f"{output} is finished already")
        return by_first(lambda: load_run(output))
    if directory.status != "trained":
        if plan.settings.budget and not directory.record.get("split"):
            clock = _with_scores(clock, plan, corpus, hold_out)
        scorer = dev_scorer(request.run_config.dev, corpus, hold_out, request.run_config.data)
        fit(corpus, hold_out.train, plan, directory, replace(request.run_config, clock=clock, scorer=scorer), progress)
        gc.collect()  # reference cycles between loop and batches keep encoders and mapped files alive
    if rank() == 0:
        if exam is not None:
            most, data = request.run_config.warranty or 0.0, request.run_config.data
            keep_warranted(directory, plan.base, exam, most, data, notice)
        _finish(corpus, hold_out, plan.base, directory, notice, request.run_config.map_points)
    return by_first(lambda: load_run(output))


def _finish(corpus: Corpus, hold_out: HoldOut, base: str, directory: RunDirectory, notice: Notice, points: int) -> None:
    """Score the base and the trained model on the held-out documents, and write scores, page and card.

    Args:
        corpus: the text.
        hold_out: its parts.
        base: the encoder before training.
        directory: of the run.
        notice: receives the reason of a missing score.
        points: sentences on the map, held-out ones if available; 0 for no map.
    """
    scores, neighbours, drawn = dict[str, Any](), list[dict[str, Any]](), None
    joins = is_cross_encoder(directory.model)
    mapped = points > 0 and not joins
    if hold_out.test is not None or mapped:
        after = scored(load_encoder(directory.model), "trained")
    if hold_out.test is not None:
        try:
            before = score_base(corpus, hold_out, base)
            scores = {name: paired(each, after) for name, each in before.items()}
            first = next(iter(before.values()))
            neighbours = neighbours_of(*first.texts, first.sides, after.sides(*first.texts))
        except DataError as error:  # only near-duplicates: a model without a score
            notice(f"no label-free score: {error}")
    context, search = scores.get("context"), scores.get("search")
    write_json(directory.path / "scores.json", {"scores": context, "search": search, "neighbours": neighbours})
    if mapped:
        if line := slowness(min(points, len(corpus))):
            notice(line)
        drawn = map_of_run(corpus, hold_out, {"before": scored(load_encoder(base), "base"), "after": after}, points)
    page = run_page(directory.record, context, neighbours, directory.metrics(), corpus_map=drawn, search=search)
    write_text(directory.path / "report.html", page)
    about: dict[str, Any] = {
        "alone": not needs_selfsent(directory.model),
        "joins": joins,
        "licence": licence_of(resolve(base)),
    }
    card = model_card(directory.record, corpus.report.summary("; "), context, search=search, **about)
    write_text(directory.model / "README.md", card)
    directory.sweep()
    remove(directory.path / "best")  # left by a kill right after training
    directory.update(status="finished")


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
            score_base(corpus, hold_out, plan.base)
    wait()
    return replace(clock, after=clock.after + time.perf_counter() - since)


def _notices(plan: Plan, corpus: Corpus, hold_out: HoldOut, request: _Request) -> Iterator[str]:
    """Notices before a run, line by line."""
    method, dev, given = plan.method.name, request.run_config.dev, isinstance(request.hold_out, HoldOut)
    if plan.columns < len(corpus.view_columns):
        read, left = corpus.view_columns[: plan.columns], corpus.view_columns[plan.columns :]
        yield f"{method} reads {', '.join(read)} and not {', '.join(left)}"
    yield plan.summary()
    if plan.reads_documents and is_strong(plan.base):
        yield (
            "the base is a strong sentence encoder: rank with words, as search does; training adds little here, so look"
            " at the scores before you use the result"
        )
    if flags := plan.for_encoders:
        yield f"the base is a sentence encoder already, so training keeps what it knows: {flags}"
    if hold_out.test is not None and (own := plan.other_pooling):
        yield (
            f"the untrained base pools by {own}, and is scored so: a part of the difference comes from the pooling"
            f" (pooling={own} trains with it, too)"
        )
    if plan.reads_documents and (together := corpus.report.together):
        first, *_, last = together
        yield (
            f"{' and '.join(together)} become one document, so training reads each {first} beside its own {last}: a"
            f" search test that asks for this {last} would be a test on training data. For such a test train on one"
            f" column (text_column={last}), or on pairs kept apart (text_columns={first},{last})"
        )
    if natural := corpus.report.natural:
        first, second = natural
        yield (
            f"the table has {first} beside {second}, so that a {first} could learn to find its {second}: give"
            f" text_columns={first},{second}"
        )
    if dev in TASKS and not dev.endswith("-dev"):
        yield f"{dev} is a test set: it cannot test a model that was chosen by it"
    if hold_out.test is not None and not given:
        yield hold_out.summary(corpus)
    if method == "tsdae" and (
        labelled := [name for name in trained_by(resolve(plan.base)) if name in METHODS and METHODS[name].supervised]
    ):
        yield (
            f"this base was trained by {labelled[0]} before: tsdae after labels made models worse"
            " (sentence-transformers issues 962 and 1131); train tsdae first and with labels afterwards"
        )
    if plan.ignored:
        ignored = ", ".join(f"`{name}`" for name in plan.ignored)
        yield f"{method} takes no steps: {ignored} {'is' if len(plan.ignored) == 1 else 'are'} ignored"


Model = Encoder | str | PathLike[str]
"""An encoder, or the name of one: a run, a directory, `bundled`, a hub id."""


def encode(model: Model, texts: Sequence[str], *, side: Side | None = None) -> NDArray[np.float32]:
    """The vectors of texts, (n, d); zeros for texts without tokens.

    Args:
        model: the encoder.
        texts: (n,) sentences.
        side: `query` or `document`, for models with prompts.

    Raises:
        SelfsentError: no such encoder, or one string instead of a list.
    """
    return encode_texts(open_encoder(model), texts, side=side)


def pairs(
    model: Model,
    corpus: Corpus,
    top: int = 100,
    threshold: float = -1.0,
    word_weight: float = PAIR_WEIGHT,
    language: str | None = None,
) -> list[Pair]:
    """The most similar pairs of distinct texts, by the cosine of their vectors and their common words.

    Args:
        model: the encoder.
        corpus: the texts.
        top: maximum number of pairs.
        threshold: minimum score, from -1 to 1.
        word_weight: of words relative to the cosine; 0 for the cosine alone.
        language: of the stemmer; by default that of most texts.

    Raises:
        SelfsentError: no such encoder or language, or an invalid weight.
    """
    check_weight(word_weight)
    vectors = encode_corpus(model, corpus)
    found = most_similar_pairs(vectors, *candidates_for(top, threshold, word_weight))
    return by_words(found, corpus, top, threshold, word_weight, language) if word_weight else found


def mine(
    model: str | PathLike[str],
    corpus: Corpus,
    negatives: int = 3,
    by: MinedBy = "both",
    at_most: float = 0.95,
    advance: Callable[[int], None] = lambda count: None,
) -> Candidates:
    """Hard negatives of pairs: second texts that rank high for a first text, and are not its partner.

    They are kept with the corpus, so that they are mined once.

    Args:
        model: a name of an encoder.
        corpus: pairs.
        negatives: of each pair.
        by: what ranks. base: the cosine; words: BM25; both: as `search` ranks.
        at_most: largest score of a negative, as a share of the partner's (Moreira et al. 2024, arXiv:2407.15831).
        advance: called with the number of rows done since the last call.

    Returns:
        `rows` (pairs, negatives): the row of each negative, whose second text it is, and the row itself where there
        are fewer; `scores` (pairs, 1 + negatives): of the partner and of the negatives, −inf where there are fewer.

    Raises:
        SelfsentError: no such encoder, or no pairs.
    """
    if len(corpus.view_columns) < 2:
        raise SettingsError("negatives are mined for pairs: read the corpus with two text_columns")
    return mine_candidates(corpus, np.arange(len(corpus)), str(model), negatives, by, at_most, advance=advance)


def cluster(model: Model, corpus: Corpus, clusters: int = 20, seed: int = 0) -> Clusters:
    """Groups of texts with similar meaning, largest first, by k-means on their vectors.

    Raises:
        SelfsentError: no such encoder, fewer than two groups, or fewer texts than groups.
    """
    return find_clusters(encode_corpus(model, corpus), clusters, seed)


def export(model: Model, output: str | Path, *, normalize: bool = False, overwrite: bool = False) -> Exported:
    """Write a directory with an encoder as an ONNX graph, from token ids to sentence vectors.

    Raises:
        SelfsentError: missing packages, an encoder that cannot be exported, or an unwritable directory.
    """
    check_export(Path(output), overwrite)
    return export_graph(open_encoder(model), Path(output), normalize)
