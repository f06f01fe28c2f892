"""Which method makes the best encoder of a text: each from the same base, on the same sentences, in the same time.

Nothing here needs labels. The encoders are judged on documents that none of them was trained on, the best one is
chosen, and what it is worth is measured on documents that neither training nor choice has seen.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from selfsent import api
from selfsent.comparison.bases import Base, is_strong, known_bases
from selfsent.comparison.candidate import Candidate
from selfsent.comparison.doubts import Opinion, opinions
from selfsent.comparison.ending import finish
from selfsent.comparison.result import Selection
from selfsent.comparison.times import ahead_of
from selfsent.comparison.turns import Job, Turn, arguments, jobs, turns, usual_methods
from selfsent.data.corpus import Corpus
from selfsent.distributed import join
from selfsent.errors import BaseEncoderError, DataError, RunError, SettingsError, TrainingError
from selfsent.evaluation.encoder import Encoder as Scored
from selfsent.evaluation.encoders import as_encoder
from selfsent.evaluation.hold_out import HoldOut
from selfsent.evaluation.lexical import LEXICAL, LexicalEncoder
from selfsent.evaluation.results import Score
from selfsent.evaluation.suites import TASKS
from selfsent.evaluation.tasks.context import ContextTask
from selfsent.files import read_json
from selfsent.models.bases import resolve
from selfsent.models.loading import load_encoder
from selfsent.progress import Progress, shown
from selfsent.report.run import Run
from selfsent.report.scoring import LABEL_FREE, Dev, check_dev, dev_task, scored
from selfsent.training.budget import Clock
from selfsent.training.run_config import Notice
from selfsent.training.run_directory import RunDirectory, first_difference


def compare(
    corpus: Corpus | str | Path | Iterable[str] | Callable[[], Corpus],
    methods: str | Sequence[str] | Mapping[str, Mapping[str, Any]] | None = None,
    base: str | Path | Sequence[str | Path] = "bundled",
    output: str | Path = "comparison",
    *,
    dev: Dev | None = None,
    sentences: int | None = None,
    hold_out: int | None = None,
    seeds: int | None = None,
    resume: bool = False,
    overwrite: bool = False,
    data: str | Path | None = None,
    progress: Progress | None = None,
    quiet: bool = False,
    **common: Any,
) -> Selection:
    """Train with several methods, choose the best encoder without labels, and score it on documents kept apart.

    Args:
        corpus: sentences with documents, as `selfsent.train` takes them.
        methods: names of methods, or by a name of one's own the method with its `preset`, `pooling`, `head`, `dropout`,
            `whiten`, settings and options: `{"simcse": {}, "slower": {"method": "simcse", "learning_rate": 1e-4}}`.
            None for all that need no labels (of neighbours and its relatives the first alone), or, going on, for those
            that are there.
        base: the encoder that all start from, or several: each is scored as it is, and trained by each method that can
            train it, for the same time. Of several, one may also be anything else `selfsent.evaluate` takes: it is
            scored, and not trained.
        output: the directory: an ordinary run in `methods/NAME/` for each, those with other seeds in its `seeds/SEED/`,
            the chosen `model/`, and `comparison.json`.
        dev: what to choose by: `context` (label-free, on documents kept apart for it), `judges` (the geometric mean of
            several label-free scores), a task such as `stsb-dev`, or a file of judged pairs. None for `context` where
            there are documents, and else `judges`.
        sentences: train on no more rows than this, drawn at random, the same for all.
        hold_out: documents kept apart to choose by, and as many again to score. None for a tenth each, 500 at least; of
            fewer than 1,000 a fifth.
        seeds: runs of each method, from its seed upwards; one without it. A method's score is the mean of its runs, and
            intervals and p-values hold over documents and seeds; of the chosen method the best run is the model.
        resume: go on in `output`, with the methods and seeds that are there and others; what is done is not trained
            again.
        overwrite: throw away what is in `output`.
        data: a mirror of the evaluation data sets; without it SELFSENT_DATA.
        progress: hears all runs; by default they are shown.
        quiet: nothing is shown.
        **common: of all methods: fields of `Settings`, `pooling` and `dropout`. `steps`, `epochs` or `budget` say how
            long each takes, its scores included; two minutes without them.

    Raises:
        SelfsentError: what is wrong with corpus, base, methods or directory, before anything runs; or all failed.
    """
    with shown(progress, quiet) as told:
        rows = (sentences, hold_out)
        return _compare(corpus, methods, base, output, dev, rows, seeds, resume, overwrite, data, told, common)


def _compare(
    corpus: Corpus | str | Path | Iterable[str] | Callable[[], Corpus],
    methods: str | Sequence[str] | Mapping[str, Mapping[str, Any]] | None,
    base: str | Path | Sequence[str | Path],
    output: str | Path,
    dev: Dev | None,
    rows: tuple[int | None, int | None],
    seeds: int | None,
    resume: bool,
    overwrite: bool,
    data: str | Path | None,
    progress: Progress,
    common: Mapping[str, Any],
) -> Selection:
    started = time.perf_counter()
    join()
    notice = progress.notice
    check_dev(dev)
    if seeds is not None and seeds < 1:
        raise SettingsError(f"--seeds is {seeds}; it must be at least 1")
    bases = known_bases(base, notice)
    directory = RunDirectory(Path(output))
    directory.check(resume, overwrite, [resolve(each.name) for each in bases if each.trainable])
    # Methods and seeds of an earlier run of this comparison stay in it.
    before = directory.record.get("methods", {})
    seeds = max(seeds or 1, directory.record.get("seeds", 1))
    usual = methods is None and not before
    given = arguments(usual_methods(bases, notice) if usual else methods or {}, common)
    if not (asked := {**before, **given}):
        raise SettingsError("there is no method to compare")
    todo = jobs(asked, bases, usual, notice)
    corpus, hold_out, todo, dev = _read(corpus, todo, usual, dev, rows, notice)
    all_turns = turns(todo, asked, directory.path, seeds)
    judge = dev_task(dev, corpus, hold_out, data)
    source = {"source": corpus.source, "fingerprint": corpus.fingerprint, "sentences": len(hold_out.train)}
    start = {"base": ", ".join(each.name for each in bases), "base_digest": " ".join(each.digest for each in bases)}
    directory.match({"dev": dev, **start, "settings": common, "corpus": source})
    _check_known(before, given, all_turns)
    words = _words(judge)
    untrained, judged = _untrained(bases, judge, notice)
    found = Selection(directory.path, dev, untrained, (), seeds=seeds, baselines=words)
    directory.begin(steps=False)
    kept = {name: asked[name] for name in asked if any(job.method == name for job in todo)}
    directory.update(status="running", methods=kept, seeds=seeds)
    ahead = [turn for turn in all_turns if not (directory.resumed and (turn.place / "model").is_dir())]
    for line in ahead_of(ahead, judged, hold_out, time.perf_counter() - started):
        notice(line)
    # No map for each of many: the page shows none.
    train = partial(api.train, corpus, hold_out=hold_out, data=data, map_points=0)
    found = _in_turn(found, all_turns, directory.resumed, train, judge, judged, progress)
    if hold_out.test is not None and found.candidates:
        found = replace(found, tests=_tests(found, bases, ContextTask(corpus, hold_out.test)))
    if found.chosen:
        was_strong = found.dev in LABEL_FREE and is_strong(resolve(found.chosen.run.record["asked"]["base"]))
        found = replace(found, judges=_opinions(found.chosen, corpus, hold_out), was_strong=was_strong)
    about = {"corpus": f"{corpus.source}: {corpus.report.summary('; ')}"}
    if hold_out.test is not None:
        about["documents"] = hold_out.summary(corpus)
    finish(found, directory, {**about, "base": start["base"]})
    return found


def _read(
    corpus: Corpus | str | Path | Iterable[str] | Callable[[], Corpus],
    todo: list[Job],
    usual: bool,
    dev: Dev | None,
    rows: tuple[int | None, int | None],
    notice: Notice,
) -> tuple[Corpus, HoldOut, list[Job], Dev]:
    """The corpus, which part of it is for what, the jobs that can read it, and what is chosen by."""
    if not isinstance(corpus, Corpus):
        corpus = corpus() if callable(corpus) else api.read(corpus, None, notice)
    if usual and corpus.documents is None:  # what needs documents was not asked for by name
        left = dict.fromkeys(job.method for job in todo if job.plan.reads_documents)
        todo = [job for job in todo if job.method not in left]
        notice(f"left out without documents: {', '.join(left)}")
    if dev is None:
        dev = "judges" if corpus.documents is None else "context"
        if dev == "judges":
            notice(
                "the corpus has no documents: chosen by scores of single sentences, which are often wrong; a hundred"
                " pairs from selfsent label choose better"
            )
    sentences, held = rows
    hold_out = HoldOut.of(corpus, dev in LABEL_FREE, notice, count=held, single=dev == "judges").thinned(sentences)
    for job in todo:
        job.plan.on(corpus).known(corpus, hold_out.train)
    if hold_out.test is not None:
        notice(hold_out.summary(corpus))
    if dev in TASKS and not dev.endswith("-dev"):
        notice(f"{dev} is a test set: it cannot test a model that was chosen by it")
    if dev == "context" and (aiming := dict.fromkeys(job.method for job in todo if job.plan.reads_documents)):
        notice(
            f"{', '.join(aiming)}: trained to find what stands beside a sentence, which is what context asks;"
            " see whether --dev stsb-dev, or a task of your own, says the same"
        )
    return corpus, hold_out, todo, dev


def _untrained(
    bases: Sequence[Base], judge: Callable[[Scored], Score], notice: Notice
) -> tuple[dict[str, Score], dict[str, float]]:
    """The score of each base as it is, by what that is called, and the seconds it took, by the base's name."""
    found, seconds = {}, {}
    for base in bases:
        encoder = as_encoder(base.name)
        since = time.perf_counter()
        found[base.untrained] = judge(encoder)
        seconds[base.name] = time.perf_counter() - since
        notice(f"{base.untrained}: {found[base.untrained].score:.2f}")
    return found, seconds


