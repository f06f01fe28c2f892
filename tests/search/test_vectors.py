"""Files of vectors that line up with the input: repeated and empty texts have their rows."""

import random
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tiny
from selfsent.data.corpus import read_corpus
from selfsent.data.vector_files import StoredVectors, VectorsFile as WholeVectorsFile, unit
from selfsent.errors import Damaged, DataError, OutputError, SettingsError
from selfsent.models.encoding import encode
from selfsent.progress import SILENT
from selfsent.search import encode_corpus, encode_to_file as in_chunks_to_file, search
from selfsent.search.vectors import CHECKED

NAMES = pytest.mark.parametrize("name", ["v.npy", "v.parquet"])


encode_to_file = partial(in_chunks_to_file, chunk_size=16)
VectorsFile = partial(WholeVectorsFile, chunk_size=30)


@pytest.fixture(scope="module")
def texts():
    """A hundred rows with 53 different texts, three of them empty, one at each end."""
    draw = random.Random(0)
    some = tiny.make_sentences(53, seed=3)
    rows = [*some, *(draw.choice(some) for _ in range(44))]
    draw.shuffle(rows)
    return ["", *rows[:50], " ", *rows[50:], ""]


@pytest.fixture(scope="module")
def rows(texts, tmp_path_factory):
    return read_corpus(texts, metadata_columns=(), cache=tmp_path_factory.mktemp("corpora"))


@pytest.fixture(params=["distinct", "rows"])
def either(request):
    """A corpus without repeated or empty texts, whose vectors need no copy; and one with them."""
    return request.getfixturevalue("corpus" if request.param == "distinct" else "rows")


def read(path):
    if path.suffix == ".parquet":
        return np.array(pq.read_table(path)["embedding"].to_pylist(), np.float32)
    return np.load(path)


def stop_after(chunks, error=KeyboardInterrupt):
    """A progress object that fails when so many chunks are done."""
    left = iter(range(chunks - 1))

    def count(what, done, total):
        if next(left, None) is None:
            raise error

    return tiny.heard(count=count)


def interrupted(encoder, corpus, output, chunks=2):
    """The directory of what is done."""
    with pytest.raises(KeyboardInterrupt):
        encode_to_file(encoder, corpus, output, stop_after(chunks))
    (part,) = output.parent.glob(f".{output.name}.*.part")
    return part


@NAMES
def test_there_is_a_vector_for_each_row_and_repeated_texts_are_computed_once(
    encoder, rows, texts, tmp_path, name, monkeypatch
):
    told, computed = [], []

    def spy(model, some, side, chunk_size):
        computed.extend(some := list(some))
        yield encode(model, some)

    with monkeypatch.context() as patch:
        patch.setattr("selfsent.search.vectors.encode_stream", spy)
        made = encode_to_file(encoder, rows, tmp_path / name, tiny.counts(told))
    assert computed == rows.texts()
    assert (made.rows, made.size, made.kept, made.zeros, sum(told)) == (100, 32, 0, 3, len(rows))
    assert [path.name for path in tmp_path.iterdir()] == [name]
    vectors = read(tmp_path / name)
    filled = np.array([bool(text.strip()) for text in texts])
    assert vectors.dtype == np.float32
    assert not vectors[~filled].any()
    np.testing.assert_allclose(vectors[filled], encode(encoder, [text for text in texts if text.strip()]), atol=2e-5)
    if name == "v.parquet":
        table = pq.read_table(tmp_path / name)
        assert table["row"].to_pylist() == list(range(100))
        assert table["text"].to_pylist() == [text.strip() for text in texts]
        stored = StoredVectors(tmp_path / name)
        np.testing.assert_allclose(stored(rows.texts()), encode(encoder, rows.texts()), atol=2e-5)


