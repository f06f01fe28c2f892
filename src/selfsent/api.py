"""The library as its users know it: train, with a hold-out, scores before and after, and a card."""

from __future__ import annotations

import gc
import time
from collections.abc import Iterable, Iterator, Sequence
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
from selfsent.evaluation.hold_out import HoldOut
from selfsent.evaluation.suites import TASKS
from selfsent.files import remove, write_json, write_text
from selfsent.lexical.scores import PAIR_WEIGHT, check_weight
from selfsent.methods import METHODS, get_method, method_of
from selfsent.methods.method import MethodOptions
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
from selfsent.search import Clusters, Pair, encode_corpus, find_clusters, most_similar_pairs
from selfsent.search.pairs import by_words, candidates_for
from selfsent.search.vectors import open_encoder
from selfsent.settings import Settings, non_defaults, split_arguments, with_signature_of
from selfsent.training.budget import Clock
from selfsent.training.defaults import DEFAULT_METHOD
from selfsent.training.fit import fit, isolated_rng, rows_with_neighbours
from selfsent.training.plan import Plan, config_of, default_plan, doubt, make_plan
from selfsent.training.run_config import ModelOptions, Notice, RunConfig
from selfsent.training.run_directory import RunDirectory

_LABELLED = "rows with labels are not scored at the end: selfsent evaluate does it, with --pairs or --labels"
Source = Corpus | str | Path | Iterable[str]
"""A corpus, or anything else `read_corpus` reads."""


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
        """The request with a method's name in place of its options."""
        if isinstance(method, MethodOptions):
            changes = {**non_defaults(method), **changes}
            method = method_of(method).name
        run_config, changes = split_arguments(RunConfig, changes)
        return cls(method, name_of(base), hold_out, run_config, changes)

    def checked(self) -> tuple[Plan, list[Augmenter]]:
        """The plan as far as it is known before the corpus, and the augmenters of the views.

        Raises:
            SelfsentError: what is wrong with the base or the settings, in one line.
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
    """The plan of `train` with these arguments, as far as it is known before the corpus.

    Raises:
        SelfsentError: what is wrong with the base, the settings or the run directory, in one line.
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
    """Train a sentence encoder, and score it before and after where the corpus has documents or pairs.

    Args:
        corpus: sentences, or pairs and triples with labels or without: a corpus, or anything `read_corpus` reads.
        method: name of a method of `selfsent.METHODS`, or its options, such as `SimCSE(temperature=0.05)`. None for
            what is best for the corpus: `neighbours` where sentences have neighbours in documents (long texts, one to a
            row, are split so that they have).
        base: the encoder to start from: `bundled` or another one that ships with selfsent, a
            directory, a run, or a hub id. None for the best of the first two that the method can train.
        output: the run directory: `run.json`, `metrics.jsonl`, `checkpoints/` and, at the end, `model/`.
        hold_out: how many documents are kept apart to score by (and as many again for `dev="context"`), 0 for none; or
            which, where they are shared out already. None for a tenth, 500 at least, and a fifth of fewer than 1,000.
            Of pairs, those that share a text count as one document.
        seeds: train so many times, with seeds from `seed` on, and summarise.
        resume: go on with the run in `output`.
        overwrite: throw away the run in `output`.
        progress: hears what the user should know and how far the run is. By default this is shown, as bars in a
            terminal and in a notebook.
        quiet: nothing is shown.
        **changes: the options that the signature names, and those of the method and of the head. `views` are one or two
            augmenters, such as `["synonym"]` or `["translate:pivot=spa", "translate:pivot=cat"]`: what they make
            becomes the two columns that the method reads, and stays in the corpus' cache.

    Returns:
        The `Run`; with `seeds` the `Seeds` of several, each in `seeds/SEED/` of `output`.

    Raises:
        SelfsentError: what is wrong with the corpus, the base, the settings or the run directory, in one line.
    """
    place = Path(output or "run")
    with shown(progress, quiet) as told, isolated_rng():
        request = _Request.of(method, base, hold_out, **changes)
        if seeds is None:
            return _train(corpus, request, place, resume, overwrite, told)
        plan, _ = request.checked()
        RunDirectory(place).check(resume, overwrite, plan.encoders)
        text = read(corpus, None if plan.reads_documents else False, told.notice)
        alone = replace(request, run_config=replace(request.run_config, clock=None))

        def train_one(seed: int, directory: Path, again: bool) -> dict[str, float]:
            seeded = replace(alone, changes={**request.changes, "seed": seed})
            return _train(text, seeded, directory, again, False, told).figures

        return over_seeds(
            seeds,
            place,
            train_one,
            first=request.changes.get("seed", 0),
            resume=resume,
            overwrite=overwrite,
            check=lambda: _without_seed(text, alone),
            read=[] if request.base is None else [resolve(request.base)],
            progress=told,
        )


def _without_seed(corpus: Corpus, request: _Request) -> dict[str, Any]:
    """What decides the result of runs that differ in their seed alone, as JSON."""
    corpus, plan, hold_out = _prepared(corpus, request, Progress(), make_views=False)
    wanted = config_of(plan, corpus, hold_out.train)
    wanted["settings"].pop("seed")
    return {**wanted, "views": ",".join(request.run_config.views) or None}


