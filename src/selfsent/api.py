"""The library as its users know it: train, with a hold-out, scores before and after, and a card."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from selfsent.augment.columns import with_views
from selfsent.augment.maker import Maker
from selfsent.augment.registry import parse_makers
from selfsent.data.corpus import Corpus, read_corpus
from selfsent.display import text_of
from selfsent.distributed import join, rank, wait
from selfsent.errors import RunError, SettingsError
from selfsent.evaluation.datasets.leaks import trained_by
from selfsent.evaluation.hold_out import HoldOut
from selfsent.methods import SUPERVISED, get_method
from selfsent.models.bases import resolve
from selfsent.models.cross_encoder import is_cross_encoder
from selfsent.models.encoder import Pooling
from selfsent.models.heads.loading import load_sentence_transformer
from selfsent.report.scoring import Dev, check_dev, dev_scorer, finish
from selfsent.report.terminal import scores_table
from selfsent.training.default import USUAL, default_plan, doubt
from selfsent.training.fit import fit, in_company
from selfsent.training.identity import asked, read_by
from selfsent.training.plan import Plan, make_plan
from selfsent.training.run_config import Notice, RunConfig
from selfsent.training.run_directory import RunDirectory


@dataclass
class Run:
    """A finished run.

    Args:
        directory: where it lies.
        record: the content of its `run.json`.
        scores: before and after, when the corpus has documents to hold out: base, trained, TF-IDF and the paired
            difference.
        neighbours: for three held-out sentences, the nearest sentences before and after.
    """

    directory: Path
    record: dict[str, Any]
    scores: dict[str, Any] | None = None
    neighbours: list[dict[str, Any]] = field(default_factory=list)

    def __str__(self) -> str:
        """What the terminal shows."""
        where = f"The model is in {self.directory / 'model'}"
        return text_of(scores_table(self.scores), [where]) if self.scores else where

    @property
    def figures(self) -> dict[str, float]:
        """The last loss, the last and the best `dev` score, and the label-free score, as far as there are."""
        logged = RunDirectory(self.directory).metrics()
        found = {"loss": [entry["loss"] for entry in logged if "loss" in entry][-1:]}
        dev = [entry["score"] for entry in logged if "score" in entry]
        found |= {"dev": dev[-1:], "best dev": [max(dev)] if dev else []}
        found["context"] = [self.scores["trained"]["score"]] if self.scores else []
        return {name: float(values[0]) for name, values in found.items() if values}

    @cached_property
    def model(self) -> Any:
        """The trained model, an ordinary SentenceTransformer, or a CrossEncoder."""
        directory = self.directory / "model"
        if is_cross_encoder(directory):
            from sentence_transformers import CrossEncoder as Ordinary

            return Ordinary(str(directory), local_files_only=True)
        return load_sentence_transformer(directory)


def train(
    corpus: Corpus | str | Path | Iterable[str] | Callable[[], Corpus],
    method: str | None = None,
    base: str | Path | None = None,
    output: str | Path = "run",
    *,
    preset: str | None = None,
    pooling: Pooling | None = None,
    dropout: float | None = None,
    whiten: bool = False,
    head: str | None = None,
    views: str | None = None,
    sentences: int | None = None,
    hold_out: HoldOut | None = None,
    resume: bool = False,
    overwrite: bool = False,
    checkpoint_every: int | None = None,
    keep: int = 2,
    dev: Dev | None = None,
    dev_every: int | None = None,
    keep_best: bool = False,
    trackers: Sequence[str] = (),
    data: str | Path | None = None,
    notice: Notice = lambda line: None,
    watch: Callable[[int, int, dict[str, float]], None] = lambda step, steps, figures: None,
    tokenising: Callable[[int, int], None] = lambda count, total: None,
    encoding: Callable[[int, int], None] = lambda count, total: None,
    making: Callable[[int, int], None] = lambda count, total: None,
    **changes: Any,
) -> Run:
    """Train a sentence encoder, and score it before and after where the corpus has documents.

    Args:
        corpus: sentences, or pairs and triples with labels or without: a corpus, anything `read_corpus` reads, or a
            function that is called for it when all else has been checked.
        method: name of a method; see `selfsent.methods.METHODS`. None for what is best for the corpus: `neighbours`
            where sentences have neighbours in documents (long texts, one to a row, are split so that they have).
        base: the encoder to start from: `bundled`, `bundled-raw` or `bundled-raw-static`, which ship with selfsent, a
            directory or a hub id. None for the best of the first two that the method can train.
        output: the run directory: `run.json`, `metrics.jsonl`, `checkpoints/` and, at the end, `model/`.
        preset: `published` for the settings of the paper, or another preset of the method.
        pooling: `cls`, `mean`, `max` or `lasttoken` instead of what the base was saved with, or the method's own where
            it was saved with none.
        dropout: dropout rate of the encoder instead of the base's own.
        whiten: whiten the trained encoder's vectors, by a fit on the training sentences.
        head: `ngram-cnn` or `cnn-pool`, to give the encoder that head; one that the base has already stays without it.
        views: one or two makers between commas, such as `synonym` or `translate:pivot=spa,translate:pivot=cat`: the
            views they make become the two columns that the method reads, and stay in the corpus' cache.
        sentences: train on no more rows than this, drawn at random, the same for every seed.
        hold_out: which documents are trained on and scored, where they are shared out already.
        resume: go on with the run in `output`.
        overwrite: throw away the run in `output`.
        checkpoint_every: steps between checkpoints; by default ten in a run, at least half a minute apart.
        keep: checkpoints kept, at least 2.
        dev: score along the way: `context` (label-free, on documents kept apart for it) or a task such as `stsb-dev`.
        dev_every: steps between these scores; ten in a run by default.
        keep_best: save the model with the best `dev` score instead of the last.
        trackers: also log to these of accelerate's trackers: `tensorboard`, `wandb`, `mlflow` ...
        data: a mirror of the evaluation data sets; without it SELFSENT_DATA.
        notice: called with lines the user should see.
        watch: called after every step with its number, the number of steps, and the latest figures.
        tokenising: called with the number of sentences tokenised since the last call, and the number of them all.
        encoding: called likewise where sentences are encoded once, outside the steps.
        making: called likewise where views are made.
        **changes: fields of `selfsent.settings.Settings`, of the method's options and of the head's.

    Raises:
        SelfsentError: what is wrong with the corpus, the base, the settings or the run directory, in one line.
    """
    join()
    run_config = RunConfig(checkpoint_every, keep, None, dev_every, keep_best, tuple(trackers))
    check_dev(dev, dev_every, keep_best)
    given = {"preset": preset, "pooling": pooling, "dropout": dropout, "whiten": whiten, "head": head}
    plan, makers = _plan(method or USUAL, base, views, **given, **changes)
    directory = RunDirectory(Path(output))
    directory.check(resume, overwrite, read_by(plan))
    if resume and not directory.resumed:
        notice(f"{output} holds no run to go on with: beginning at the first step")
    if not isinstance(corpus, Corpus):
        split = None if plan.reads_documents else False
        corpus = corpus() if callable(corpus) else read_corpus(corpus, split_sentences=split)
    if method is None:
        plan, reason = default_plan(corpus, base, **given, **changes)
        method = plan.method.name
        notice(f"training with {method}, as {reason}; --method chooses another")
        if line := doubt(plan):
            notice(line)
    if makers:
        corpus = _with_views(corpus, makers, plan.settings.seed, making, notice)
    plan = plan.on(corpus)
    shared_out = hold_out is not None
    if hold_out is None:
        hold_out = HoldOut.of(corpus, dev == "context", _without_score(notice, plan, dev, corpus), plan.joins)
    hold_out = replace(hold_out, train=in_company(plan, corpus, hold_out.train, notice)).thinned(sentences)
    plan.known(corpus, hold_out.train)  # bad labels are refused before anything slow
    if plan.columns < len(corpus.view_columns):
        read, left = corpus.view_columns[: plan.columns], corpus.view_columns[plan.columns :]
        notice(f"{method} reads {', '.join(read)} and not {', '.join(left)}")
    notice(plan.summary())
    if flags := plan.for_encoders:
        notice(f"the base is a sentence encoder already, and is to keep what it knows: {flags}")
    if hold_out.test is not None and (own := plan.other_pooling):
        notice(
            f"the base as it is pools by {own}, and is scored so: a part of the difference comes of that"
            f" (--pooling {own} trains it so)"
        )
    if dev not in (None, "context") and not dev.endswith("-dev"):
        notice(f"{dev} is a test set: for a model chosen by it, its score is none")
    if hold_out.test is not None and not shared_out:
        notice(hold_out.summary(corpus))
    if method == "tsdae" and (labelled := [name for name in trained_by(resolve(plan.base)) if name in SUPERVISED]):
        notice(
            f"this base was trained by {labelled[0]} before: tsdae after labels made models worse"
            " (sentence-transformers issues 962 and 1131); train tsdae first and with labels afterwards"
        )
    if plan.ignored:
        flags = ", ".join("--" + name.replace("_", "-") for name in plan.ignored)
        notice(f"{method} takes no steps: {flags} {'is' if len(plan.ignored) == 1 else 'are'} ignored")
    wanted = asked(plan, corpus, hold_out.train)
    directory.match(wanted, {**plan.defaults, "corpus": wanted["corpus"]})  # older runs did not tell their rows
    if directory.status == "finished":
        notice(f"{output} is finished already")
        return load_run(output)
    if directory.status != "trained":
        run_config = replace(run_config, scorer=dev_scorer(dev, corpus, hold_out, data))
        fit(corpus, hold_out.train, plan, directory, run_config, notice, watch, tokenising, encoding)
    if rank() == 0:
        finish(corpus, hold_out, plan.base, directory, notice)
    wait()
    return load_run(output)


def _plan(method: str, base: str | Path | None, views: str | None, **arguments: Any) -> tuple[Plan, list[Maker]]:
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
    plan = {
        name: value for name, value in arguments.items() if name not in ("sentences", "dev", "dev_every", "keep_best")
    }
    return _plan(method or USUAL, base, views, **plan)[0].reads_documents


def check_train(
    corpus: Corpus,
    method: str | None = None,
    base: str | Path | None = None,
    *,
    views: str | None = None,
    sentences: int | None = None,
    dev: Dev | None = None,
    dev_every: int | None = None,
    keep_best: bool = False,
    **arguments: Any,
) -> dict[str, Any]:
    """What `train` would be asked for with these arguments, as JSON; the seed is left out. No views are made.

    Raises:
        SelfsentError: what is wrong with the corpus, the base or the settings, in one line.
    """
    check_dev(dev, dev_every, keep_best)
    plan, makers = _plan(method or USUAL, base, views, **arguments)
    if method is None:
        plan, _ = default_plan(corpus, base, **arguments)
    plan = plan if makers else plan.on(corpus)
    hold_out = HoldOut.of(corpus, dev == "context", lambda line: None, plan.joins)
    hold_out = replace(hold_out, train=in_company(plan, corpus, hold_out.train)).thinned(sentences)
    if not makers:
        plan.known(corpus, hold_out.train)
    wanted = asked(plan, corpus, hold_out.train)
    wanted["settings"].pop("seed")
    return {**wanted, "views": views}


def _with_views(
    corpus: Corpus, makers: list[Maker], seed: int, making: Callable[[int, int], None], notice: Notice
) -> Corpus:
    """The corpus with views as columns, made by the first process alone."""
    if rank() == 0:
        with_views(corpus, makers, seed, lambda count: making(count, len(corpus)), notice)
    wait()
    return with_views(corpus, makers, seed)


def _without_score(notice: Notice, plan: Plan, dev: Dev | None, corpus: Corpus) -> Notice:
    """What is said of a run that no label-free score can be taken of: for rows of several texts, what helps instead."""
    if plan.columns == 1:
        return notice
    why = "no label-free score without documents" if corpus.documents is None else None
    return lambda line: None if dev else notice(f"{why or line}: --dev stsb-dev scores the run by pairs people judged")


def load_run(output: str | Path) -> Run:
    """A finished run, read from its directory.

    Raises:
        RunError: there is no finished run.
    """
    path = Path(output)
    try:
        record = json.loads((path / "run.json").read_text(encoding="utf-8"))
        report = json.loads((path / "scores.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        raise RunError(f"{path} holds no finished run") from None
    return Run(path, record, report["scores"], report["neighbours"])