def _words(judge: Callable[[Scored], Score]) -> dict[str, Score]:
    """The scores of TF-IDF and BM25, where the task can be done without vectors."""
    try:
        return {shown: judge(LexicalEncoder(kind)) for kind, shown in LEXICAL.items()}
    except DataError:
        return {}


def _tests(found: Selection, bases: Sequence[Base], task: ContextTask) -> dict[str, Score]:
    """Scores on documents that nothing was trained on or chosen by: the best encoder, bases beside it, and words."""
    encoders: dict[str, Scored] = {}
    if found.chosen:
        encoders[found.chosen.name] = scored(load_encoder(found.chosen.run.directory / "model"), found.chosen.name)
    wanted = {found.best_base, found.chosen.start if found.chosen else found.best_base}
    encoders |= {base.untrained: as_encoder(base.name) for base in bases if base.untrained in wanted}
    encoders |= {shown: LexicalEncoder(kind) for kind, shown in LEXICAL.items()}
    return {name: task.score(encoder) for name, encoder in encoders.items()}


def _opinions(chosen: Candidate, corpus: Corpus, hold_out: HoldOut) -> dict[str, Opinion]:
    """What every judge says of the chosen encoder beside its base."""
    asked = chosen.run.record["asked"]
    encoders = (
        scored(load_encoder(resolve(place)), chosen.name) for place in (chosen.run.directory / "model", asked["base"])
    )
    return opinions(corpus, hold_out, asked["method"], *encoders)