@NAMES
@pytest.mark.parametrize("where", ["encoding", "full disk", "writing"])
def test_after_an_interruption_the_file_is_the_same(encoder, either, tmp_path, monkeypatch, name, where):
    encode_to_file(encoder, either, tmp_path / "whole" / name)
    error = OSError(28, "No space left on device") if where == "full disk" else KeyboardInterrupt

    def stop(*_):
        raise error

    total, done = len(either), len(either) if where == "writing" else 32
    with monkeypatch.context() as patch:
        if where == "writing":
            patch.setattr("selfsent.search.vectors._write_rows", stop)
        progress = SILENT if where == "writing" else stop_after(2, error)
        with pytest.raises((KeyboardInterrupt, OutputError), match=rf"{done} of {total} texts|No space left"):
            encode_to_file(encoder, either, tmp_path / name, progress)
    assert not (tmp_path / name).exists()
    told = []
    assert encode_to_file(encoder, either, tmp_path / name, tiny.counts(told)).kept == told[0] == done
    assert sum(told) == total
    assert (tmp_path / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == [name, "whole"]


def test_vectors_of_another_encoder_or_other_sentences_are_not_kept(encoder, corpus, rows, tmp_path):
    output = tmp_path / "v.npy"
    interrupted(encoder, corpus, output)
    with pytest.raises(KeyboardInterrupt, match="texts are done"):
        encode_to_file(encoder, rows, output, stop_after(1))
    for name, weight in encoder.sentence_transformer.state_dict().items():
        if ".pooler." in name:  # which nothing reads
            weight += 1
    with pytest.raises(KeyboardInterrupt):
        encode_to_file(encoder, corpus, output, stop_after(2))
    assert len(list(tmp_path.iterdir())) == 2
    encoder.transformer.embeddings.word_embeddings.weight.data[9] += 1e-3
    assert encode_to_file(encoder, corpus, output).kept == 0
    assert [path.name for path in tmp_path.iterdir()] == ["v.npy"]


@pytest.mark.parametrize("kind", ["vectors", "done", "cut", "gone", "older"])
def test_damaged_parts_are_made_again(encoder, corpus, tmp_path, recwarn, kind):
    encode_to_file(encoder, corpus, tmp_path / "whole.npy")
    part = interrupted(encoder, corpus, tmp_path / "v.npy")
    path = part / ("done.npy" if kind == "done" else "vectors.npy")
    data = bytearray(path.read_bytes())
    data[-60 if kind == "done" else 200] ^= 2
    if kind == "gone":
        path.unlink()
    elif kind == "older":  # the layout of earlier versions
        (part / "done.npy").unlink()
        (part / "done.json").write_text('{"rows": 32, "checksum": 1}')
    else:
        path.write_bytes(bytes(data[:500] if kind == "cut" else data))
    assert encode_to_file(encoder, corpus, tmp_path / "v.npy").kept == 0
    warned = [str(each.message) for each in recwarn if each.category is Damaged]
    assert bool(warned) == (kind in ("vectors", "done"))
    assert all("from an earlier run is damaged" in line for line in warned)
    assert (tmp_path / "v.npy").read_bytes() == (tmp_path / "whole.npy").read_bytes()


def test_what_cannot_be_written_is_refused(encoder, corpus, tmp_path, monkeypatch):
    with pytest.raises(SettingsError, match=r"must end in \.npy or \.parquet"):
        encode_to_file(encoder, corpus, tmp_path / "v.csv")
    (tmp_path / "d.npy").mkdir()
    with pytest.raises(OutputError, match="is a directory"):
        encode_to_file(encoder, corpus, tmp_path / "d.npy")
    (tmp_path / "file").touch()
    with pytest.raises(OutputError, match="cannot be written"):
        encode_to_file(encoder, corpus, tmp_path / "file" / "v.npy")

    def taken(path, words):
        raise OutputError(words)

    monkeypatch.setattr("selfsent.search.vectors.lock_directory", taken)
    with pytest.raises(OutputError, match=r"another selfsent is writing .*v\.npy: wait for it, or name another file"):
        encode_to_file(encoder, corpus, tmp_path / "v.npy")


@NAMES
def test_the_file_serves_in_place_of_the_encoder(encoder, either, tmp_path, name, monkeypatch):
    encode_to_file(encoder, either, tmp_path / name)
    computed, told, queries = encode_corpus(encoder, either), [], ["ba de fi", "ko"]
    expected = search(encoder, either, queries, 5)
    texts = []

    def spy(model, some, **_):
        texts.extend(some)
        return encode(model, some)

    with monkeypatch.context() as patch:
        patch.setattr("selfsent.search.vectors.encode", spy)
        vectors = encode_corpus(encoder, either, told.append, VectorsFile(tmp_path / name))
    assert len(texts) <= CHECKED * len(told)  # a sample
    assert sum(told) == len(either)
    np.testing.assert_allclose(vectors, computed, atol=1e-5)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    found = search(encoder, either, queries, 5, file=VectorsFile(tmp_path / name))
    assert [[hit.row for hit in hits] for hits in found] == [[hit.row for hit in hits] for hits in expected]


def test_split_sentences_keep_the_way_back(encoder, tmp_path):
    corpus = read_corpus(
        ["Ba de. Fi go.", "", "Fi go."], metadata_columns=(), split_sentences=True, cache=tmp_path / "c"
    )
    assert encode_to_file(encoder, corpus, tmp_path / "v.parquet").rows == 4
    found = pq.read_table(tmp_path / "v.parquet")
    assert (found["row"].to_pylist(), found["sentence"].to_pylist()) == ([0, 0, 1, 2], [0, 1, 0, 0])
    vectors = read(tmp_path / "v.parquet")
    assert np.array_equal(vectors[1], vectors[3])
    assert not vectors[2].any()
    assert len(encode_corpus(encoder, corpus, file=VectorsFile(tmp_path / "v.parquet"))) == 2


@NAMES
@pytest.mark.parametrize("other", ["model", "order", "number"])
def test_vectors_of_something_else_are_refused(encoder, encoder_of, corpus, sentences, tmp_path, name, other):
    maker, texts = encoder, sentences
    if other == "model":
        maker, complaint = encoder_of("bert", initializer_range=0.7), r"other vectors than .* cosine 0\..* in row"
    elif other == "order":
        texts, complaint = [*sentences[:60], *sentences[60:][::-1]], "row 6"
    else:
        texts, complaint = sentences[:69], r"holds 69 vectors; this corpus has 70 rows: encode it again"
    encode_to_file(maker, read_corpus(texts, cache=tmp_path / "cache"), tmp_path / name)
    with pytest.raises(DataError, match=complaint):
        encode_corpus(encoder, corpus, file=VectorsFile(tmp_path / name))


def test_texts_beside_the_vectors_are_compared_all(encoder, rows, texts, tmp_path):
    place = next(row for row in range(60, 97) if texts[row] in texts[:row] and texts[row])
    other = read_corpus([*texts[:place], "another one", *texts[place + 1 :]], metadata_columns=(), cache=tmp_path)
    encode_to_file(encoder, other, tmp_path / "v.parquet")
    with pytest.raises(DataError, match=f"another corpus: row {place} is 'another one'"):
        encode_corpus(encoder, rows, file=VectorsFile(tmp_path / "v.parquet"))


def test_vectors_may_differ_as_those_in_fewer_bits_do(encoder, corpus, tmp_path):
    vectors = encode_corpus(encoder, corpus)
    noise = np.random.default_rng(0).standard_normal(vectors.shape).astype(np.float32)
    noise /= np.linalg.norm(noise, axis=1, keepdims=True)
    single, missing, broken = vectors.copy(), vectors.copy(), vectors.copy()
    across = noise[59] - noise[59] @ vectors[59] * vectors[59]
    single[59] += 0.55 * across / np.linalg.norm(across)
    missing[69] = 0
    broken[43, 3] = np.nan
    for changed, complaint in (
        (vectors + 0.1 * noise, ""),
        (vectors + 0.2 * noise, "other vectors"),
        (single, r"other vectors than this model has for these texts: cosine 0.88 in row 59"),
        (missing, r"cosine 0.00 in row 69"),
        (broken, "not finite in row 43"),
    ):
        np.save(tmp_path / "v.npy", changed)
        file = VectorsFile(tmp_path / "v.npy")
        if complaint:
            with pytest.raises(DataError, match=complaint):
                encode_corpus(encoder, corpus, file=file)
        else:
            assert encode_corpus(encoder, corpus, file=file).shape == vectors.shape


def test_zeros_are_right_where_the_tokenizer_leaves_nothing(encoder, corpus, sentences, tmp_path, monkeypatch):
    vectors = encode_corpus(encoder, corpus)
    vectors[69] = 0
    np.save(tmp_path / "v.npy", vectors)

    def nothing_left_of_the_last(model, texts, **_):
        return encode(model, texts) * np.array([[text != sentences[69]] for text in texts], np.float32)

    monkeypatch.setattr("selfsent.search.vectors.encode", nothing_left_of_the_last)
    assert not encode_corpus(encoder, corpus, file=VectorsFile(tmp_path / "v.npy"))[69].any()


def test_damaged_files_are_refused(encoder, corpus, sentences, tmp_path):
    vectors = encode_corpus(encoder, corpus)
    np.save(tmp_path / "whole.npy", (vectors * 1000).astype(np.int64))
    np.save(tmp_path / "flat.npy", vectors.ravel())
    np.save(tmp_path / "short.npy", vectors)
    content = (tmp_path / "short.npy").read_bytes()
    (tmp_path / "short.npy").write_bytes(content[:-4])
    (tmp_path / "header.npy").write_bytes(content.replace(b"'shape'", b"'sh(pe'"))
    for name in ("junk.npy", "junk.parquet"):
        (tmp_path / name).write_bytes(b"no vectors")
    np.save(tmp_path / "pickled.npy", np.array([["a", None]]))
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
    encode_to_file(encoder, corpus, tmp_path / "changed.parquet")
    content = bytearray((tmp_path / "changed.parquet").read_bytes())
    content[len(content) // 2] ^= 1
    (tmp_path / "changed.parquet").write_bytes(content)
    for file in sorted(tmp_path.iterdir()):
        with pytest.raises(DataError, match=f"{file.name} must hold"):
            encode_corpus(encoder, corpus, file=VectorsFile(file))
    np.save(tmp_path / "narrow.npy", vectors[:, :31])
    with pytest.raises(DataError, match="vectors of 31 numbers; this model's have 32"):
        encode_corpus(encoder, corpus, file=VectorsFile(tmp_path / "narrow.npy"))
    (tmp_path / "folder.npy").mkdir()
    for name, complaint in (("none.npy", "does not exist"), ("folder.npy", "holds no .parquet file")):
        with pytest.raises(DataError, match=complaint):
            VectorsFile(tmp_path / name)


@pytest.mark.parametrize("name", ["v.npy", "v.parquet"])
def test_vectors_of_length_one_on_demand(encoder, rows, tmp_path, name):
    plain, scaled = (tmp_path / "plain" / name, tmp_path / "scaled" / name)
    for path in (plain, scaled):
        path.parent.mkdir()
    assert not encode_to_file(encoder, rows, plain).normalized
    assert encode_to_file(encoder, rows, scaled, normalize=True).normalized
    np.testing.assert_allclose(read(scaled), unit(read(plain)), atol=1e-6)
    with pytest.raises(KeyboardInterrupt):
        encode_to_file(encoder, rows, tmp_path / name, stop_after(1))
    assert encode_to_file(encoder, rows, tmp_path / name, normalize=True).kept == 0


def test_a_folder_that_an_engine_encoded_stands_for_a_file(encoder, sentences, tmp_path):
    """Texts are there as they were, and files in the order in which a corpus reads them."""
    from selfsent.encoding import BatchEncoder

    encoder.save(tmp_path / "model")
    step, texts = BatchEncoder(str(tmp_path / "model")), [f" {text}  " for text in sentences]
    for name, part in (("b", texts[:9]), ("a", texts[9:]), ("c/d", texts[:0])):
        path = tmp_path / "encoded" / f"{name}.parquet"
        path.parent.mkdir(exist_ok=True, parents=True)
        pq.write_table(step(pa.table({"text": pa.array(part, pa.string())})), path)
    read = read_corpus(str(tmp_path / "encoded"), text_columns="text", cache=tmp_path / "cache")
    found = encode_corpus(encoder, read, file=VectorsFile(tmp_path / "encoded"))
    np.testing.assert_allclose(found, encode_corpus(encoder, read), atol=1e-5)
    pq.write_table(step(pa.table({"text": ["another one", *texts[10:]]})), tmp_path / "encoded" / "a.parquet")
    with pytest.raises(DataError, match="another corpus: row 0 is 'another one'"):
        encode_corpus(encoder, read, file=VectorsFile(tmp_path / "encoded"))


def test_vectors_on_disk_are_those_in_memory(encoder, tmp_path, monkeypatch):
    corpus = read_corpus(["ba de fi", "ko", "", "ko"], cache=tmp_path / "cache", min_rows=1)
    expected, mapped = encode_corpus(encoder, corpus), encode_corpus(encoder, corpus, on_disk=True)
    np.testing.assert_array_equal(mapped, expected)
    assert isinstance(mapped, np.memmap)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "missing"))
    with pytest.raises(OutputError, match="missing cannot be written"):
        encode_corpus(encoder, corpus, on_disk=True)
