import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from selfsent.data.corpus import read_corpus
from selfsent.data.vector_files import VectorsFile
from selfsent.errors import DataError, SettingsError
from selfsent.models.encoding import encode
from selfsent.search import encode_corpus, encode_to_file, search

NAMES = ("v.npy", "v.npz", "v.parquet")


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch):
    monkeypatch.setattr("selfsent.models.encoding.CHUNK", 16)
    monkeypatch.setattr("selfsent.data.vector_files.TOGETHER", 30)
    monkeypatch.setattr("selfsent.search.sources.COMPARED", 8)


@pytest.mark.parametrize("name", NAMES)
def test_vectors_of_a_file_are_those_computed(encoder, corpus, tmp_path, name):
    encode_to_file(encoder, corpus, tmp_path / name)
    file = VectorsFile(tmp_path / name)
    told = []
    vectors = encode_corpus(encoder, corpus, told.append, file)
    assert told == [30, 30, 10]
    np.testing.assert_allclose(vectors, encode_corpus(encoder, corpus), atol=1e-5)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    queries = ["ba de fi", "ko"]
    for hits, expected in zip(
        search(encoder, corpus, queries, 5, file=file), search(encoder, corpus, queries, 5), strict=True
    ):
        assert [hit.row for hit in hits] == [hit.row for hit in expected]


def test_only_a_few_sentences_are_encoded(encoder, corpus, tmp_path, monkeypatch):
    encode_to_file(encoder, corpus, tmp_path / "v.npy")
    file = VectorsFile(tmp_path / "v.npy")
    texts = []

    def spy(model, some, **_):
        texts.extend(some)
        return encode(model, some)

    monkeypatch.setattr("selfsent.search.sources.encode", spy)
    encode_corpus(encoder, corpus, file=file)
    assert len(texts) == 3 * 8


@pytest.mark.parametrize("name", NAMES)
def test_vectors_of_another_model_are_refused(encoder, encoder_of, corpus, tmp_path, name):
    encode_to_file(encoder_of("bert", initializer_range=0.7), corpus, tmp_path / name)
    with pytest.raises(DataError, match=r"other vectors than this model .* cosine 0\..* in row"):
        encode_corpus(encoder, corpus, file=VectorsFile(tmp_path / name))


def test_vectors_of_a_corpus_in_another_order_are_refused(encoder, corpus, sentences, tmp_path):
    other = read_corpus([*sentences[:60], *sentences[60:][::-1]], cache=tmp_path / "cache")
    for name in NAMES:
        encode_to_file(encoder, other, tmp_path / name)
        with pytest.raises(DataError, match="row 6"):
            encode_corpus(encoder, corpus, file=VectorsFile(tmp_path / name))


def test_a_single_vector_that_is_far_is_found_where_it_is_looked_at(encoder, corpus, tmp_path, monkeypatch):
    monkeypatch.setattr("selfsent.search.sources.COMPARED", 30)
    vectors = encode_corpus(encoder, corpus)
    across = np.random.default_rng(0).standard_normal(32).astype(np.float32)
    across -= across @ vectors[59] * vectors[59]
    vectors[59] += 0.55 * across / np.linalg.norm(across)
    np.save(tmp_path / "v.npy", vectors)
    with pytest.raises(DataError, match=r"other vectors than this model has for these texts: cosine 0.88 in row 59"):
        encode_corpus(encoder, corpus, file=VectorsFile(tmp_path / "v.npy"))


def test_vectors_in_fewer_bits_are_the_model_s(encoder, corpus, tmp_path):
    vectors = encode_corpus(encoder, corpus)
    draw = np.random.default_rng(0)
    noise = draw.standard_normal(vectors.shape).astype(np.float32)
    np.save(tmp_path / "v.npy", vectors + 0.1 * noise / np.linalg.norm(noise, axis=1, keepdims=True))
    assert encode_corpus(encoder, corpus, file=VectorsFile(tmp_path / "v.npy")).shape == vectors.shape
    np.save(tmp_path / "v.npy", vectors + 0.2 * noise / np.linalg.norm(noise, axis=1, keepdims=True))
    with pytest.raises(DataError, match="other vectors"):
        encode_corpus(encoder, corpus, file=VectorsFile(tmp_path / "v.npy"))


def test_texts_beside_the_vectors_are_compared_all(encoder, corpus, sentences, tmp_path):
    order = [*range(45), 46, 45, *range(47, 70)]
    encode_to_file(
        encoder, read_corpus([sentences[row] for row in order], cache=tmp_path / "c"), tmp_path / "v.parquet"
    )
    with pytest.raises(DataError, match="another corpus: row 45"):
        encode_corpus(encoder, corpus, file=VectorsFile(tmp_path / "v.parquet"))


@pytest.mark.parametrize("name", NAMES)
def test_vectors_of_another_number_are_refused(encoder, corpus, sentences, tmp_path, name):
    encode_to_file(encoder, read_corpus(sentences[:69], cache=tmp_path / "cache"), tmp_path / name)
    with pytest.raises(DataError, match=r"holds 69 vectors; this corpus has 70 rows: encode it again"):
        encode_corpus(encoder, corpus, file=VectorsFile(tmp_path / name))