def _check_known(
    before: Mapping[str, Mapping[str, Any]], given: Mapping[str, Mapping[str, Any]], turns: Sequence[Turn]
) -> None:
    """Refuse other settings for methods that are there, but for one whose run went wrong.

    Raises:
        RunError: naming the first difference.
    """
    asked = json.loads(json.dumps(given))  # as the old ones were written
    for turn in turns:
        method = turn.job.method
        both = method in asked and method in before
        difference = first_difference(before[method], asked[method]) if both else None
        record = turn.place / "run.json"
        if difference and record.is_file() and not read_json(record).get("stopped"):
            raise RunError(
                f"the comparison cannot be resumed: {method}: {difference}; use the old value, or another name"
            )


def _in_turn(
    found: Selection,
    turns: Sequence[Turn],
    resumed: bool,
    train: Callable[..., Run],
    judge: Callable[[Scored], Score],
    judged: Mapping[str, float],
    progress: Progress,
) -> Selection:
    """Train and judge, one after the other; a run that goes wrong is named, and the next one begins."""
    hopeless = set[str]()
    for number, turn in enumerate(turns, 1):
        job = turn.job
        if job.name in hopeless:
            continue
        again = resumed and (turn.place / "run.json").is_file()
        done = again and read_json(turn.place / "run.json").get("status") == "finished"
        told = Progress() if done else progress
        told.notice(f"{number} of {len(turns)}: {turn.label}")
        clock = Clock(time.perf_counter(), after=judged[job.base.name])
        try:
            run = train(base=job.base.name, output=turn.place, resume=again, progress=told, clock=clock, **turn.given)
        except (TrainingError, SettingsError, BaseEncoderError) as error:  # of the others nothing is wrong
            who, reason = turn.label, getattr(error, "reason", str(error))
            if not isinstance(error, TrainingError):  # nor would another seed do
                who = job.name
                hopeless.add(who)
            found = replace(found, failures={**found.failures, who: reason})
            progress.notice(f"{who} failed: {reason}")
            continue
        score = judge(scored(load_encoder(turn.place / "model"), turn.label))
        found = found.beside(job.name, run, score, job.base.untrained)
        gain = score.score - found.bases[job.base.untrained].score
        progress.notice(f"{turn.label}: {score.score:.2f}, {gain:+z.2f} against {job.base.untrained}")
    return found
