"""`selfsent train RECIPE.yaml`, and several seeds of a run or a recipe."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from selfsent.errors import SettingsError
from selfsent.files import read_json

if TYPE_CHECKING:
    from selfsent.recipes import Recipe, Seeds


_SHIPPED = Path(__file__).parents[1] / "recipes" / "tables"


def is_recipe(corpus: Sequence[str]) -> bool:
    """Whether what is to be trained on is a recipe: a YAML file, or the name of one that ships."""
    return any(Path(name).suffix in (".yaml", ".yml") or _ships(name) for name in corpus)


def _ships(name: str) -> bool:
    # Looked up by hand: the package of recipes takes seconds to import.
    return name.isidentifier() and (_SHIPPED / f"{name}.yaml").is_file() and not Path(name).exists()


def run_recipe(options: argparse.Namespace) -> None:
    """Run all stages, and print their scores."""
    arguments = options.arguments
    chosen = _parse(options.parser.prog, arguments[1:])
    from selfsent import recipes
    from selfsent.cli.console import show
    from selfsent.models.bases import resolve

    file = recipes.recipe_file(chosen.recipe)
    recipe = recipes.read_recipe(file, chosen.variant, chosen.base, chosen.seed)
    if recipe.encoder and (chosen.seed is not None or chosen.seeds is not None):
        raise SettingsError(f"{file} scores an encoder as it is: nothing is trained, so leave out --seed and --seeds")
    common = {"overwrite": chosen.overwrite, "resume": chosen.resume}

    def train(seed: int | None, output: Path, **run_config: Any) -> recipes.StagesRun:
        seeded = recipes.read_recipe(file, chosen.variant, chosen.base, seed)
        return recipes.train_stages(seeded, output, seed=seed, data=chosen.data, **run_config)

    def check() -> dict[str, Any]:
        recipes.check_data(recipe, chosen.data)
        return recipe.to_json()

    with resumable(arguments, chosen.output):
        if chosen.seeds is None:
            done = train(chosen.seed, Path(chosen.output), overwrite=chosen.overwrite, resume=chosen.resume)
            for table in done.tables():
                show(table)
        else:
            seeds = recipes.over_seeds(
                chosen.seeds,
                chosen.output,
                lambda seed, output, resume: train(seed, output, resume=resume).figures,
                first=chosen.seed or 0,
                check=check,
                read=[recipe.path, *([] if recipe.encoder else [resolve(recipe.base)])],
                **common,
            )
            show_seeds(seeds, recipe)
            return
    if recipe.folds is None and recipe.encoder is None:
        show(f"The model is in {Path(chosen.output) / 'model'}")


def _parse(program: str, arguments: Sequence[str]) -> argparse.Namespace:
    """The few options that go with a recipe; all others stand in it."""
    from selfsent.cli.main import Parser

    parser = Parser(prog=f"{program} RECIPE", description="Run the stages of a recipe.")
    parser.add_argument("recipe", metavar="RECIPE", help="a YAML file, or a name from selfsent recipes")
    parser.add_argument("--output", required=True, metavar="DIR", help="the run directory")
    parser.add_argument("--variant", metavar="NAME", help="which variant of the recipe (default: its first)")
    parser.add_argument("--base", metavar="ENCODER", help="the encoder to start from instead of the recipe's")
    parser.add_argument("--data", metavar="DIR", help="mirror of the data sets (default: SELFSENT_DATA)")
    parser.add_argument("--seed", type=int, metavar="N", help="seed of every stage")
    parser.add_argument("--seeds", type=int, metavar="N", help="run with N seeds, and summarise")
    parser.add_argument("--resume", action="store_true", help="go on with the run in DIR")
    parser.add_argument("--overwrite", action="store_true", help="throw away the run in DIR")
    options, unknown = parser.parse_known_args(arguments)
    if unknown:
        what = (
            f"{unknown[0]} belongs in the recipe" if unknown[0].startswith("-") else f"one recipe, not {unknown[0]} too"
        )
        raise SettingsError(f"{options.recipe}: {what} (see {parser.prog} --help)")
    return options


def show_seeds(seeds: Seeds, recipe: Recipe | None = None) -> None:
    """Print what came of several seeds, and of a recipe the published numbers beside it."""
    from selfsent.cli.console import show

    if seeds.names:
        show(seeds.table())
        if recipe and recipe.published:
            from selfsent.recipes.beside import beside, over, tables

            for table in tables(beside(recipe.published, over(seeds, recipe.last))):
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
