"""The recipes that ship: each variant can be planned, and every row of the papers' tables has one."""

from pathlib import Path

import pytest

from selfsent.evaluation.datasets.published import records
from selfsent.recipes import outline, read_document, read_recipe, shipped
from selfsent.recipes.needs import needs_of, where_of
from selfsent.recipes.recipe import recipe_of
from selfsent.recipes.variants import variants_of, with_variant

ROOT = Path(__file__).parents[2]
SMALL = {name: ROOT / "experiments" / f"{name}.yaml" for name in ("labels_small", "labels_small_rates", "bsl_small")}
FILES = shipped() | SMALL
NO_SCORES = {
    ("TSDAE", "1"): "counts of the data sets",
    ("BSL", "8"): "settings that were tried: single values stand in bsl_settings",
}


@pytest.fixture(scope="module")
def outlines():
    return {name: outline(name) for name in shipped()}


def test_every_row_of_every_table_is_a_variant(outlines):
    def row(record):
        return tuple(record[key] for key in ("paper", "table", "method", "group"))

    recipes = [recipe for each in outlines.values() for recipe in each.variants.values()]
    had = {row(record) for recipe in recipes for record in recipe.published}
    wanted = {row(record) for record in records() if (record["paper"], record["table"]) not in NO_SCORES}
    assert wanted - had == set()


def test_what_the_hub_does_not_have_says_where_it_is_published(outlines, tmp_path):
    for each in outlines.values():
        for recipe in each.variants.values():
            for need in needs_of(recipe, tmp_path):
                assert need.here or need.hub or where_of(need.name), need.name


@pytest.mark.parametrize(
    ("page", "stages"), [("recipes", ["sentences", "pairs"]), ("languages", ["student", "aligned"])]
)
def test_the_recipe_of_the_documentation_is_one(page, stages, tmp_path):
    text = (ROOT / "docs" / f"{page}.md").read_text()
    (tmp_path / "recipe.yaml").write_text(text.split("```yaml\n")[1].split("```")[0])
    assert [stage.name for stage in read_recipe(tmp_path / "recipe.yaml", base="bundled-raw").stages] == stages


@pytest.mark.parametrize("name", FILES)
def test_every_variant_of_every_recipe_can_be_planned(name, base_of):
    base, planned = str(base_of("bert")), set()
    document = read_document(FILES[name])
    for variant in variants_of(document) or [None]:
        recipe = recipe_of(*with_variant(document, variant), base=base, planned=False)
        assert recipe.title
        assert recipe.encoder or recipe.stages
        stages = str([(stage.name, stage.method.name, stage.arguments) for stage in recipe.stages])
        if stages not in planned:  # variants that differ in nothing but data are planned once
            planned.add(stages)
            recipe = recipe_of(*with_variant(document, variant), base=base)
            assert all(stage.plan(base).settings.seed == 0 for stage in recipe.stages)
