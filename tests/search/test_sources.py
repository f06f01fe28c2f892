import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tiny
from selfsent.corpus import read_corpus
from selfsent.errors import DataError, SettingsError
from selfsent.search import encode_corpus, encode_to_file, search
from selfsent.search.sources import corpus_vectors

NAMES = ("v.npy", "v.npz", "v.parquet")


@pytest.fixture(scope="module")
def sentences():
    return tiny.make_sentences(70)


@pytest.fixture(scope="module")
def corpus(sentences, tmp_path_factory):
    return read_corpus(sentences, cache=tmp_path_factory.mktemp("corpora"))


@pytest.fixture
def encoder(encoder_of):
    return encoder_of("bert", initializer_range=0.5)


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch):
    monkeypatch.setattr("selfsent.encoding.CHUNK", 16)
    monkeypatch.setattr("selfsent.search.sources.CHUNK", 30)


@pytest.mark.parametrize("name", NAMES)
def test_vectors_of_a_file_are_those_computed(encoder, corpus, tmp_path, name):
    file = tmp_path / name
    encode_to_file(encoder, corpus, file)
    told = []
    vectors = encode_corpus(encoder, corpus, told.append, file)
    assert told == [30, 30, 10]
    np.testing.assert_allclose(vectors, encode_corpus(encoder, corpus), atol=1e-5)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    queries = ["ba de fi", "ko"]
    for hits, expected in zip(
        search(encoder, corpus, queries, 5, file=file), search(encoder, corpus, queries, 5), strict=True
    ):
        assert [row for row, _ in hits] == [row for row, _ in expected]


def test_only_a_few_sentences_are_encoded(encoder, corpus, tmp_path, monkeypatch):
    file = tmp_path / "v.npy"
    encode_to_file(encoder, corpus, file)
    texts, encode = [], __import__("selfsent.encoding", fromlist=["encode"]).encode
    monkeypatch.setattr("selfsent.search.sources.encode", lambda model, some: texts.extend(some) or encode(model, some))
    encode_corpus(encoder, corpus, file=file)
    assert len(texts) == 3 * 8


@pytest.mark.parametrize("name", NAMES)
def test_vectors_of_another_model_are_refused(encoder, encoder_of, corpus, tmp_path, name):
    encode_to_file(encoder_of("bert", initializer_range=0.7), corpus, tmp_path / name)
    with pytest.raises(DataError, match=r"other vectors than this model .* cosine .* in row 0"):
        encode_corpus(encoder, corpus, file=tmp_path / name)


def test_vectors_of_a_corpus_in_another_order_are_refused(encoder, corpus, sentences, tmp_path):
    other = read_corpus([*sentences[:60], *sentences[60:][::-1]], cache=tmp_path / "cache")
    for name in NAMES:
        encode_to_file(encoder, other, tmp_path / name)
        with pytest.raises(DataError, match="row 60"):
            encode_corpus(encoder, corpus, file=tmp_path / name)


def test_texts_beside_the_vectors_are_compared_all(encoder, corpus, sentences, tmp_path):
    order = [*range(45), 46, 45, *range(47, 70)]
    encode_to_file(
        encoder, read_corpus([sentences[row] for row in order], cache=tmp_path / "c"), tmp_path / "v.parquet"
    )
    with pytest.raises(DataError, match="another corpus: row 45"):
        encode_corpus(encoder, corpus, file=tmp_path / "v.parquet")


@pytest.mark.parametrize("name", NAMES)
def test_vectors_of_another_number_are_refused(encoder, corpus, sentences, tmp_path, name):
    encode_to_file(encoder, read_corpus(sentences[:69], cache=tmp_path / "cache"), tmp_path / name)
    with pytest.raises(DataError, match=r"69 x 32 numbers: this corpus has 70 distinct sentences"):
        encode_corpus(encoder, corpus, file=tmp_path / name)


def test_a_vector_of_zeros_is_kept_only_where_the_model_makes_one(encoder, corpus, tmp_path):
    vectors = encode_corpus(encoder, corpus)
    vectors[2] = 0
    np.save(tmp_path / "v.npy", vectors)
    with pytest.raises(DataError, match=r"cosine 0.00 in row 2"):
        list(corpus_vectors(encoder, corpus, tmp_path / "v.npy"))
    vectors[2] = np.nan
    np.save(tmp_path / "v.npy", vectors)
    with pytest.raises(DataError, match=r"cosine nan in row 2"):
        list(corpus_vectors(encoder, corpus, tmp_path / "v.npy"))


def test_damaged_files_are_refused(encoder, corpus, sentences, tmp_path):
    vectors = encode_corpus(encoder, corpus)
    np.save(tmp_path / "double.npy", vectors.astype(np.float64))
    np.save(tmp_path / "columns.npy", np.asfortranarray(vectors))
    np.save(tmp_path / "short.npy", vectors)
    content = (tmp_path / "short.npy").read_bytes()
    (tmp_path / "short.npy").write_bytes(content[:-4])
    (tmp_path / "junk.npy").write_bytes(b"no vectors")
    (tmp_path / "junk.npz").write_bytes(b"no archive")
    np.savez(tmp_path / "other.npz", vectors=vectors)
    (tmp_path / "junk.parquet").write_bytes(b"no table")
    pq.write_table(pa.table({"text": ["a"] * 70}), tmp_path / "half.parquet")
    uneven = pa.table({"text": sentences, "embedding": [*vectors[:69].tolist(), [1.0]]})
    pq.write_table(uneven, tmp_path / "uneven.parquet")
    for file in sorted(tmp_path.iterdir()):
        with pytest.raises(DataError, match="does not hold vectors as selfsent encode writes them"):
            list(corpus_vectors(encoder, corpus, file))
    with pytest.raises(DataError, match="does not exist"):
        list(corpus_vectors(encoder, corpus, tmp_path / "none.npy"))
    with pytest.raises(SettingsError, match=r"must end in .npy, .npz or .parquet"):
        list(corpus_vectors(encoder, corpus, tmp_path / "v.txt"))
