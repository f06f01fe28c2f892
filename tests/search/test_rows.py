"""Files of vectors that line up with the input: repeated and empty texts have their rows."""

import csv
import random

import numpy as np
import pyarrow.parquet as pq
import pytest

import tiny
from selfsent.data.corpus import read_corpus
from selfsent.data.vector_files import StoredVectors, VectorsFile
from selfsent.errors import DataError
from selfsent.models.encoding import encode
from selfsent.search import Hit, Pair, encode_corpus, encode_to_file, find_clusters, search
from selfsent.search.rows import TextsInOrder
from selfsent.search.tables import group_columns, grouped, hits_with_texts, with_texts, write_table

NAMES = ("v.npy", "v.npz", "v.parquet")


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch):
    monkeypatch.setattr("selfsent.models.encoding.CHUNK", 16)
    monkeypatch.setattr("selfsent.search.rows.CHUNK", 11)
    monkeypatch.setattr("selfsent.search.rows._READ_TOGETHER", 9)
    monkeypatch.setattr("selfsent.data.vector_files.TOGETHER", 30)


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
    return read_corpus(texts, carry=(), cache=tmp_path_factory.mktemp("corpora"))


def read(path):
    if path.suffix == ".parquet":
        return np.array(pq.read_table(path)["embedding"].to_pylist(), np.float32)
    found = np.load(path)
    return found["embeddings"] if path.suffix == ".npz" else found


@pytest.mark.parametrize("name", NAMES)
def test_there_is_a_vector_for_each_row(encoder, rows, texts, tmp_path, name):
    told = []
    made = encode_to_file(encoder, rows, tmp_path / name, told.append)
    assert (made.rows, made.kept, made.zeros, sum(told)) == (100, 0, 3, 100)
    vectors = read(tmp_path / name)
    filled = np.array([bool(text.strip()) for text in texts])
    assert not vectors[~filled].any()
    np.testing.assert_allclose(vectors[filled], encode(encoder, [text for text in texts if text.strip()]), atol=2e-5)
    for row, text in enumerate(texts):  # what is repeated was computed once
        assert np.array_equal(vectors[row], vectors[texts.index(text)])
    if name == "v.parquet":
        table = pq.read_table(tmp_path / name)
        assert table["row"].to_pylist() == list(range(100))
        assert table["text"].to_pylist() == [text.strip() for text in texts]


