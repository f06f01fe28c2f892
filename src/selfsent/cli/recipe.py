"""`selfsent train RECIPE.yaml`, and several seeds of a run or a recipe."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from selfsent.errors import SettingsError
from selfsent.files import read_json

if TYPE_CHECKING:
    from rich.table import Table

    from selfsent.recipes import Seeds, StagesRun

_SHIPPED = Path(__file__).parents[1] / "papers" / "tables"
_FLAGS = ("--output", "--variant", "--base", "--data", "--seed", "--seeds", "--resume", "--overwrite")
"""What the command line says of a recipe; everything else stands in it."""


def is_recipe(corpus: Sequence[str]) -> bool:
    """Whether what is to be trained on is a recipe: a YAML file, or the name of one that ships."""
    return any(Path(name).suffix in (".yaml", ".yml") or _ships(name) for name in corpus)


def _ships(name: str) -> bool:
    # Looked up by hand: the package of recipes takes seconds to import.
    return name.isidentifier() and (_SHIPPED / f"{name}.yaml").is_file() and not Path(name).exists()


def run_recipe(options: argparse.Namespace) -> None:
    """Run all stages, and print their scores."""
    given: list[str] = [*options.corpus, *options.unknown]
    name, *others = given
    wrong = [flag for flag in options.arguments if flag[:1] == "-" and flag.partition("=")[0] not in _FLAGS]
    if wrong or others:
        what = f"{wrong[0]} belongs in the recipe" if wrong else f"one recipe, not {others[0]} too"
        raise SettingsError(f"{name}: {what} (see {options.parser.prog} --help)")
    from selfsent import recipes
    from selfsent.cli.console import show
    from selfsent.recipes.run import read_by

    file = _SHIPPED / f"{name}.yaml" if _ships(name) else Path(name)
    read = partial(recipes.read_recipe, file, options.variant, options.base)
    seed = getattr(options, "seed", None)
    recipe = read(seed)
    if recipe.encoder and (seed is not None or options.seeds is not None):
        raise SettingsError(f"{file} scores an encoder as it is: nothing is trained, so leave out --seed and --seeds")
    if recipe.published:
        _papers().records_of(recipe)  # which are checked so

    def train(seed: int | None, output: str | Path, resume: bool, overwrite: bool = False) -> StagesRun:
        given = {"resume": resume, "overwrite": overwrite, "data": options.data}
        done = recipes.train_stages(read(seed), output, seed=seed, **given)
        if recipe.published:
            _papers().keep(recipe, done.directory)
        return done

    def beside() -> list[Table]:
        papers = _papers() if recipe.published else None
        return papers.tables(papers.reproductions(recipe, Path(options.output))) if papers else []

    def check() -> dict[str, Any]:
        recipes.check_data(recipe, options.data)
        return recipe.to_json()

    with resumable(options.arguments, options.output):
        if options.seeds is not None:
            seeds = recipes.over_seeds(
                options.seeds,
                options.output,
                lambda seed, output, resume: train(seed, output, resume).figures,
                first=seed or 0,
                check=check,
                read=read_by(recipe),
                overwrite=options.overwrite,
                resume=options.resume,
            )
            show_seeds(seeds, beside())
            return
        done = train(seed, options.output, options.resume, options.overwrite)
    for table in ([done.table()] if done.figures else []) + beside():
        show(table)
    if recipe.folds is None and recipe.encoder is None:
        show(f"The model is in {Path(options.output) / 'model'}")


def _papers() -> Any:
    """What sets published numbers beside a run's; who names none needs nothing of it."""
    from selfsent.papers import reproduction

    return reproduction


def show_seeds(seeds: Seeds, beside: Sequence[Table] = ()) -> None:
    """Print what came of several seeds, and tables beside it where anything was scored."""
    from selfsent.cli.console import show

    if seeds.summary:
        for table in (seeds.table(), *beside):
            show(table)
    elif seeds.figures:
        show("Nothing was scored: selfsent evaluate --seeds scores the models together")
    for line in seeds.complaints:
        show(line)
    show(f"The runs are in {seeds.directory / 'seeds'}")


@contextmanager
def resumable(arguments: Sequence[str], output: str) -> Iterator[None]:
    """When the user interrupts what runs within, say how to go on."""
    from selfsent.errors import Interrupted

    before = read_json(Path(output) / "run.json")
    try:
        yield
    except KeyboardInterrupt as stop:
        after = read_json(Path(output) / "run.json")
        if not after or ("--overwrite" in arguments and after == before):  # what lies there is another run
            raise
        saved = "stopped and saved" if isinstance(stop, Interrupted) else "stopped"
        given = [argument for argument in arguments if argument not in ("--overwrite", "--resume")]
        raise KeyboardInterrupt(f"{saved}; go on with: {shlex.join(['selfsent', *given, '--resume'])}") from None
