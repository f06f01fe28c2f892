"""Every recipe in small: each distinct sequence of stages, a step or two each, on toy data from a tiny base."""

import dataclasses
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tiny
from selfsent import train_stages
from selfsent.models.bases import resolve
from selfsent.recipes import read_document, read_recipe
from selfsent.recipes.recipe import Folds, variants_of
from selfsent.recipes.stage import FOLD
from selfsent_papers.outline import shipped

FILES = [*shipped().values(), *(Path(__file__).parents[3] / "experiments").glob("*_small*.yaml")]
AT_HAND = {"stsb", "stsb-dev", "ukp-aspect"}
LARGE = ("epochs", "batch_size", "max_length", "dev_every", "budget", "checkpoint_every", "sentences")


def sequences():
    """The first variant of every distinct sequence of methods, their heads and their losses, over all recipes."""
    found = {}
    for file in FILES:
        document = read_document(file)
        for variant in variants_of(document) or [None]:
            recipe = read_recipe(document, variant, planned=False)
            shape = [(s.method.name, s.arguments.get("head"), s.arguments.get("loss")) for s in recipe.stages]
            found.setdefault((*shape, recipe.folds is not None), (file, variant))
    return [pytest.param(*place, id=f"{place[0].stem}: {place[1]}") for place in found.values()]


@pytest.fixture(scope="module")
def mirror(tmp_path_factory):
    """Pairs with classes and scores, as a file of their own and as the data sets that runs are scored on."""
    place = tmp_path_factory.mktemp("mirror")
    one, other = tiny.make_sentences(48, seed=1), tiny.make_sentences(48, seed=2)
    rows = {"sentence1": one, "sentence2": other, "topic": ["tea", "coffee"] * 24}
    rows |= {"label": ["entailment", "neutral", "contradiction"] * 16, "score": [0.0, 0.5, 1.0] * 16}
    files = ["toy", *(f"mteb/stsbenchmark-sts/{split}" for split in ("train", "validation", "test"))]
    for file in (*files, "argument-similarity/ukp_aspect/all"):
        (place / file).parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.table(rows), place / f"{file}.parquet")
    books = ("\n".join(one[first : first + 12]) for first in range(0, 48, 12))
    (place / "books.txt").write_text("\n\n".join(books) + "\n")
    return place


def in_small(stage, base):
    """A stage on the toy data: as many columns as it reads, and labels if it reads any."""
    reading = {"text_column": "sentence1"}
    if not isinstance(stage.source, str) or len(stage.reading.get("text_columns", ())) > 1:  # a triplet: as a pair
        reading = {"text_columns": ("sentence1", "sentence2")}
    reading |= {name: stage.reading[name] for name in ("stack",) if name in stage.reading}
    reading |= {f"{name}_column": name for name in ("label", "score") if f"{name}_column" in stage.reading}
    arguments = {name: value for name, value in stage.arguments.items() if name not in LARGE}
    arguments |= {"dev": "stsb-dev"} if "dev" in arguments else {}
    arguments |= {"max_length": 16} if stage.method.closed_form else {"steps": 2, "batch_size": 8, "max_length": 16}
    if stage.method.name == "distil":
        arguments["teacher"] = str(base)
    if stage.method.name == "whitening":
        arguments["dimensions"] = 8  # the published 256 are more than there are
    if stage.source in (FOLD, "books.txt"):  # as `selfsent recipes` describes it
        return dataclasses.replace(stage, arguments=arguments)
    return dataclasses.replace(stage, source="toy.parquet", reading=reading, arguments=arguments, stand_in=None)


def small(recipe, base):
    """A recipe on the toy data: its stages from a tiny base, or that base in place of the encoder that it scores."""
    folds = recipe.folds and Folds("ukp-aspect", recipe.folds.by)
    stages = tuple(in_small(stage, base) for stage in recipe.stages)
    scored = {"encoder": str(base), "tasks": {"task": ["stsb"]}} if recipe.encoder else {}
    return dataclasses.replace(recipe, stages=stages, folds=folds, **scored)


@pytest.mark.full
@pytest.mark.parametrize(("file", "variant"), sequences())
def test_every_sequence_of_stages_of_the_recipes_runs(file, variant, base_of, mirror, tmp_path, monkeypatch):
    monkeypatch.setenv("SELFSENT_CACHE", str(tmp_path / "cache"))
    methods = {stage.method.name for stage in read_recipe(read_document(file), variant, planned=False).stages}
    base = resolve("ngrams:16x100") if "sent2vec-bigrams" in methods else base_of("bert", initializer_range=0.5)
    read = read_recipe(file, variant, str(base))
    recipe = small(read, base)
    monkeypatch.setattr("selfsent.recipes.run.read_recipe", lambda *given: recipe)
    done = train_stages(file, tmp_path / "run", data=mirror)
    records = sorted((tmp_path / "run").rglob("stages/*/run.json"))
    assert {record.parent.name for record in records} == {stage.name for stage in recipe.stages}
    assert all(json.loads(record.read_text())["status"] == "finished" for record in records)
    asked = {f"{stage.name}: {task}" for stage in recipe.stages for task in AT_HAND & {*stage.tasks.get("task", ())}}
    assert asked <= done.figures.keys()
    assert not (recipe.folds or recipe.encoder) or done.figures
