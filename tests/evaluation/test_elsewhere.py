"""Baselines from elsewhere, by stand-ins in the same layout: their vectors are those that their own library makes."""

import sys
import types
from pathlib import Path

import numpy as np
import pytest
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Dense, Normalize, Pooling, Transformer
from torch import nn

from selfsent.evaluation.encoders import as_encoder

PAGE = Path(__file__).parents[2] / "docs" / "evaluation-papers.md"
TEXTS = ["tea is hot", "coffee"]


def sbert(directory):
    """The NLI models: mean pooling."""
    transformer = Transformer(str(directory))
    return [transformer, Pooling(transformer.get_embedding_dimension(), "mean")]


def labse(directory):
    """LaBSE: the first token, a dense layer with tanh, length one."""
    transformer = Transformer(str(directory))
    width = transformer.get_embedding_dimension()
    return [transformer, Pooling(width, "cls"), Dense(width, width, activation_function=nn.Tanh()), Normalize()]


@pytest.mark.parametrize(("layout", "architecture"), [(sbert, "roberta"), (labse, "bert")])
def test_what_is_on_the_hub_gives_its_authors_vectors(layout, architecture, base_of, tmp_path):
    SentenceTransformer(modules=layout(base_of(architecture)), device="cpu").save(str(tmp_path / "model"))
    expected = SentenceTransformer(str(tmp_path / "model"), device="cpu").encode(TEXTS)
    np.testing.assert_allclose(as_encoder(str(tmp_path / "model"))(TEXTS), expected, atol=1e-5)


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
    assert as_encoder("use:load")(texts)[:, 0].tolist() == [len(text) for text in texts]
    assert as_encoder("use:multilingual_large")(TEXTS).shape == (2, 2)
    assert urls == [
        "https://tfhub.dev/google/universal-sentence-encoder/4",
        "https://tfhub.dev/google/universal-sentence-encoder-multilingual-large/3",
    ]
