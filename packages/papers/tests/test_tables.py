"""The recipes that ship: each variant can be planned, and every row of the papers' tables has one."""

import json
from pathlib import Path

import pytest

from selfsent.models.bases import resolve
from selfsent.models.saved import is_sentence_encoder, is_static
from selfsent.recipes import read_document, read_recipe
from selfsent.recipes.needs import needs_of, where_of
from selfsent.recipes.recipe import variants_of
from selfsent_papers.outline import shipped
from selfsent_papers.published import records
from selfsent_papers.reproduction import records_of, reproduced

ROOT = Path(__file__).parents[3]
FILES = shipped()
ADAPTATION = ("target_then_labels", "labels_then_target")
COUNTS = ("TSDAE", "1")
"""The table of numbers that describe the data sets, 25 of all: nothing is trained for them."""


@pytest.fixture(scope="module")
def recipes():
    """By name, the recipes that ship, every variant by its name."""
    documents = {name: read_document(file) for name, file in shipped().items()}
    return {
        name: {variant: read_recipe(document, variant, planned=False) for variant in variants_of(document) or [None]}
        for name, document in documents.items()
    }


def test_every_printed_number_has_a_recipe(recipes):
    def key(record):
        return json.dumps({name: record[name] for name in record if name != "differs"}, sort_keys=True)

    had = {key(record) for each in recipes.values() for recipe in each.values() for record in records_of(recipe)}
    wanted = {key(record) for record in records() if (record["paper"], record["table"]) != COUNTS}
    print(f"{len(wanted & had):,} of {len(wanted):,} printed numbers have a recipe")
    assert len(records()) - len(wanted) == 25
    assert len(wanted) == 1215
    assert wanted - had == set()


def test_runs_of_seven_tasks_are_compared_with_the_printed_average(recipes):
    (row,) = {json.dumps(records_of(recipe)) for recipe in recipes["is_bert_task"].values()}
    tasks = ("mr", "cr", "subj", "mpqa", "sst2", "trec", "mrpc")
    found = reproduced(json.loads(row), {task: {"score": 80.0 + place} for place, task in enumerate(tasks)})
    averages = [each for each in found if each.published["dataset"] == "Avg"]
    assert [(each.published["paper"], each.published["value"], each.ours) for each in averages] == [
        ("IS-BERT", 85.91, 83.0),
        ("BSL", 85.91, 83.0),
    ]


def test_what_the_hub_does_not_have_says_where_it_is_published(recipes, tmp_path):
    for each in recipes.values():
        for recipe in each.values():
            for need in needs_of(recipe, tmp_path):
                assert need.here or need.hub or where_of(need.name), need.name


@pytest.mark.parametrize(
    ("page", "stages"), [("recipes", ["sentences", "pairs"]), ("languages", ["student", "aligned"])]
)
def test_the_recipe_of_the_documentation_is_one(page, stages, tmp_path):
    text = (ROOT / "docs" / f"{page}.md").read_text()
    (tmp_path / "recipe.yaml").write_text(text.split("```yaml\n")[1].split("```")[0])
    assert [stage.name for stage in read_recipe(tmp_path / "recipe.yaml", base="bundled-raw").stages] == stages


def test_rivals_of_tsdae_are_trained_as_in_its_paper(recipes):
    wanted = {
        "ct": {"batch_size": 8, "steps": 100_000},
        "simcse": {"batch_size": 512, "learning_rate": 5e-5},
        "flow": {"layers": "last", "batch_size": 8, "steps": 100_000},
    }
    names = [name for name in recipes if name.startswith("tsdae_") or name in ("label_counts", *ADAPTATION)]
    names.remove("tsdae_corpus_size")
    stages = [stage for name in names for recipe in recipes[name].values() for stage in recipe.stages]
    found = [stage for stage in stages if stage.method.name in wanted]
    assert len(found) > 100
    (labels,) = recipes["tsdae_supervised"]["scidocs"].stages  # as many steps as the paper at most
    assert (labels.arguments["steps"], "epochs" in labels.arguments) == (20_000, False)
    assert all(stage.arguments.items() >= wanted[stage.method.name].items() for stage in found)


