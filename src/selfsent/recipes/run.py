"""Run a recipe: each stage starts from the previous model, in a separate directory."""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from selfsent import api
from selfsent.data.corpus import Corpus, check_corpus, read_corpus
from selfsent.distributed import rank, wait
from selfsent.errors import BaseEncoderError, CorpusError, DataError, TrainingError
from selfsent.evaluation.datasets.declared import Store
from selfsent.evaluation.dev import check_dev_data
from selfsent.evaluation.results import Result
from selfsent.evaluation.suites import TASKS, evaluate
from selfsent.evaluation.tasks.published import cross_validate
from selfsent.extensions import announced
from selfsent.files import read_json, write_json, write_text
from selfsent.models.bases import resolve
from selfsent.progress import Progress, shown
from selfsent.recipes.needs import needs_of, not_here, where_of
from selfsent.recipes.recipe import Recipe, read_recipe
from selfsent.recipes.results import StageRun, StagesRun
from selfsent.recipes.stage import FOLD, Stage, located, sources_of
from selfsent.report.run import Run, load_run
from selfsent.scorers.lexical import WITH_WORDS, without_words
from selfsent.scorers.load_scorer import check_model
from selfsent.scorers.word_vectors import PREFIXES
from selfsent.training.models import take_over
from selfsent.training.run_set import RunSet

SCORES = "evaluation.json"
"""The file with the scores of a stage, of all folds, or of an encoder."""
STAND_INS = "stand_ins"
"""Key of `run.json`: replacements of the recipe's data."""


def train_stages(
    recipe: str | Path,
    output: str | Path = "run",
    *,
    variant: str | None = None,
    base: str | Path | None = None,
    seed: int | None = None,
    resume: bool = False,
    overwrite: bool = False,
    data: str | Path | None = None,
    progress: Progress | None = None,
    quiet: bool = False,
) -> StagesRun:
    """Train in several stages, each from the previous model with its pooling, head and language-model head.

    Args:
        recipe: its file.
        output: the run directory: `stages/NAME/` is an ordinary run directory for each stage, `model/` the last model.
        variant: one of the variants of the file.
        base: the encoder to start from instead of the file's.
        seed: of every stage instead of the file's.
        resume: continue the run in `output`, in the middle of a stage.
        overwrite: delete the run in `output`.
        data: a mirror of the data sets; SELFSENT_DATA by default.
        progress: receives the progress of all stages; by default it is shown.
        quiet: shows nothing.

    Raises:
        SelfsentError: a fault of the recipe, with file and line, or of the data, before anything is written.
    """
    read = read_recipe(recipe, variant, base, seed)
    with shown(progress, quiet) as progress:
        runs = RunSet(output, resume, overwrite, read_by(read), progress)
        runner, path = Runner(read, data, progress), runs.path
        runner.check()
        config = read.to_json() | ({"read": runner.read} if runner.read else {})
        runs.match({**config, "settings": {"seed": seed}}, free=_free(read, path))
        if read.note:
            progress.notice(" ".join(read.note.split()))
        runs.begin(steps=False)
        if rank() == 0:
            write_text(path / "recipe.yaml", Path(read.path).read_text(encoding="utf-8"))
        done = StagesRun(path, read, list(runner.run(runs)), runner.stand_ins)
    if rank() == 0 and read.folds is None and read.encoder is None:
        take_over(path / "stages" / read.stages[-1].name, path)
    about = {"figures": done.figures, "leaked": done.leaked, STAND_INS: done.stand_ins}
    runs.update(status="finished", **about, stopped=None, stopped_in=None)
    wait()
    return done


def read_by(recipe: Recipe) -> list[str | Path]:
    """Inputs of a recipe, which an overwritten run must not contain."""
    return [recipe.path, *([] if recipe.encoder else [resolve(recipe.base)])]


def check_data(recipe: Recipe, data: str | Path | None = None) -> None:
    """Check the data of every stage before anything runs.

    Raises:
        CorpusError: of a corpus.
        DataError: of the data set of a cross-validation, or of one scored along the way.
    """
    Runner(recipe, data, Progress()).check()


def _free(recipe: Recipe, directory: Path) -> list[str]:
    """Parts of the recipe that may change on resume: stages not yet begun."""
    path, folds = directory / "stages", (directory / "folds").exists()
    begun = {stage.name for stage in recipe.stages if folds or (path / stage.name).exists()}
    return [f"stages {stage.name}" for stage in recipe.stages if stage.name not in begun]


