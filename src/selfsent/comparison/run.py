"""Comparison of methods from the same base, on the same sentences, in the same time.

No labels are needed. The encoders are scored on development documents, the best one is chosen, and its quality is
measured on test documents, unseen by training and choice.
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
from selfsent.comparison.page import finish
from selfsent.comparison.selection import Selection
from selfsent.comparison.trials import Base, Trial, arguments, default_methods, is_strong, known_bases, planned
from selfsent.data.corpus import Corpus
from selfsent.display import counted
from selfsent.errors import BaseEncoderError, DataError, RunError, SettingsError, TrainingError
from selfsent.evaluation.dev import check_dev, dev_task
from selfsent.evaluation.hold_out import HoldOut
from selfsent.evaluation.results import Score
from selfsent.evaluation.suites import TASKS
from selfsent.evaluation.tasks.context import CONTEXT, ContextTask
from selfsent.files import read_json
from selfsent.models.bases import resolve, weights_digest
from selfsent.models.loading import load_encoder, load_prompted
from selfsent.pipeline import read
from selfsent.progress import Progress, shown
from selfsent.report.run import Run
from selfsent.scorers.lexical import LEXICAL, LexicalScorer
from selfsent.scorers.load_scorer import scorer_of
from selfsent.scorers.scorer import Scorer
from selfsent.settings import format_duration
from selfsent.training.agreement import first_difference
from selfsent.training.budget import Clock
from selfsent.training.run_set import RunSet


def compare(
    corpus: Corpus | str | Path | Iterable[str],
    methods: str | Sequence[str] | Mapping[str, Mapping[str, Any]] | None = None,
    base: str | Path | Sequence[str | Path] = "bundled",
    output: str | Path = "comparison",
    *,
    dev: str | None = None,
    sentences: int | None = None,
    hold_out: int | None = None,
    resume: bool = False,
    overwrite: bool = False,
    data: str | Path | None = None,
    progress: Progress | None = None,
    quiet: bool = False,
    **common: Any,
) -> Selection:
    """Train with several methods, choose the best encoder without labels, and score it on held-out documents.

    Args:
        corpus: sentences with documents, as for `selfsent.train`.
        methods: names of methods, or, by any name, the method with its `preset`, `pooling`, `head`, `dropout`,
            `whiten`, settings and options: `{"simcse": {}, "slower": {"method": "simcse", "learning_rate": 1e-4}}`.
            None for all that need no labels (only the first of neighbours and its relatives), or, on resume, for those
            in `output`.
        base: the encoder to start from, or several: each is scored untrained, and trained by each suitable method, for
            the same time.
        output: the directory: a run in `methods/NAME/` for each, the chosen `model/`, and `comparison.json`.
        dev: the score to choose by: `context` (label-free, on held-out documents, the default), a task such as
            `stsb-dev`, or a file of judged pairs.
        sentences: maximum number of training rows, drawn at random, the same for all.
        hold_out: documents held out to choose by, and as many again to score. None for a tenth each, at least 500; a
            fifth of fewer than 1,000.
        resume: continue in `output`, with its methods and further ones; finished runs are kept.
        overwrite: discard the content of `output`.
        data: a mirror of the evaluation data sets; by default SELFSENT_DATA.
        progress: receives all runs; by default they are shown.
        quiet: show nothing.
        **common: for all methods: fields of `Settings`, `pooling` and `dropout`. `steps`, `epochs` or `budget` limit
            each method, including its scores; by default two minutes.

    Raises:
        SelfsentError: a fault of corpus, base, methods or directory, before anything runs; or all runs failed.
    """
    with shown(progress, quiet) as progress:
        how: dict[str, Any] = {"dev": dev, "resume": resume, "overwrite": overwrite, "data": data}
        comparison = Comparison(methods, base, output, progress, **how, **common)
        comparison.read(read(corpus, None, progress), sentences, hold_out)
        return comparison.run()


class Comparison:
    """A comparison in three steps: plan, read, run. Arguments as for `compare`."""

    def __init__(
        self,
        methods: str | Sequence[str] | Mapping[str, Mapping[str, Any]] | None,
        base: str | Path | Sequence[str | Path],
        output: str | Path,
        progress: Progress,
        *,
        dev: str | None = None,
        resume: bool = False,
        overwrite: bool = False,
        data: str | Path | None = None,
        **common: Any,
    ) -> None:
        """Plan methods and settings, including those of an earlier run of the comparison."""
        check_dev(dev)
        self.dev, self.data, self.progress, self.bases = dev, data, progress, known_bases(base)
        recorded = TrainingError, SettingsError, BaseEncoderError
        read = [each.directory for each in self.bases]
        self.directory = RunSet(output, resume, overwrite, read, progress, *recorded)
        self.before = self.directory.record.get("methods", {})
        self.default, self.common = methods is None and not self.before, common
        self.given = arguments(default_methods(self.bases, self.progress) if self.default else methods or {}, common)
        self.methods = {**self.before, **self.given}
        if not self.methods:
            raise SettingsError("there is no method to compare")
        self.trials = planned(self.methods, self.bases, self.default, self.directory.path, self.progress)

    def read(self, corpus: Corpus, sentences: int | None = None, hold_out: int | None = None) -> None:
        """Split the corpus, and choose trials and development score."""
        notice = self.progress.notice
        if self.default and corpus.documents is None:
            left = dict.fromkeys(trial.method for trial in self.trials if trial.plan.reads_documents)
            self.trials = [trial for trial in self.trials if trial.method not in left]
            notice(f"left out without documents: {', '.join(left)}")
        if self.dev is None and corpus.documents is None:
            raise SettingsError(
                "the corpus has no documents to choose by: give dev=FILE, with a hundred pairs from selfsent label, or"
                " a task such as dev=stsb-dev; or document_column, or split_sentences if a text holds several sentences"
            )
        dev = self.dev or CONTEXT
        parts = HoldOut.of(corpus, dev == CONTEXT, count=hold_out)
        if parts.reason:
            notice(parts.reason)
        self.corpus, self.hold_out, self.dev = corpus, parts.thinned(sentences), dev
        for trial in self.trials:
            trial.plan.on(corpus).known(corpus, self.hold_out.train)
        if self.hold_out.test is not None:
            notice(self.hold_out.summary(corpus))
        if dev in TASKS and not dev.endswith("-dev"):
            notice(f"{dev} is a test set: it cannot test a model that was chosen by it")
        if dev == CONTEXT and (aimed := dict.fromkeys(t.method for t in self.trials if t.plan.reads_documents)):
            fact = f"{', '.join(aimed)}: trained to find the neighbours of a sentence, which is what context scores"
            advice = "see whether dev=stsb-dev, or a task of your own, says the same"
            notice(f"{fact}; {advice}")

    def run(self) -> Selection:
        """Train, choose, and score on test documents."""
        task = dev_task(str(self.dev), self.corpus, self.hold_out, self.data)
        text, count = self.corpus, len(self.hold_out.train)
        source = {"source": text.source, "fingerprint": text.fingerprint, "sentences": count}
        names = ", ".join(each.name for each in self.bases)
        start = {"base": names, "base_digest": " ".join(weights_digest(each.directory) for each in self.bases)}
        self.directory.match({"dev": self.dev, **start, "settings": self.common, "corpus": source})
        self._check_known()
        try:
            words = {shown: task(LexicalScorer(kind)) for kind, shown in LEXICAL.items()}
        except DataError:  # the task needs vectors
            words = {}
        untrained, seconds = self._untrained(task)
        found = Selection(self.directory.path, str(self.dev), untrained, (), baselines=words)
        self.directory.begin(steps=False)
        kept = {name: given for name, given in self.methods.items() if any(t.method == name for t in self.trials)}
        self.directory.update(status="running", methods=kept)
        ahead = [trial for trial in self.trials if not (self.directory.resumed and (trial.path / "model").is_dir())]
        budgets = [float(budget) for trial in ahead if (budget := trial.arguments.get("budget"))]
        if budgets:
            others = f", and {len(ahead) - len(budgets)} without a clock" if len(budgets) < len(ahead) else ""
            runs, whole = counted(len(budgets), "run"), format_duration(sum(budgets))
            self.progress.notice(f"{runs} of {whole} in all, scoring included{others}")
        found = self._train(found, task, seconds)
        chosen, test = found.chosen, self.hold_out.test
        if test is not None and found.candidates:
            found = replace(found, tests=self._tests(found, ContextTask(self.corpus, test)))
        if chosen:
            base = resolve(chosen.run.record["config"]["base"])
            found = replace(found, was_strong=found.dev == CONTEXT and is_strong(base))
        about = {"corpus": f"{self.corpus.source}: {self.corpus.report.summary('; ')}"}
        about |= {"documents": self.hold_out.summary(self.corpus)} if test is not None else {}
        finish(found, self.directory, {**about, "base": names})
        return found

    def _check_known(self) -> None:
        """Reject changed settings of an existing method, unless its run was stopped."""
        given = json.loads(json.dumps(self.given))  # in the format of the record
        for trial in self.trials:
            method, record = trial.method, trial.path / "run.json"
            both = method in given and method in self.before
            difference = first_difference(self.before[method], given[method]) if both else None
            if difference and record.is_file() and not read_json(record).get("stopped"):
                advice = "use the old value, or another name"
                raise RunError(f"the comparison cannot be resumed: {method}: {difference}; {advice}")

    def _untrained(self, task: Callable[[Scorer], Score]) -> tuple[dict[str, Score], dict[Base, float]]:
        """The score of each untrained base, by name, and its time in seconds."""
        found, seconds = {}, {}
        for base in self.bases:
            encoder = scorer_of(load_prompted(base.name), base.untrained)
            since = time.perf_counter()
            found[base.untrained] = task(encoder)
            seconds[base] = time.perf_counter() - since
            self.progress.notice(f"{base.untrained}: {found[base.untrained].score:.2f}")
        return found, seconds

    def _train(self, found: Selection, task: Callable[[Scorer], Score], seconds: Mapping[Base, float]) -> Selection:
        """Train and score in turn; failed runs are reported and skipped."""
        for number, trial in enumerate(self.trials, 1):
            train = partial(self._trained, trial, seconds[trial.base])
            title = f"{number} of {len(self.trials)}: {trial.name}"
            if (run := self.directory.run(trial.name, trial.path, train, title=title)) is None:
                continue
            score = task(scorer_of(load_encoder(trial.path / "model"), trial.name))
            found = found.with_run(trial.name, run, score, trial.base.untrained)
            gain = score.score - found.bases[trial.base.untrained].score
            self.progress.notice(f"{trial.name}: {score.score:.2f}, {gain:+z.2f} against {trial.base.untrained}")
        return replace(found, failures=self.directory.failures)

    def _trained(self, trial: Trial, scoring: float, **how: Any) -> Run:
        """The run of a trial, whose budget includes the seconds of scoring."""
        how |= {"base": trial.base.name, "hold_out": self.hold_out, "data": self.data, **trial.arguments}
        run = api.train(self.corpus, clock=Clock(time.perf_counter(), after=scoring), **how)
        if trial.arguments.get("budget") and run.record.get("steps") == 1:
            raise SettingsError("its budget was time for one step, which teaches nothing: give a longer `budget`")
        return run

    def _tests(self, found: Selection, task: ContextTask) -> dict[str, Score]:
        """Scores on test documents: the chosen encoder, its base, the best base, TF-IDF and BM25."""
        encoders: dict[str, Scorer] = {}
        chosen = found.chosen
        if chosen:
            encoders[chosen.name] = scorer_of(load_encoder(chosen.run.directory / "model"), chosen.name)
        wanted = {found.best_base, chosen.start if chosen else found.best_base}
        bases = {base.untrained: base.name for base in self.bases if base.untrained in wanted}
        encoders |= {shown: scorer_of(load_prompted(name), shown) for shown, name in bases.items()}
        encoders |= {shown: LexicalScorer(kind) for kind, shown in LEXICAL.items()}
        return {name: task.score(encoder) for name, encoder in encoders.items()}
