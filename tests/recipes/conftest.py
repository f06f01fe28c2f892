import sys
from pathlib import Path

import pytest

import tiny

sys.path.insert(0, str(Path(__file__).parent))  # so that tests can import stage_texts


@pytest.fixture(autouse=True)
def cache(tmp_path_factory, monkeypatch):
    monkeypatch.setenv("SELFSENT_CACHE", str(tmp_path_factory.mktemp("cache")))


@pytest.fixture
def recipe(tmp_path, base_of):
    def write(text):
        (tmp_path / "sentences.txt").write_text("\n".join(tiny.make_sentences(60)))
        values = {"base": base_of("bert", initializer_range=0.5), "corpus": tmp_path / "sentences.txt"}
        (tmp_path / "recipe.yaml").write_text(text.format(**values))
        return tmp_path / "recipe.yaml"

    return write


@pytest.fixture
def mirror(tmp_path):
    """A data set of argument pairs on two topics."""
    sentences = tiny.make_sentences(80, seed=5)
    tiny.write_parquet(
        tmp_path / "mirror" / "argument-similarity" / "ukp_aspect" / "all.parquet",
        topic=["tea", "coffee"] * 20,
        sentence1=sentences[:40],
        sentence2=sentences[40:],
        label=["SS"] * 40,
        score=[float(number % 3) for number in range(40)],
    )
    return tmp_path / "mirror"