class Runner:
    """Checks the data of a recipe, trains its stages, and scores their models.

    Args:
        recipe: to run.
        data: a mirror of the data sets; SELFSENT_DATA by default.
        progress: receives the progress of all stages.
    """

    def __init__(self, recipe: Recipe, data: str | Path | None, progress: Progress) -> None:
        self.data, self.progress, self.notice = data, progress, progress.notice
        self.store = Store(data)
        self.mirror = data or os.environ.get("SELFSENT_DATA")
        self.stand_ins: list[str] = []
        self.read: dict[str, Any] = {}
        """Stand-ins by stage, and the data of the folds with their fingerprint, for `run.json`."""
        self.recipe = dataclasses.replace(recipe, stages=tuple(map(self._available, recipe.stages)))
        folded = [stage.source == FOLD for stage in recipe.stages]
        self.shared = folded.index(True) if any(folded) else len(folded)

    def _available(self, stage: Stage) -> Stage:
        """The stage, with its stand-in if its corpus is missing."""
        if stage.stand_in is None or not not_here(sources_of(stage.source), self.mirror):
            return stage
        source, reading = stage.stand_in
        self.read[stage.name] = sources_of(source)
        self._stand_in(", ".join(sources_of(source)), sources_of(stage.source))
        return dataclasses.replace(stage, source=source, reading=reading)

    def _stand_in(self, other: str, names: list[str]) -> None:
        missing = not_here(names, self.mirror)[0]
        self.stand_ins.append(f"{other} stands in for {missing.name}: no reproduction")
        self.notice(f"{self.stand_ins[-1]}; {missing.name} is not here ({missing.where})")

    def check(self) -> None:
        """Check the data of every stage."""
        for stage in self.recipe.stages:
            if stage.source != FOLD:
                self._check_corpus(stage)
            if dev := stage.arguments.get("dev"):
                check_dev_data(dev, self.store)
        if folds := self.recipe.folds:
            self.folded = folds.data
            try:
                rows = self.store.load(TASKS[folds.data].datasets[0])
            except DataError:
                if folds.stand_in is None:
                    raise
                self.folded, rows = folds.stand_in, self.store.load(TASKS[folds.stand_in].datasets[0])
                self._stand_in(folds.stand_in, [folds.data])
            self.read[FOLD] = [self.folded, rows.fingerprint]
        if self.recipe.encoder:
            self._check_encoder()

    def _check_encoder(self) -> None:
        try:
            check_model(self._encoder())
        except (BaseEncoderError, CorpusError, DataError) as error:
            need = needs_of(self.recipe, self.mirror)[0]
            if need.here or not (where := where_of(need.name)):
                raise
            raise type(error)(f"{error}; {where}") from None

    def _check_corpus(self, stage: Stage) -> None:
        source, reading = self._reading(stage)
        missing = [need for need in not_here(sources_of(stage.source), self.mirror) if need.where]
        try:
            check_corpus(source, **reading)
            if nowhere := [need.name for need in missing if not need.hub]:
                # It is named like a data set of the hub, which would be looked for when the stage begins.
                raise CorpusError(f"{nowhere[0]}: no such file")
            if stage.plan(self.recipe.base).reads_documents and read_corpus(source, **reading).documents is None:
                raise CorpusError(
                    f"stage {stage.name}: {stage.method.name} reads the neighbours of a sentence in its document, and"
                    " the corpus has no documents: give document_column, or split_sentences: true if a text holds"
                    " several sentences; in plain text, an empty line ends a document"
                )
        except CorpusError as error:
            if not missing:
                raise
            raise CorpusError(f"{error}; {missing[0].where}") from None

    def _encoder(self) -> str:
        """The untrained encoder to score; its file may be in the mirror."""
        name = str(self.recipe.encoder)
        alone = without_words(name)
        kind, _, file = (alone or name).partition(":")
        if kind not in PREFIXES and kind not in announced("scorers"):
            return name
        return f"{kind}:{located(file, self.mirror)}{WITH_WORDS if alone else ''}"

    def run(self, runs: RunSet) -> Iterator[StageRun]:
        """Run every stage; from the first on folds on, once per fold."""
        path, base = runs.path, self.recipe.base
        if self.recipe.encoder:
            yield StageRun("encoder", None, self._score(self._encoder(), self.recipe.tasks, path, "the encoder"))
            return
        for stage in self.recipe.stages[: self.shared]:
            yield self._stage(stage, base, path, runs)
            base = str(path / "stages" / stage.name / "model")
        if self.recipe.folds:
            yield self._folds(base, runs)

    def _stage(self, stage: Stage, base: str, path: Path, runs: RunSet, fold: bool = False) -> StageRun:
        """One stage, from a base; a finished one is not run again."""
        run_path = path / "stages" / stage.name
        what = f"{path.name}, stage {stage.name}" if fold else f"stage {stage.name}"
        pairs = path / "train.jsonl" if fold else None
        try:
            run = runs.run(what, run_path, partial(self._trained, stage, base, pairs), load_run)
        except TrainingError as error:
            if not read_json(run_path / "run.json").get("stopped"):
                raise
            # Finished folds used the old learning rate, and all must use the same.
            runs.update(stopped=error.reason, stopped_in=None if fold else stage.name)
            onwards = "start again with `overwrite`" if fold else "go on with `resume`"
            advice = f"give stage {stage.name} of {self.recipe.path} a lower learning_rate, and {onwards}"
            raise TrainingError(error.reason, advice) from None
        return StageRun(stage.name, run, self._score(str(run_path / "model"), stage.tasks, run_path, what))

    def _trained(self, stage: Stage, base: str, pairs: Path | None, **how: Any) -> Run:
        how |= {**stage.defaults, **stage.arguments, "data": self.data}
        return api.train(self._corpus(stage, pairs), stage.method.name, base, **how)

    def _folds(self, base: str, runs: RunSet) -> StageRun:
        """Train and test on every fold; the score over all of them."""
        assert self.recipe.folds is not None
        by, numbers, path = self.recipe.folds.by, iter(range(1, 1000)), runs.path

        def trainer(pairs: list[tuple[str, str]], scores: list[float]) -> str:
            fold, start = path / "folds" / f"{next(numbers):02d}", base
            lines = (
                json.dumps({"sentence1": first, "sentence2": second, "score": score}, ensure_ascii=False) + "\n"
                for (first, second), score in zip(pairs, scores, strict=True)
            )
            if rank() == 0 and not (fold / "train.jsonl").is_file():
                write_text(fold / "train.jsonl", "".join(lines))
            wait()
            for stage in self.recipe.stages[self.shared :]:
                self._stage(stage, start, fold, runs, fold=True)
                start = str(fold / "stages" / stage.name / "model")
            return start

        score = cross_validate(self.store.load(TASKS[self.folded].datasets[0]), trainer, by)  # type: ignore[arg-type]  # checked when read
        result = Result(str(path), {score.name: score})
        return StageRun(by, None, self._keep(result.to_json(), path))

    def _score(self, model: str, tasks: Mapping[str, Any], path: Path, what: str) -> dict[str, Any] | None:
        """The scores of a model, from their file unless a task was absent; None without tasks or data."""
        if not tasks:
            return None
        if (known := read_json(path / SCORES)) and not known.get("absent"):
            return self._keep(known, None)
        try:
            result = evaluate(model, data=self.store, **tasks)
        except DataError as error:
            self.notice(f"{what} is not scored: {error}")
            return None
        for task, reason in result.absent.items():
            self.notice(f"{task} is absent: {'; '.join(filter(None, (reason, where_of(task))))}")
        return self._keep(result.to_json(), path)

    def _keep(self, found: dict[str, Any], path: Path | None) -> dict[str, Any]:
        """Report the warnings of scores, and write the scores to their file."""
        lines = (line for score in found.get("scores", {}).values() for line in score.get("warnings", ()))
        for line in dict.fromkeys(lines):
            self.notice(f"warning: {line}")
        if path is not None and rank() == 0:
            write_json(path / SCORES, found)
        return found

    def _corpus(self, stage: Stage, pairs: Path | None) -> Corpus:
        source, reading = self._reading(stage)
        if pairs is not None and stage.source == FOLD:
            source = pairs
            reading = {"text_columns": ("sentence1", "sentence2"), "score_column": "score", **reading}
        corpus = read_corpus(source, **reading)
        self.notice(corpus.report.summary())
        if line := corpus.report.advice("clean: "):
            self.notice(line)
        return corpus

    def _reading(self, stage: Stage) -> tuple[Any, dict[str, Any]]:
        """Source and options for `read_corpus`; excluded corpora may be in the mirror."""
        excluded = stage.reading.get("exclude")
        reading = {**stage.reading, **({"exclude": located(excluded, self.mirror)} if excluded else {})}
        return located(stage.source, self.mirror), reading
