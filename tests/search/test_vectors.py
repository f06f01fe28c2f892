import zipfile

import numpy as np
import pyarrow.parquet as pq
import pytest

import tiny
from selfsent.data.corpus import read_corpus
from selfsent.errors import Damaged, OutputError, SettingsError
from selfsent.models.encoding import encode
from selfsent.search import encode_to_file

NAMES = ("v.npy", "v.npz", "v.parquet")


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch):
    monkeypatch.setattr("selfsent.models.encoding.CHUNK", 16)
    monkeypatch.setattr("selfsent.search.rows._READ_TOGETHER", 9)
    monkeypatch.setattr("selfsent.search.rows.CHUNK", 16)


def stop_after(chunks, error=KeyboardInterrupt):
    """An `advance` that fails when so many chunks are done."""
    left = iter(range(chunks - 1))

    def advance(count):
        if next(left, None) is None:
            raise error

    return advance


@pytest.mark.parametrize("name", NAMES)
def test_the_file_holds_the_vectors(encoder, corpus, sentences, tmp_path, name):
    made = encode_to_file(encoder, corpus, tmp_path / name)
    assert (made.rows, made.size, made.kept) == (70, 32, 0)
    if name == "v.parquet":
        table = pq.read_table(tmp_path / name)
        assert table["text"].to_pylist() == sentences
        vectors = np.array(table["embedding"].to_pylist(), np.float32)
    else:
        vectors = np.load(tmp_path / name)
        vectors = vectors["embeddings"] if name == "v.npz" else vectors
    assert (vectors.shape, vectors.dtype) == ((70, 32), np.float32)
    np.testing.assert_allclose(vectors, encode(encoder, sentences), atol=2e-5)
    assert [path.name for path in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError(28, "No space left on device")])
def test_what_is_done_is_kept_and_the_file_is_the_same(encoder, corpus, tmp_path, name, error):
    encode_to_file(encoder, corpus, tmp_path / "whole" / name)
    with pytest.raises((KeyboardInterrupt, OutputError), match=r"32 of 70|No space left"):
        encode_to_file(encoder, corpus, tmp_path / name, advance=stop_after(2, error))
    assert not (tmp_path / name).exists()
    told = []
    assert encode_to_file(encoder, corpus, tmp_path / name, advance=told.append).kept == 32
    assert told == [32, 16, 16, 6]
    assert (tmp_path / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == [name, "whole"]


def test_vectors_of_another_encoder_or_other_sentences_are_not_kept(encoder, corpus, tmp_path, tmp_path_factory):
    output = tmp_path / "v.npy"
    others = read_corpus(tiny.make_sentences(70, seed=5), cache=tmp_path_factory.mktemp("others"))
    with pytest.raises(KeyboardInterrupt, match="16 of 70"):
        encode_to_file(encoder, corpus, output, advance=stop_after(1))
    with pytest.raises(KeyboardInterrupt, match="16 of 70"):
        encode_to_file(encoder, others, output, advance=stop_after(1))
    encoder.transformer.embeddings.word_embeddings.weight.data[9] += 1e-3
    assert len(list(tmp_path.iterdir())) == 2
    assert encode_to_file(encoder, corpus, output).kept == 0
    assert [path.name for path in tmp_path.iterdir()] == ["v.npy"]


def test_a_chunk_cut_short_is_made_again(encoder, corpus, tmp_path):
    encode_to_file(encoder, corpus, tmp_path / "whole.npy")
    with pytest.raises(KeyboardInterrupt):
        encode_to_file(encoder, corpus, tmp_path / "v.npy", advance=stop_after(2))
    (part,) = tmp_path.glob(".v.npy.*.part")
    with (part / "vectors.npy").open("ab") as file:
        file.write(b"half a chunk")
    encode_to_file(encoder, corpus, tmp_path / "v.npy")
    assert (tmp_path / "v.npy").read_bytes() == (tmp_path / "whole.npy").read_bytes()


def test_a_part_without_its_vectors_is_begun_again(encoder, corpus, tmp_path):
    with pytest.raises(KeyboardInterrupt):
        encode_to_file(encoder, corpus, tmp_path / "v.npy", advance=stop_after(2))
    (part,) = tmp_path.glob(".v.npy.*.part")
    (part / "vectors.npy").unlink()
    assert encode_to_file(encoder, corpus, tmp_path / "v.npy").kept == 0
    assert np.isfinite(np.load(tmp_path / "v.npy")).all()


def test_a_file_is_written_by_one_process_at_a_time(encoder, corpus, tmp_path, monkeypatch):
    def taken(path, words):
        raise OutputError(words)

    monkeypatch.setattr("selfsent.search.vectors.lock_directory", taken)
    with pytest.raises(OutputError, match=r"another selfsent is writing .*v\.npy: wait for it, or name another file"):
        encode_to_file(encoder, corpus, tmp_path / "v.npy")


def test_npz_does_not_depend_on_the_time(encoder, corpus, tmp_path):
    encode_to_file(encoder, corpus, tmp_path / "v.npz")
    assert zipfile.ZipFile(tmp_path / "v.npz").infolist()[0].date_time[0] == 1980


def test_what_cannot_be_written_is_refused(encoder, corpus, tmp_path):
    with pytest.raises(SettingsError, match=r"must end in \.npy, \.npz or \.parquet"):
        encode_to_file(encoder, corpus, tmp_path / "v.csv")
    (tmp_path / "d.npy").mkdir()
    with pytest.raises(OutputError, match="is a directory"):
        encode_to_file(encoder, corpus, tmp_path / "d.npy")
    (tmp_path / "file").touch()
    with pytest.raises(OutputError, match="cannot be written"):
        encode_to_file(encoder, corpus, tmp_path / "file" / "v.npy")


def test_a_pooler_that_nothing_reads_may_change(encoder, corpus, tmp_path):
    with pytest.raises(KeyboardInterrupt):
        encode_to_file(encoder, corpus, tmp_path / "v.npy", advance=stop_after(2))
    poolers = [value for name, value in encoder.sentence_transformer.state_dict().items() if ".pooler." in name]
    assert poolers
    for weight in poolers:
        weight += 1
    assert encode_to_file(encoder, corpus, tmp_path / "v.npy").kept == 32


@pytest.mark.parametrize("file", ["vectors.npy", "done.json"])
def test_a_damaged_part_is_made_again(encoder, corpus, tmp_path, file):
    encode_to_file(encoder, corpus, tmp_path / "whole.npy")
    with pytest.raises(KeyboardInterrupt):
        encode_to_file(encoder, corpus, tmp_path / "v.npy", advance=stop_after(2))
    (part,) = tmp_path.glob(".v.npy.*.part")
    data = bytearray((part / file).read_bytes())
    data[200 if file == "vectors.npy" else data.index(b"3")] ^= 1
    (part / file).write_bytes(bytes(data))
    with pytest.warns(Damaged, match=r"what an earlier run left of .*v\.npy is damaged"):
        assert encode_to_file(encoder, corpus, tmp_path / "v.npy").kept == 0
    assert (tmp_path / "v.npy").read_bytes() == (tmp_path / "whole.npy").read_bytes()
