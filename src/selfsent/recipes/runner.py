"""The stages of a recipe, one after the other or fold by fold, and what they read and score."""

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
from selfsent.errors import CorpusError, DataError, TrainingError
from selfsent.evaluation.datasets.declared import Store
from selfsent.evaluation.encoders import check_model
from selfsent.evaluation.hybrid import WITH_WORDS, without_words
from selfsent.evaluation.results import AVERAGE, Result
from selfsent.evaluation.suites import evaluate
from selfsent.evaluation.tasks.arguments import ARGUMENTS, cross_validate
from selfsent.files import read_json, write_json, write_text
from selfsent.progress import Progress
from selfsent.recipes.needs import WORD_FILES, Need, not_here, where_of
from selfsent.recipes.parts import placed
from selfsent.recipes.recipe import Recipe
from selfsent.recipes.stage import FOLD, Stage, sources_of
from selfsent.report.run import Run, load_run
from selfsent.report.scoring import check_dev_data

SCORES = "evaluation.json"
"""The file with the scores of a stage, or of folds or an encoder."""
_FOLD_COLUMNS = {"text_columns": ("sentence1", "sentence2"), "score_column": "score"}


class StageStoppedError(TrainingError):
    """A stage that went wrong and was stopped; `stage` is the one that may go on at a lower rate, None within folds."""

    def __init__(self, reason: str, stage: str, recipe: str, folds: bool) -> None:
        # Folds that are done have learned at the old rate, and all of them must learn at one.
        onwards = "start again with --overwrite" if folds else "go on with --resume"
        super().__init__(reason, f"give stage {stage} of {recipe} a lower learning_rate, and {onwards}")
        self.stage = None if folds else stage


@dataclasses.dataclass
class StageRun:
    """A stage that is done.

    Args:
        name: of the stage.
        run: its run, None within folds.
        evaluation: what its model scored, as `Result.to_json` gives it; None where nothing was asked or is at hand.
    """

    name: str
    run: Run | None
    evaluation: dict[str, Any] | None = None

    @property
    def figures(self) -> dict[str, float]:
        """Its scores by task, their average, and the label-free score."""
        scored = self.evaluation or {}
        found = {task: float(score["score"]) for task, score in scored.get("scores", {}).items()}
        found |= {AVERAGE: float(scored[AVERAGE])} if scored.get(AVERAGE) is not None else {}
        if self.run and self.run.search:
            found["search"] = float(self.run.search["with_words"]["score"])
        return found | ({"context": float(self.run.scores["trained"]["score"])} if self.run and self.run.scores else {})

    @property
    def leaked(self) -> list[str]:
        """Which of them are no test, because the model was trained on pairs of theirs."""
        scored = self.evaluation or {}
        found = [task for task, score in scored.get("scores", {}).items() if score.get("leaked")]
        return found + ([AVERAGE] if scored.get("average_leaked") else [])


