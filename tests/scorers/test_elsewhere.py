"""Baselines from elsewhere, by stand-ins in the same layout: their vectors are those that their own library makes."""

import sys
import types
from pathlib import Path

import numpy as np

from selfsent.scorers.load_scorer import load_scorer

PAGE = Path(__file__).parents[2] / "docs" / "papers.md"
TEXTS = ["tea is hot", "coffee"]


def test_the_file_of_the_documentation_loads_the_universal_sentence_encoders(tmp_path, monkeypatch):
    urls = []

    class Tensor:
        def __init__(self, values):
            self.values = values

        def numpy(self):
            return np.asarray(self.values, np.float32)

    def load(url):
        urls.append(url)
        return lambda texts: Tensor([[len(text), 1.0] for text in texts])

    monkeypatch.setitem(sys.modules, "tensorflow_hub", types.SimpleNamespace(load=load))
    monkeypatch.delitem(sys.modules, "use", raising=False)
    monkeypatch.chdir(tmp_path)
    Path("use.py").write_text(PAGE.read_text().split("```python\n# use.py\n")[1].split("```")[0])
    texts = [f"text {'x' * number}" for number in range(70)]  # more than one batch
    assert load_scorer("use:load")(texts)[:, 0].tolist() == [len(text) for text in texts]
    assert load_scorer("use:multilingual_large")(TEXTS).shape == (2, 2)
    assert urls == [
        "https://tfhub.dev/google/universal-sentence-encoder/4",
        "https://tfhub.dev/google/universal-sentence-encoder-multilingual-large/3",
    ]
