import json
import sys

import pytest

import tiny


@pytest.fixture
def pairs(tmp_path):
    """Thirty scored pairs, ten of them the same sentence but for a word, in a file."""
    lines = tiny.make_sentences(60, words=(4, 9))
    same = [f"{line}\t{line} ba\t5\n" for line in lines[:10]]
    other = [f"{a}\t{b}\t{n % 4}\n" for n, (a, b) in enumerate(zip(lines[20:40], lines[40:], strict=True))]
    (tmp_path / "pairs.tsv").write_text("".join([*same, *other]))
    return tmp_path / "pairs.tsv"


@pytest.fixture
def trainer(tmp_path, monkeypatch):
    """A module whose `train` makes better models from more pairs."""
    (tmp_path / "quick_trainer.py").write_text(
        "import numpy as np\n"
        "class Words:\n"
        "    def __init__(self, size): self.size = size\n"
        "    def encode(self, texts):\n"
        "        rng = lambda word: np.random.default_rng(list(word.encode())).normal(size=self.size)\n"
        "        return np.stack([sum(map(rng, text.split())) for text in texts])\n"
        "def model(): return Words(3)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    yield "quick_trainer"
    sys.modules.pop("quick_trainer", None)


def test_words(selfsent, trainer, pairs, tmp_path):
    done = selfsent("analyse", "words", f"{trainer}:model", "--pairs", pairs, "--json", tmp_path / "x.json")
    assert done.status == 0, done.err
    found = json.loads((tmp_path / "x.json").read_text())["words"][f"{trainer}:model"]
    assert found["sentences"] == 10
    assert sum(found["decisive"].values()) == pytest.approx(1)
    assert "NOUN" in done.out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "the following arguments are required: COMMAND"),
        (("words", "bundled-raw"), "--task or --pairs"),
        (("words", "./nothing", "--pairs", "pairs.tsv"), "there is no directory ./nothing"),
    ],
)
def test_what_is_wrong_is_one_line(arguments, said, selfsent, pairs, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert said in selfsent("analyse", *arguments).complaint
    assert [path.name for path in tmp_path.iterdir()] == ["pairs.tsv"]
