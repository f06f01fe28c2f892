import gzip
import pickle
import struct

import numpy as np
import pytest

from selfsent.data import word_vectors as files
from selfsent.data.word_vectors import word_blocks
from selfsent.errors import DataError
from selfsent.evaluation.encoders import as_encoder, check_model


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("SELFSENT_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def vectors(tmp_path):
    """Those of gensim, and its file in word2vec's form."""
    from gensim.models import KeyedVectors

    made = KeyedVectors(5)
    made.add_vectors([f"w{n}" for n in range(40)] + ["é", "red"], np.random.default_rng(0).normal(size=(42, 5)))
    made.save_word2vec_format(str(tmp_path / "vectors.txt"), binary=True)  # no ending tells
    return made, tmp_path / "vectors.txt"


def read(path):
    blocks = list(word_blocks(path))
    return [word for words, _ in blocks for word in words], np.concatenate([values for _, values in blocks])


@pytest.mark.parametrize("kind", ["plain", "gzip", "small blocks", "newlines"])
def test_word2vecs_form_is_read_as_gensim_wrote_it(kind, vectors, monkeypatch):
    made, path = vectors
    if kind == "gzip":
        path.write_bytes(gzip.compress(path.read_bytes()))
    elif kind == "small blocks":
        monkeypatch.setattr(files, "TOGETHER", 4)
        monkeypatch.setattr(files, "LONGEST", 60)
    elif kind == "newlines":  # as word2vec itself writes them
        rows = (f"{word} ".encode() + made[word].tobytes() + b"\n" for word in made.index_to_key)
        path.write_bytes(b"42 5\n" + b"".join(rows))
    words, values = read(path)
    assert words == made.index_to_key
    np.testing.assert_array_equal(values, made.vectors)


def test_a_sentence_is_the_mean_of_words_in_a_binary_file(vectors):
    made, path = vectors
    check_model(f"word2vec:{path}")
    np.testing.assert_allclose(as_encoder(f"glove:{path}")(["red w7"])[0], (made["red"] + made["w7"]) / 2)


@pytest.mark.parametrize("size", range(20, 1000, 97))
def test_word2vecs_form_cut_short_is_refused(size, vectors, cache):
    path = vectors[1]
    path.write_bytes(path.read_bytes()[:size])
    with pytest.raises(DataError, match="is cut short: 42 words of 5 numbers by its first line"):
        as_encoder(f"glove:{path}")(["red"])
    assert not list(cache.rglob("*.f32"))


def test_word2vecs_form_that_is_longer_or_not_finite_is_refused(vectors):
    path = vectors[1]
    whole = path.read_bytes()
    path.write_bytes(whole.replace(b"42 5", b"41 5"))
    with pytest.raises(DataError, match="holds more than the 41 words"):
        read(path)
    path.write_bytes(whole[:-4] + struct.pack("<f", np.inf))
    with pytest.raises(DataError, match="not finite"):
        read(path)


class Dangerous:
    def __reduce__(self):
        return pytest.fail, ("it was run",)


@pytest.mark.parametrize(
    "content", [struct.pack("<i", 793712314) + b"rest", *(pickle.dumps(Dangerous(), each) for each in (2, 4, 5))]
)
def test_other_binary_forms_are_never_opened(content, tmp_path):
    (tmp_path / "vectors.kv").write_bytes(content)
    with pytest.raises(DataError, match=r"line 1: expected a word .*save_word2vec_format"):
        as_encoder(f"glove:{tmp_path}/vectors.kv")(["red"])