def _prepared(
    corpus: Corpus, request: _Request, progress: Progress, make_views: bool = True, whiten: float | None = None
) -> tuple[Corpus, Plan, HoldOut]:
    """The corpus with its views, the plan on it, and what is trained on and scored.

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
    there = make_views or not augmenters  # the columns that are read
    plan = plan.on(corpus) if there else plan
    if request.changes.get("whiten") is None and whiten is not None:
        plan = replace(plan, whiten=whiten)
    hold_out = request.hold_out
    if not isinstance(hold_out, HoldOut):
        labelled = plan.options.labels() is not None
        tell = (lambda line: None if dev else notice(_LABELLED)) if labelled else notice
        pairs = plan.contrasts_pairs and not augmenters  # views that were made of one text are none to be searched
        hold_out = HoldOut.of(corpus, dev in LABEL_FREE, tell, plan.joins, hold_out, dev == "judges", pairs)
    hold_out = replace(hold_out, train=rows_with_neighbours(plan, corpus, hold_out.train, notice))
    hold_out = hold_out.thinned(request.run_config.sentences)
    if there:
        plan.known(corpus, hold_out.train)  # bad labels are refused before anything slow
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
    old = float(before) if isinstance(before, bool) else None  # a run of before there were strengths
    corpus, plan, hold_out = _prepared(text, request, progress, whiten=old)
    for line in _notices(plan, corpus, hold_out, request):
        notice(line)
    description = config_of(plan, corpus, hold_out.train)
    # Older runs did not tell their rows.
    directory.match(description, {**plan.defaults, "corpus": description["corpus"]})
    if directory.status == "finished":
        notice(f"{output} is finished already")
        return by_first(lambda: load_run(output))
    if directory.status != "trained":
        if plan.settings.budget and not directory.record.get("split"):
            clock = _with_scores(clock, plan, corpus, hold_out)
        scorer = dev_scorer(request.run_config.dev, corpus, hold_out, request.run_config.data)
        fit(corpus, hold_out.train, plan, directory, replace(request.run_config, clock=clock, scorer=scorer), progress)
        gc.collect()  # loop and batches know each other, and would keep encoders and mapped files for long
    if rank() == 0:
        _finish(corpus, hold_out, plan.base, directory, notice, request.run_config.map_points)
    return by_first(lambda: load_run(output))


def _finish(corpus: Corpus, hold_out: HoldOut, base: str, directory: RunDirectory, notice: Notice, points: int) -> None:
    """Score the base and the trained model on the held-out documents, and write scores, page and card.

    Args:
        corpus: the text.
        hold_out: its parts.
        base: the encoder before training.
        directory: of the run.
        notice: receives what could not be scored.
        points: sentences on the map, held-out ones if there are any; 0 for no map.
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
        except DataError as error:  # only near-duplicates: the model is there, but has no score
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
    remove(directory.path / "best")  # left only by a kill between the end of training and its removal
    directory.update(status="finished")


def read(source: Source, split: bool | None, notice: Notice) -> Corpus:
    """The corpus; of one that is given by name a notice says where its texts ask for cleaning."""
    if isinstance(source, Corpus):
        return source
    corpus = read_corpus(source, split_sentences=split)
    if line := corpus.report.advice("read_corpus(..., clean=) with "):
        notice(line)
    return corpus


def _with_scores(clock: Clock, plan: Plan, corpus: Corpus, hold_out: HoldOut) -> Clock:
    """The clock of a run that scores base and result: the base's score is taken now, and the other takes as long."""
    if plan.method.closed_form or hold_out.test is None:
        return clock
    since = time.perf_counter()
    if rank() == 0:
        with suppress(DataError):  # of which the end of the run speaks
            score_base(corpus, hold_out, plan.base)
    wait()
    return replace(clock, after=clock.after + time.perf_counter() - since)


def _notices(plan: Plan, corpus: Corpus, hold_out: HoldOut, request: _Request) -> Iterator[str]:
    """What the user should know before a run begins, line by line."""
    method, dev, given = plan.method.name, request.run_config.dev, isinstance(request.hold_out, HoldOut)
    if plan.columns < len(corpus.view_columns):
        read, left = corpus.view_columns[: plan.columns], corpus.view_columns[plan.columns :]
        yield f"{method} reads {', '.join(read)} and not {', '.join(left)}"
    yield plan.summary()
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
    """The vectors of texts, (n, d): zeros for a text of which the tokenizer leaves nothing.

    Args:
        model: the encoder.
        texts: (n,) sentences.
        side: `query` or `document`, where some models want a prompt in front of each text.

    Raises:
        SelfsentError: there is no such encoder, or one string is given instead of a list.
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
    """The most similar pairs of distinct texts, by the cosine of their vectors and the words that they share.

    Args:
        model: the encoder.
        corpus: the texts.
        top: how many pairs at most.
        threshold: the smallest score that counts, from -1 to 1.
        word_weight: of the words beside the cosine; 0: the cosine alone.
        language: whose stems are compared; by default the one that most texts are in.

    Raises:
        SelfsentError: there is no such encoder or language, or a weight that is none.
    """
    check_weight(word_weight)
    vectors = encode_corpus(model, corpus)
    found = most_similar_pairs(vectors, *candidates_for(top, threshold, word_weight))
    return by_words(found, corpus, top, threshold, word_weight, language) if word_weight else found


def cluster(model: Model, corpus: Corpus, clusters: int = 20, seed: int = 0) -> Clusters:
    """Groups of texts of like meaning, the largest first, by k-means on their vectors.

    Raises:
        SelfsentError: there is no such encoder, fewer than two groups, or fewer texts than groups.
    """
    return find_clusters(encode_corpus(model, corpus), clusters, seed)


def export(model: Model, output: str | Path, *, normalize: bool = False, overwrite: bool = False) -> Exported:
    """Write a directory with an encoder as an ONNX graph, from token ids to sentence vectors.

    Raises:
        SelfsentError: packages are missing, the encoder cannot become a graph, or the directory cannot be written.
    """
    check_export(Path(output), overwrite)
    return export_graph(open_encoder(model), Path(output), normalize)