def test_a_repeated_text_is_computed_once(encoder, rows, tmp_path, monkeypatch):
    computed = []

    def spy(model, some, side=None):
        some = list(some)
        computed.extend(some)
        yield encode(model, some)

    monkeypatch.setattr("selfsent.search.vectors.encode_stream", spy)
    encode_to_file(encoder, rows, tmp_path / "v.npy")
    assert computed == rows.texts()


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("where", ["encoding", "writing"])
def test_killed_it_goes_on_and_the_file_is_the_same(encoder, rows, tmp_path, monkeypatch, name, where):
    encode_to_file(encoder, rows, tmp_path / "whole" / name)
    calls = iter(range(100))

    def stop(*_):
        if next(calls) == (where == "encoding"):
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        if where == "writing":
            patch.setattr(f"selfsent.search.rows._write_{name[2:]}", stop)
        with pytest.raises(KeyboardInterrupt, match=r"of 100 rows are done"):
            encode_to_file(encoder, rows, tmp_path / name, stop if where == "encoding" else lambda count: None)
    assert not (tmp_path / name).exists()
    told = []
    kept = encode_to_file(encoder, rows, tmp_path / name, told.append).kept
    assert kept == told[0] == (rows.input_rows.done(32) if where == "encoding" else 100)
    assert sum(told) == 100
    assert (tmp_path / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == [name, "whole"]


@pytest.mark.parametrize("name", NAMES)
def test_the_file_serves_in_place_of_the_encoder(encoder, rows, tmp_path, name):
    encode_to_file(encoder, rows, tmp_path / name)
    told = []
    vectors = encode_corpus(encoder, rows, told.append, VectorsFile(tmp_path / name))
    assert sum(told) == 100
    np.testing.assert_allclose(vectors, encode_corpus(encoder, rows), atol=1e-5)
    found, expected = (
        search(encoder, rows, ["ba de fi"], 5, file=file) for file in (VectorsFile(tmp_path / name), None)
    )
    assert [hit.row for hit in found[0]] == [hit.row for hit in expected[0]]


def test_a_file_of_distinct_texts_is_to_be_made_again(encoder, rows, tmp_path):
    np.save(tmp_path / "old.npy", encode(encoder, rows.texts()))
    with pytest.raises(DataError, match=r"old.npy holds 53 vectors; this corpus has 100 rows: encode it again"):
        encode_corpus(encoder, rows, file=VectorsFile(tmp_path / "old.npy"))


def test_texts_are_compared_where_they_are_repeated_too(encoder, rows, texts, tmp_path):
    place = next(row for row in range(60, 97) if texts[row] in texts[:row] and texts[row])
    other = read_corpus([*texts[:place], "another one", *texts[place + 1 :]], carry=(), cache=tmp_path)
    encode_to_file(encoder, other, tmp_path / "v.parquet")
    with pytest.raises(DataError, match=f"another corpus: row {place} is 'another one'"):
        encode_corpus(encoder, rows, file=VectorsFile(tmp_path / "v.parquet"))


def test_a_file_of_rows_can_stand_for_the_model(encoder, rows, texts, tmp_path):
    encode_to_file(encoder, rows, tmp_path / "v.parquet")
    stored = StoredVectors(tmp_path / "v.parquet")
    np.testing.assert_allclose(stored(rows.texts()), encode(encoder, rows.texts()), atol=2e-5)


@pytest.mark.parametrize("name", ["v.npz", "v.parquet"])
def test_split_sentences_keep_the_way_back(encoder, tmp_path, name):
    corpus = read_corpus(["Ba de. Fi go.", "", "Fi go."], carry=(), split_sentences=True, cache=tmp_path / "c")
    assert encode_to_file(encoder, corpus, tmp_path / name).rows == 4
    found = pq.read_table(tmp_path / name) if name == "v.parquet" else np.load(tmp_path / name)
    row, sentence = (np.array(found[column]).tolist() for column in ("row", "sentence"))
    assert (row, sentence) == ([0, 0, 1, 2], [0, 1, 0, 0])
    vectors = read(tmp_path / name)
    assert np.array_equal(vectors[1], vectors[3])
    assert not vectors[2].any()
    assert len(encode_corpus(encoder, corpus, file=VectorsFile(tmp_path / name))) == 2


def test_texts_in_order(rows, texts):
    reader = TextsInOrder(rows)
    found = [text for count in (1, 40, 7, 52) for text in reader.take(count)]
    assert found == [text.strip() for text in texts]


def test_results_tell_rows_of_the_input(tmp_path):
    corpus = read_corpus(["ko", "", "ba de", "ko", "fi", "ko"], carry=(), cache=tmp_path)
    assert list(hits_with_texts("q", [Hit(0, 0.9, 0.25), Hit(2, 0.5, 0.0)], corpus)) == [
        {"query": "q", "cosine": 0.9, "words": 0.25, "row": 0, "repeats": 2, "text": "ko"},
        {"query": "q", "cosine": 0.5, "words": 0.0, "row": 4, "repeats": 0, "text": "fi"},
    ]
    (pair,) = with_texts([Pair(0.25, 1, 2)], corpus)
    assert pair == {
        "score": 0.25,
        "cosine": 0.25,
        "words": 0.0,
        "row1": 2,
        "row2": 4,
        "repeats1": 0,
        "repeats2": 0,
        "text1": "ba de",
        "text2": "fi",
    }


def test_every_row_with_a_text_has_its_group(tmp_path):
    corpus = read_corpus(["ko", "", "ba de", "fi", "ko", "ko"], carry=(), cache=tmp_path)
    angles = np.array([0.0, 1.5, 1.6])
    vectors = np.stack([np.cos(angles), np.sin(angles)], 1).astype(np.float32)
    clusters = find_clusters(vectors, 2, repeats=corpus.input_rows.repeats)
    # Two different texts against one that is there three times: rows count.
    assert clusters.sizes.tolist() == [3, 2]
    found = list(grouped(clusters, corpus))
    assert [(row["row"], row["cluster"]) for row in found[:3]] == [(0, 0), (4, 0), (5, 0)]
    assert sorted((row["row"], row["cluster"]) for row in found[3:]) == [(2, 1), (3, 1)]
    write_table(found, group_columns(corpus), tmp_path / "g.parquet")
    assert pq.read_table(tmp_path / "g.parquet").to_pylist() == found


def test_a_carriage_return_in_a_cell_breaks_no_line(tmp_path):
    row = {"note": "a\rb\r\nc", "n": 1}
    for name, mark in (("t.csv", ","), ("t.tsv", "\t")):
        write_table([row, row], {"note": str, "n": int}, tmp_path / name)
        with (tmp_path / name).open(newline="") as file:
            assert list(csv.reader(file, delimiter=mark)) == [["note", "n"], ["a\nb\nc", "1"], ["a\nb\nc", "1"]]
