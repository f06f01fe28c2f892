import json

import pytest

import tiny
from selfsent import train_stages
from selfsent.recipes import read_recipe
from selfsent.recipes.stage import sources_of

RECIPE = """\
base: {base}
all: {{batch_size: 8, max_length: 32, steps: 2}}
stages:
  words:
    corpus:
      source: &pairs
        - {{source: parallel/en-de, text_columns: [en, de]}}
        - {{source: parallel/en-tr, text_columns: [en, tr]}}
      without: &tests
        - {{source: "parallel/en-de::tatoeba_test", text_columns: [en, de]}}
      stack: true
    method: mlm
  student:
    corpus: {{source: *pairs, without: *tests}}
    method: distil
    teacher: {base}
  pairs:
    corpus: *pairs
    method: bootstrap
    columns: true
evaluate: tatoeba-de
"""


@pytest.fixture
def mirror(tmp_path, monkeypatch):
    """Pairs of two languages; the German ones hold two pairs of the test set."""
    monkeypatch.setenv("SELFSENT_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("SELFSENT_DATA", raising=False)
    sentences = tiny.make_sentences(90, seed=3)
    english, german, turkish = sentences[:30], sentences[30:60], sentences[60:]
    for name, columns in {
        "parallel/en-de/train": {"en": english, "de": german},
        "parallel/en-de/tatoeba_test": {"en": english[:2], "de": german[:2]},
        "parallel/en-tr/train": {"en": english[5:], "tr": turkish[5:]},
    }.items():
        tiny.write_parquet(tmp_path / "mirror" / f"{name}.parquet", **columns)
    return tmp_path / "mirror"


@pytest.fixture
def recipe(tmp_path, base_of):
    def write(old="", new=""):
        assert old in RECIPE
        (tmp_path / "recipe.yaml").write_text(RECIPE.replace(old, new).format(base=base_of("bert")))
        return tmp_path / "recipe.yaml"

    return write


def test_stages_over_pairs_of_several_languages(recipe, mirror, tmp_path):
    lines = []
    done = train_stages(recipe(), tmp_path / "run", data=mirror, progress=tiny.heard(notice=lines.append))
    assert "53 rows (2 to be left out dropped)" in lines  # the others are 28 and 25
    assert "55 rows" in lines  # where nothing is left out
    assert set(done.figures) == {"pairs: tatoeba-de"}
    asked = json.loads((tmp_path / "run" / "stages" / "student" / "run.json").read_text())["config"]
    assert asked["corpus"]["source"].endswith("en-tr/train.parquet")
    assert sources_of(read_recipe(recipe()).stages[0].source) == ["parallel/en-de", "parallel/en-tr"]
    resumed = train_stages(recipe(), tmp_path / "run", data=mirror, resume=True)
    assert resumed.figures == done.figures
