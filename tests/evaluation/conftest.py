import numpy as np
import pytest

from stand_ins import corpus_of, documents_of, minilm, mirror, model, no_hub, write  # noqa: F401


class Numbered:
    """A corpus of so many documents of so many sentences each, whose texts have their numbers."""

    def __init__(self, documents, sentences):
        self.documents = np.repeat(np.arange(documents), sentences)

    def __len__(self):
        return len(self.documents)

    def texts(self, rows):
        return [f"word{row}" for row in rows]


@pytest.fixture
def numbered():
    return Numbered