def test_a_vector_of_zeros_is_kept_only_where_the_model_makes_one(encoder, corpus, sentences, tmp_path, monkeypatch):
    vectors = encode_corpus(encoder, corpus)
    vectors[69] = 0
    np.save(tmp_path / "v.npy", vectors)
    file = VectorsFile(tmp_path / "v.npy")
    with pytest.raises(DataError, match=r"cosine 0.00 in row 69"):
        encode_corpus(encoder, corpus, file=file)

    def nothing_left_of_the_last(model, texts, **_):
        return encode(model, texts) * np.array([[text != sentences[69]] for text in texts], np.float32)

    monkeypatch.setattr("selfsent.search.sources.encode", nothing_left_of_the_last)
    assert not encode_corpus(encoder, corpus, file=file)[69].any()


def test_numbers_that_are_not_finite_are_refused_wherever_they_are(encoder, corpus, tmp_path):
    vectors = encode_corpus(encoder, corpus)
    for row in range(40, 50):
        wrong = vectors.copy()
        wrong[row, 3] = np.nan
        np.save(tmp_path / "v.npy", wrong)
        with pytest.raises(DataError, match=f"not finite in row {row}"):
            encode_corpus(encoder, corpus, file=VectorsFile(tmp_path / "v.npy"))


def test_damaged_files_are_refused(encoder, corpus, sentences, tmp_path):
    vectors = encode_corpus(encoder, corpus)
    np.save(tmp_path / "whole.npy", (vectors * 1000).astype(np.int64))
    np.save(tmp_path / "flat.npy", vectors.ravel())
    np.save(tmp_path / "short.npy", vectors)
    content = (tmp_path / "short.npy").read_bytes()
    (tmp_path / "short.npy").write_bytes(content[:-4])
    (tmp_path / "header.npy").write_bytes(content.replace(b"'shape'", b"'sh(pe'"))
    (tmp_path / "junk.npy").write_bytes(b"no vectors")
    (tmp_path / "junk.npz").write_bytes(b"no archive")
    np.savez(tmp_path / "other.npz", vectors=vectors)
    np.savez_compressed(tmp_path / "damaged.npz", embeddings=vectors)
    content = bytearray((tmp_path / "damaged.npz").read_bytes())
    content[2000:2100] = bytes(100)
    (tmp_path / "damaged.npz").write_bytes(content)
    tables = {
        "half": {"text": sentences},
        "uneven": {"text": sentences, "embedding": [*vectors[:69].tolist(), [1.0]]},
        "even": {"text": sentences, "embedding": [*vectors[:68].tolist(), [0.5] * 31, [0.5] * 33]},
        "none": {"text": [*sentences[:69], None], "embedding": vectors.tolist()},
        "numbers": {"text": range(70), "embedding": vectors.tolist()},
        "floats": {"text": sentences, "embedding": vectors[:, 0]},
        "words": {"text": sentences, "embedding": [["a"]] * 70},
    }
    for name, columns in tables.items():
        pq.write_table(pa.table(columns), tmp_path / f"{name}.parquet")
    (tmp_path / "junk.parquet").write_bytes(b"no table")
    encode_to_file(encoder, corpus, tmp_path / "changed.parquet")
    content = bytearray((tmp_path / "changed.parquet").read_bytes())
    content[len(content) // 2] ^= 1
    (tmp_path / "changed.parquet").write_bytes(content)
    (tmp_path / "named.npy").write_text("text\na\n")
    np.savez(tmp_path / "archive", embeddings=vectors)
    (tmp_path / "archive.npz").rename(tmp_path / "archive.npy")
    for file in sorted(tmp_path.iterdir()):
        with pytest.raises(DataError, match=f"{file.name} must hold"):
            encode_corpus(encoder, corpus, file=VectorsFile(file))
    empty = pa.table({"text": pa.array([], pa.string()), "embedding": pa.array([], pa.list_(pa.float32()))})
    pq.write_table(empty, tmp_path / "empty.parquet")
    with pytest.raises(DataError, match="holds 0 vectors"):
        encode_corpus(encoder, corpus, file=VectorsFile(tmp_path / "empty.parquet"))
    np.save(tmp_path / "narrow.npy", vectors[:, :31])
    with pytest.raises(DataError, match="vectors of 31 numbers; this model's have 32"):
        encode_corpus(encoder, corpus, file=VectorsFile(tmp_path / "narrow.npy"))
    with pytest.raises(DataError, match="does not exist"):
        VectorsFile(tmp_path / "none.npy")
    (tmp_path / "folder.npy").mkdir()
    with pytest.raises(DataError, match="is no file"):
        VectorsFile(tmp_path / "folder.npy")
    with pytest.raises(SettingsError, match=r"must end in .npy, .npz or .parquet"):
        VectorsFile(tmp_path / "v.txt")
