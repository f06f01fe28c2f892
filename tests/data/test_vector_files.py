import pickle
import struct

import numpy as np
import pytest

from selfsent.errors import DataError
from selfsent.scorers.load_scorer import load_scorer


class Dangerous:
    def __reduce__(self):
        return pytest.fail, ("it was run",)


def word2vecs_own(numbers):
    """word2vec's binary form: a heading, then each word with its numbers in 32 bits."""
    rows = (f"w{row} ".encode() + values.astype("<f4").tobytes() for row, values in enumerate(numbers))
    return f"{len(numbers)} {numbers.shape[1]}\n".encode() + b"".join(rows)


@pytest.mark.parametrize(
    "content",
    [
        struct.pack("<i", 793712314) + b"rest",
        word2vecs_own(np.zeros((40, 5))),
        *(pickle.dumps(Dangerous(), each) for each in (2, 4, 5)),
    ],
)
def test_binary_forms_are_never_opened(content, tmp_path, monkeypatch):
    monkeypatch.setenv("SELFSENT_CACHE", str(tmp_path / "cache"))
    (tmp_path / "vectors.kv").write_bytes(content)
    with pytest.raises(DataError, match=r"line [12]: expected a word .*save_word2vec_format writes with binary=False"):
        load_scorer(f"glove:{tmp_path}/vectors.kv")(["red"])
