"""The page of claims says what the raw figures say, and names commands that there are."""

import re
import runpy
import shlex
from pathlib import Path

import pytest
import yaml

from selfsent.recipes.document import read_document
from selfsent.recipes.recipe import variants_of
from selfsent_papers.outline import recipe_file

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def script():
    return runpy.run_path(str(ROOT / "experiments" / "claims.py"))


def test_the_page_is_what_the_script_makes_of_the_raw_figures(script):
    text, figures = script["made"]()
    assert text in (ROOT / "docs" / "claims.md").read_text(encoding="utf-8")
    assert rounded(figures) == rounded(script["read_json"](script["RAW"] / "claims.json")["rows"])


def rounded(value):
    """The last digits depend on the version of scipy."""
    if isinstance(value, dict):
        return {name: rounded(each) for name, each in value.items()}
    return (
        [rounded(each) for each in value]
        if isinstance(value, list | tuple)
        else (round(value, 6) if isinstance(value, float) else value)
    )


def test_each_command_names_a_recipe_and_one_of_its_variants():
    claims = yaml.safe_load((ROOT / "experiments" / "claims.yaml").read_text(encoding="utf-8"))
    runs = [shlex.split(claim["run"]) for each in claims.values() for claim in each]
    page = (ROOT / "docs" / "claims.md").read_text(encoding="utf-8")
    runs += [shlex.split(found)[:3] for found in re.findall(r"selfsent train ((?!RECIPE)\w+ --variant [^`\n]*)", page)]
    assert len(runs) > 40
    for recipe, flag, variant in runs:
        assert flag == "--variant"
        assert variant in variants_of(read_document(recipe_file(recipe)))


@pytest.mark.parametrize(
    ("found", "said"),
    [
        ({"difference": 3.0, "low": 1.0, "high": 5.0}, "in small"),
        ({"difference": 3.0, "low": -1.0, "high": 7.0}, "open"),
        ({"difference": -3.0, "low": -5.0, "high": -1.0}, "the reverse"),
        ({"difference": 1.9}, "open, one seed"),
        ({"difference": -2.1}, "the reverse, one seed"),
    ],
)
def test_a_verdict_needs_an_interval_clear_of_zero(script, found, said):
    assert script["verdict"](found) == said
