"""`selfsent train`: a run, or the recipe of a YAML file."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from selfsent import extensions
from selfsent.augment.registry import parse_augmenters
from selfsent.cli import console
from selfsent.cli.console import show
from selfsent.cli.flags import add_method_options
from selfsent.cli.options import APART, FILES, UNSET, Resumable, TrainingText, WithLateOptions
from selfsent.errors import SettingsError, near
from selfsent.settings import Settings, setting
from selfsent.training.run_config import ModelOptions, RunConfig

if TYPE_CHECKING:
    from selfsent.data.corpus import Corpus

_OF_RECIPES = ("--output", "--variant", "--base", "--data", "--seed", "--seeds", "--resume", "--overwrite")
"""Flags allowed with a recipe."""


@dataclass(kw_only=True)
class Train(TrainingText, Resumable, WithLateOptions):
    """Train an encoder on sentences, or on pairs and triples with labels or without.

      selfsent train tickets.csv --text-column body --output runs/tickets
      selfsent train faq.csv --text-columns question,answer --method mnrl --output runs/faq

    It is scored before and after if the corpus has documents or pairs.

    A method has options of its own: --method NAME --help shows them. With a recipe give only --output, --variant,
    --base, --data, --seed, --seeds, --resume and --overwrite; everything else is in the recipe.
    """

    main_options = "output text_column document_column text_columns method base budget hold_out resume overwrite"

    also = (
        ("model", ModelOptions, None),
        ("settings (the defaults are the method's)", Settings, UNSET),
        ("run", RunConfig, None),
    )

    corpus: tuple[str, ...] = setting(
        (), f"{FILES}; or a recipe: FILE.yaml or a name of selfsent recipes", positional=True, nargs="+"
    )
    method: str | None = setting(None, "a name from selfsent methods (default: chosen by the corpus)")
    base: str | None = setting(
        None,
        "bundled, bundled-encoder or bundled-raw, which ship with selfsent; a directory or hub id;"
        " bert:4x256 (4 layers of 256), albert:4x256 or random-table, which are untrained (default: one that ships and"
        " suits the method)",
    )
    hold_out: int | None = setting(None, f"{APART[:-1]}; 0: none)")
    title_column: str | None = setting(
        None, "column with titles, by which texts of one sentence each are scored (default: one called so)"
    )
    variant: str | None = setting(None, "which variant of a recipe (default: its first)")
    seeds: int | None = setting(None, "run a recipe with N seeds, and summarise")

    @classmethod
    def add_late_options(cls, parser: Any, arguments: list[str]) -> None:
        """Add the options of the given method, or of the default one, and of the given head."""
        early = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
        for name in ("--method", "--head"):
            early.add_argument(name, nargs="?")
        given = early.parse_known_args(arguments)[0]
        from selfsent.methods import get_method
        from selfsent.training.defaults import DEFAULT_METHOD

        add_method_options(parser, get_method(given.method or DEFAULT_METHOD), given.head)
        parser.has_late_options = True

    def run(self) -> None:
        """Train, then print the scores before and after."""
        if any(Path(name).suffix in (".yaml", ".yml") or _shipped(name) for name in self.corpus):
            self._run_recipe()
            return
        if self.seeds is not None:
            raise SettingsError("--seeds is for recipes: put the training into one, or give --seed 1, 2 ... in turn")
        if not any(word.startswith("-") for word in self.unknown):  # otherwise its value may look like a corpus
            self.check_corpus(self.corpus)
        if augmentations := self.changes.get("augmentations"):
            parse_augmenters(",".join(augmentations))
        self._refuse_unknown()
        from selfsent import api
        from selfsent.evaluation.hold_out import without_documents
        from selfsent.report.scores import neighbours_lines, scores_table
        from selfsent.report.warranted import warranty_table
        from selfsent.training.budget import Clock

        given = self.values("hold_out", "resume", "overwrite") | self.changes | {"clock": Clock(self.started)}
        checked = api.check_train(self.method, self.base, self.output, **given)
        if self.split_sentences is None and not checked.plan.reads_documents:
            self.split_sentences = False
        with self.resumable():
            corpus = self._titled(self.read(self.corpus, summarise=True))
            result = api.train(corpus, checked=checked, progress=console.CommandProgress())
        for scores in filter(None, (result.search_scores, result.scores)):
            show(scores_table(scores))
        if "warranty" in result.record:
            show(warranty_table(result.record["warranty"]))
        if result.scores or result.search_scores:
            for line in neighbours_lines(result.neighbours):
                show(line)
            show(f"The same as a page, with curves: {result.directory / 'report.html'}")
        show(f"The model is in {result.directory / 'model'}")
        asked = self.hold_out != 0 and len(corpus.input_columns) == 1 and corpus.documents is None
        if asked and not (result.scores or result.search_scores):
            show(console.with_flags(f"It was not scored: {without_documents(corpus)}"))

    def _titled(self, corpus: Corpus) -> Corpus:
        """The corpus, with titles if nothing else gives a score and there is a column of them."""
        title = self.title_column or next(iter(corpus.report.natural), None)
        wanted = title is not None and title != corpus.read_columns[0] and len(corpus.input_columns) == 1
        if not wanted or corpus.documents is not None or "-" in self.corpus:
            if self.title_column:
                problem = "the texts have documents, or pairs, to score by, or come from standard input"
                raise SettingsError(f"title_column={self.title_column} is for texts of one sentence each: {problem}")
            return corpus
        found = self.read(self.corpus, metadata_columns=(title,))
        found.title = title
        console.notice(f"{title} has the titles: the score is how well one finds its {corpus.read_columns[0]}")
        return found

    def _refuse_unknown(self) -> None:
        """Reject unknown arguments, with a hint if they are options of another method.

        Options of the method are added here at the latest, so that errors name its flags.
        """
        from selfsent.methods import get_method, whose_option
        from selfsent.training.defaults import DEFAULT_METHOD

        name = get_method(self.method or DEFAULT_METHOD).name
        if not self.parser.has_late_options:
            self.add_late_options(self.parser, self.arguments[1:])
        console.FLAGS.update(self.parser.flags())
        self.parser.see = f"{self.parser.prog} --help, selfsent methods {name}"
        self.parser.refuse(self.unknown, whose_option)

    def _run_recipe(self) -> None:
        """Run all stages, and print their scores."""
        name, *others = [*self.corpus, *self.unknown]
        flags = [flag for flag in self.arguments if flag[:1] == "-" and flag.partition("=")[0] not in _OF_RECIPES]
        if flags or others:
            what = f"{flags[0]} belongs in the recipe" if flags else f"one recipe, not {others[0]} too"
            raise SettingsError(f"{name}: {what} (see {self.parser.prog} --help)")
        from selfsent import recipes

        for python, flag in list(console.FLAGS.items()):
            if flag not in _OF_RECIPES:  # other names in errors are keys of the file
                del console.FLAGS[python]
        file = _shipped(name) or Path(name)
        given = self.values("variant", "base", "resume", "overwrite")
        given |= {key: value for key, value in self.changes.items() if key in ("seed", "data")}
        recipe = recipes.read_recipe(file, self.variant, self.base, given.get("seed"))
        tables_of_runs = extensions.published("tables") if recipe.published else None
        if check := extensions.published("records") if recipe.published else None:
            check(recipe)
        with self.resumable():
            if self.seeds is None:
                done = recipes.train_stages(file, self.output, **given)
                tables = [done.table()] if done.figures else []
                alone = recipe.folds is None and recipe.encoder is None
                lines = [f"The model is in {Path(self.output) / 'model'}"] if alone else []
            else:
                seeds = recipes.train_seeds(file, self.seeds, self.output, **given)
                tables = [seeds.table()] if seeds.summary else []
                lines = [] if tables else ["Nothing was scored: selfsent evaluate scores the models"]
                lines += [*seeds.complaints, f"The runs are in {seeds.directory / 'seeds'}"]
        if tables_of_runs and (tables or self.seeds is None):
            tables += tables_of_runs([self.output])
        for each in (*tables, *lines):
            show(each)


def _shipped(name: str) -> Path | None:
    """The file of a recipe that ships with an extension, by name; None for anything else.

    Raises:
        SettingsError: it is nearly the name of one.
    """
    if not name.isidentifier() or Path(name).exists():
        return None
    folders = [extensions.load("recipes", each) for each in extensions.announced("recipes")]
    found = {file.stem: file for folder in reversed(folders) for file in folder.glob("*.yaml")}
    if name not in found and (meant := near(name, found)):
        raise SettingsError(f"there is no file and no recipe {name!r}; {meant}")
    return found.get(name)