def test_recipes_say_where_the_settings_of_bsl_are_not_those_of_its_paper(recipes):
    for name, variants in recipes.items():
        for recipe in variants.values():
            stages = [stage for stage in recipe.stages if stage.method.name in ("bootstrap", "ntxent")]
            if any("learning_rate" in stage.arguments for stage in stages):
                assert "authors' script" in recipe.note, name
                assert "decay" in recipe.note, name


def test_corpora_of_each_size_are_read_ten_times_and_the_best_pass_is_kept(recipes):
    found = recipes["tsdae_corpus_size"]
    stages = [stage for recipe in found.values() for stage in recipe.stages]
    assert {stage.arguments["sentences"] for stage in stages} == {128, 512, 2048, 8192, 32768, 65536}
    wanted = {"epochs": 10, "keep_best": True, "dev": "stsb-dev"}
    assert all(stage.arguments.items() >= wanted.items() for stage in stages)
    assert not [stage for stage in stages if {"steps", "dev_every"} & stage.arguments.keys()]
    plans = [recipe.stages[0].plan("bundled-raw") for name, recipe in found.items() if "askubuntu" in name]
    assert {(plan.settings.epochs, plan.settings.steps) for plan in plans} == {(10, None)}


def test_the_loss_of_pairs_goes_one_way_as_printed_and_both_ways_where_the_script_has_them_twice(recipes):
    def directions(name):
        stages = (stage for recipe in recipes[name].values() for stage in recipe.stages)
        plans = [stage.plan("bundled-raw") for stage in stages if stage.method.name == "mnrl"]
        return {plan.options.both_directions for plan in plans}

    assert directions("tsdae_supervised") == directions("label_counts") == {False}
    assert directions("target_then_labels") == directions("labels_then_target") == {True}


def test_published_transfer_scores_are_beside_those_of_the_classifier_they_were_made_with(recipes):
    tables = {("IS-BERT", "3"), ("BSL", "2")}
    every = [recipe for each in recipes.values() for recipe in each.values()]
    found = [each for each in every if tables & {(row["paper"], row["table"]) for row in records_of(each)}]
    assert len(found) > 15
    for recipe in found:
        tasks = recipe.tasks or recipe.stages[-1].tasks
        assert tasks["classifier"] == "senteval", (recipe.path, recipe.variant)


def test_word_vectors_are_trained_from_random_ones(recipes, tmp_path, monkeypatch):
    monkeypatch.setenv("SELFSENT_CACHE", str(tmp_path))
    assert {recipe.base for recipe in recipes["fastsent"].values()} == {"random-table:100"}
    assert is_static(resolve("random-table:100"))
    assert not is_sentence_encoder(resolve("random-table:100"))
    for recipe in recipes["tsdae_sent2vec"].values():  # with bigrams, as published
        assert recipe.base == "ngrams:700x2000000"
        assert [stage.method.name for stage in recipe.stages] == ["sent2vec-bigrams"]


@pytest.mark.parametrize("name", FILES)
def test_every_variant_of_every_recipe_can_be_planned(name, base_of):
    base, planned = "ngrams:16x100" if name == "tsdae_sent2vec" else str(base_of("bert")), set()
    document = read_document(FILES[name])
    for variant in variants_of(document) or [None]:
        recipe = read_recipe(document, variant, base, planned=False)
        assert recipe.title
        assert recipe.encoder or recipe.stages
        stages = str([(stage.name, stage.method.name, stage.arguments) for stage in recipe.stages])
        if stages not in planned:  # variants that differ in nothing but data are planned once
            planned.add(stages)
            recipe = read_recipe(document, variant, base)
            assert all(stage.plan(base).settings.seed == 0 for stage in recipe.stages)
