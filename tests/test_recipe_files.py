from pathlib import Path

import pytest

from selfsent.recipes import read_document, read_recipe

FILES = sorted((Path(__file__).parents[1] / "recipes").glob("*.yaml"))
DOCUMENTS = {file.stem: read_document(file) for file in FILES}
STAGED = {name: document for name, document in DOCUMENTS.items() if {"stages", "variants"} & document.keys()}
VARIANTS = [(name, variant) for name, document in STAGED.items() for variant in document.get("variants", [None])]


def test_the_papers_tables_are_there():
    assert {
        *("is_bert_stsb", "is_bert_task", "afs_self_supervised", "afs_supervised", "nli_stsb"),
        *("target_then_labels", "labels_then_target", "label_counts", "bsl_after_sbert", "multilingual"),
        *("stsb_supervised", "transformers_as_encoders", "labels_small"),
    } <= STAGED.keys()


@pytest.mark.parametrize(
    ("page", "stages"), [("recipes", ["sentences", "pairs"]), ("languages", ["student", "aligned"])]
)
def test_the_recipe_of_the_documentation_is_one(page, stages, tmp_path):
    text = (FILES[0].parents[1] / "docs" / f"{page}.md").read_text()
    (tmp_path / "recipe.yaml").write_text(text.split("```yaml\n")[1].split("```")[0])
    assert [stage.name for stage in read_recipe(tmp_path / "recipe.yaml", base="bundled-raw").stages] == stages


@pytest.mark.parametrize(("name", "variant"), VARIANTS)
def test_every_variant_of_every_recipe_can_be_planned(name, variant, base_of):
    recipe = read_recipe(STAGED[name].path, variant, str(base_of("bert")))
    assert recipe.title
    assert recipe.published or "published" not in STAGED[name]
    for stage in recipe.stages:
        plan = stage.plan(recipe.base)
        assert plan.settings.seed == 0