class Runner:
    """What runs the stages of a recipe, looks their data up beforehand, and scores their models.

    Args:
        recipe: what to run.
        data: a mirror of the data sets; without it SELFSENT_DATA.
        progress: hears all stages.
    """

    def __init__(self, recipe: Recipe, data: str | Path | None, progress: Progress) -> None:
        self.data, self.progress, self.notice = data, progress, progress.notice
        self.store = Store(data)
        self.mirror = data or os.environ.get("SELFSENT_DATA")
        self.stood_in: list[str] = []
        self.stand_ins: list[str] = []
        """What took the place of the data that the recipe names, short enough to stand below a table."""
        self.read: dict[str, Any] = {}
        """What stands in for a stage's corpus, by its name; and the data of the folds, with their fingerprint."""
        self.recipe = dataclasses.replace(recipe, stages=tuple(map(self._at_hand, recipe.stages)))
        folded = [stage.source == FOLD for stage in recipe.stages]
        self.shared = folded.index(True) if any(folded) else len(folded)

    def _at_hand(self, stage: Stage) -> Stage:
        """The stage; with the corpus that stands in for its own, where that is not here."""
        if stage.stand_in is None or not (missing := not_here(stage.sources, self.mirror)):
            return stage
        source, reading = stage.stand_in
        self.read[stage.name] = sources_of(source)
        self._stands_in(", ".join(sources_of(source)), missing[0], f"stage {stage.name}: ")
        return dataclasses.replace(stage, source=source, reading=reading)

    def _stands_in(self, other: str, missing: Need, where: str = "") -> None:
        short, why = f"{other} stands in for {missing.name}", f"which is not here ({missing.where})"
        self.stand_ins.append(f"{short}: no reproduction")
        self.stood_in.append(f"{where}{short}, {why}: the scores are no reproduction")

    def check(self) -> None:
        """Find out what is wrong with the data of any stage."""
        for stage in self.recipe.stages:
            if stage.source != FOLD:
                self._check_corpus(stage)
            if dev := stage.arguments.get("dev"):
                check_dev_data(dev, self.store)
        if self.recipe.folds:
            self.folded = self._folded(self.recipe.folds.data, self.recipe.folds.stand_in)
            self.read[FOLD] = [self.folded, self.store.load(_arguments(self.folded)).fingerprint]
        if self.recipe.encoder:
            check_model(self.encoder)

    def _check_corpus(self, stage: Stage) -> None:
        source, reading = placed(stage.source, self.mirror), self._reading(stage)
        try:
            check_corpus(source, **reading)
            if stage.plan(self.recipe.base).reads_documents and read_corpus(source, **reading).documents is None:
                raise CorpusError(
                    f"stage {stage.name}: {stage.method.name} reads what stands beside a sentence in its document, and"
                    " the corpus has no documents: give document_column, or split_sentences: true if a text holds"
                    " several sentences; in plain text, an empty line ends a document"
                )
        except CorpusError as error:
            missing = [need.where for need in not_here(stage.sources, self.mirror) if need.where]
            if not missing:
                raise
            raise CorpusError(f"{error}; {missing[0]}") from None

    def _folded(self, data: str, stand_in: str | None) -> str:
        """The data set of the cross-validation, or what stands in for it."""
        try:
            self.store.load(_arguments(data))
            return data
        except DataError:
            if stand_in is None:
                raise
        self.store.load(_arguments(stand_in))
        self._stands_in(stand_in, not_here([data], self.mirror)[0])
        return stand_in

    @property
    def encoder(self) -> str:
        """What is scored as it is; a file that it names is looked for in the mirror too."""
        name = str(self.recipe.encoder)
        alone = without_words(name)
        kind, _, file = (alone or name).partition(":")
        if kind not in WORD_FILES:
            return name
        return f"{kind}:{placed(file, self.mirror)}{WITH_WORDS if alone else ''}"

    def run(self, directory: Path) -> Iterator[StageRun]:
        """Every stage; those that do not depend on the fold once, then the others for every fold."""
        if self.recipe.encoder:
            yield StageRun("encoder", None, self._score(self.encoder, self.recipe.tasks, directory, "the encoder"))
            return
        base = self.recipe.base
        for stage in self.recipe.stages[: self.shared]:
            yield self.stage(stage, base, directory)
            base = str(directory / "stages" / stage.name / "model")
        if self.recipe.folds:
            yield self.folds(base, directory)

    def stage(self, stage: Stage, base: str, directory: Path, fold: bool = False) -> StageRun:
        """One stage, from a base; one that is finished is not run again."""
        place = directory / "stages" / stage.name
        where = f"{directory.name}, stage {stage.name}" if fold else f"stage {stage.name}"
        if _status(place) == "finished":
            self.notice(f"{where} is finished already")
            run = load_run(place)
        else:
            self.notice(where)
            run = self._train(stage, base, place, directory / "train.jsonl" if fold else None)
        return StageRun(stage.name, run, self._score(str(place / "model"), stage.tasks, place, where))

    def _train(self, stage: Stage, base: str, place: Path, pairs: Path | None) -> Run:
        try:
            return api.train(
                partial(self._corpus, stage, pairs),
                stage.method.name,
                base,
                place,
                resume=_status(place) is not None,
                data=self.data,
                progress=self.progress,
                **{**stage.kept_whole, **stage.arguments, **({"map_points": 0} if pairs else {})},
            )
        except TrainingError as error:
            if not read_json(place / "run.json").get("stopped"):
                raise
            raise StageStoppedError(error.reason, stage.name, self.recipe.path, pairs is not None) from None

    def folds(self, base: str, directory: Path) -> StageRun:
        """Train and test on every fold; the score over all of them."""
        assert self.recipe.folds is not None
        by, numbers = self.recipe.folds.by, iter(range(1, 1000))

        def trainer(pairs: list[tuple[str, str]], scores: list[float]) -> str:
            fold, start = directory / "folds" / f"{next(numbers):02d}", base
            lines = (
                json.dumps({"sentence1": first, "sentence2": second, "score": score}, ensure_ascii=False) + "\n"
                for (first, second), score in zip(pairs, scores, strict=True)
            )
            if rank() == 0 and not (fold / "train.jsonl").is_file():
                write_text(fold / "train.jsonl", "".join(lines))
            wait()
            for stage in self.recipe.stages[self.shared :]:
                self.stage(stage, start, fold, fold=True)
                start = str(fold / "stages" / stage.name / "model")
            return start

        score = cross_validate(_arguments(self.folded), trainer, self.store, by)  # type: ignore[arg-type]  # checked when read
        return StageRun(by, None, self._keep(Result(str(directory), {score.name: score}), directory))

    def _score(self, model: str, tasks: Mapping[str, Any], place: Path, what: str) -> dict[str, Any] | None:
        """The scores of a model, from its file if they are there; None where nothing is asked or at hand."""
        if not tasks:
            return None
        if (known := read_json(place / SCORES)) and not known.get("absent"):  # what was may be here by now
            return self._warned(known)
        try:
            result = evaluate(model, data=self.store, **tasks)
        except DataError as error:
            self.notice(f"{what} is not scored: {error}")
            return None
        for task, reason in result.absent.items():
            self.notice(f"{task} is absent: {'; '.join(filter(None, (reason, where_of(task))))}")
        return self._keep(result, place)

    def _keep(self, result: Result, place: Path) -> dict[str, Any]:
        found = self._warned(result.to_json())
        if rank() == 0:
            write_json(place / SCORES, found)
        return found

    def _warned(self, found: dict[str, Any]) -> dict[str, Any]:
        lines = (line for score in found.get("scores", {}).values() for line in score.get("warnings", ()))
        for line in dict.fromkeys(lines):
            self.notice(f"warning: {line}")
        return found

    def _corpus(self, stage: Stage, pairs: Path | None) -> Corpus:
        if pairs is not None and stage.source == FOLD:
            corpus = read_corpus(pairs, **{**_FOLD_COLUMNS, **stage.reading})
        else:
            corpus = read_corpus(placed(stage.source, self.mirror), **self._reading(stage))
        self.notice(corpus.report.summary())
        if line := corpus.report.advice("clean: "):
            self.notice(line)
        return corpus

    def _reading(self, stage: Stage) -> dict[str, Any]:
        """Options of `read_corpus`, what is to be left out looked for as the corpus is."""
        banned = stage.reading.get("exclude")
        return {**stage.reading, **({"exclude": placed(banned, self.mirror)} if banned else {})}


def _arguments(name: str) -> Any:
    return next(dataset for dataset in ARGUMENTS if dataset.name == name)


def _status(place: Path) -> str | None:
    """How far a run is; None where there is none."""
    return read_json(place / "run.json").get("status")
