import gzip
import os

import numpy as np
import pytest

from selfsent.data.word_vectors import word_blocks
from selfsent.errors import BaseEncoderError, Damaged, DataError
from selfsent.scorers.load_scorer import check_model, load_scorer

VECTORS = {"red": [1.0, 0.0, 2.0], "car": [0.0, 1.0, 0.5], "Car": [5.0, 5.0, 5.0], "late": [-1.0, 2.0, 0.25]}


def lines(vectors=None):
    return "".join(f"{word} {' '.join(map(str, v))}\n" for word, v in (vectors or VECTORS).items())


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("SELFSENT_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def glove(tmp_path):
    (tmp_path / "glove.txt").write_text(lines())
    return tmp_path / "glove.txt"


def test_a_sentence_is_the_mean_of_its_words(glove):
    found = load_scorer(f"glove:{glove}")(["Red car!", "red unknown, red", "Car", "nothing known", ""])
    expected = [[0.5, 0.5, 1.25], [1, 0, 2], [5, 5, 5], [0, 0, 0], [0, 0, 0]]
    np.testing.assert_allclose(found, expected)


@pytest.mark.parametrize("kind", ["word2vec", "gzip", "odd words", "odd first", "numbers"])
def test_the_forms_files_have(kind, glove, tmp_path):
    if kind == "word2vec":
        glove.write_text(f"{len(VECTORS)} 3\n" + lines())
    elif kind == "gzip":
        glove.write_bytes(gzip.compress(lines().encode()))
    elif kind == "odd words":  # spaces in a word, letters that are no UTF-8, and a word that comes twice
        glove.write_bytes(b"red 1 0 2\n. . . 9 9 9\n\xff\xfe 8 8 8\n\n" + lines().encode())
    elif kind == "odd first":
        glove.write_text("at name@domain.com 9 9 9\n. . . 9 9 9\n" + lines())
    else:  # words that are some
        glove.write_text("7 3\n2017 9 9 9\n1 8 8 8\n-.5e3 8 8 8\n" + lines())
    assert load_scorer(f"glove:{glove}")(["red car"]).tolist() == [[0.5, 0.5, 1.25]]


def test_blocks_of_any_size_have_the_same_words(glove):
    [(words, vectors)] = word_blocks(glove)
    assert [words, vectors.tolist()] == [[*VECTORS], [*VECTORS.values()]]
    small = [*word_blocks(glove, together=2)]
    assert [len(each) for each, _ in small][:-1] == [2] * (len(small) - 1)
    assert [word for each, _ in small for word in each] == words
    assert np.concatenate([each for _, each in small]).tolist() == vectors.tolist()


def test_stop_words_are_left_out_of_the_mean(glove):
    (glove.parent / "more.txt").write_text(lines({**VECTORS, "the": [9.0, 9.0, 9.0], "The": [8.0, 8.0, 8.0]}))
    texts = ["The red the car", "the"]
    assert load_scorer(f"nostop:{glove.parent}/more.txt")(texts).tolist() == [[0.5, 0.5, 1.25], [0, 0, 0]]
    assert load_scorer(f"glove:{glove.parent}/more.txt")(texts).tolist() == [[4.5, 4.5, 4.875], [9, 9, 9]]
    assert load_scorer(f"nostop:{glove}").pooling == "nostop"


def test_a_file_is_read_once_until_it_changes(glove, cache):
    load_scorer(f"glove:{glove}")(["red"])
    (read,) = cache.rglob("*.f32")
    before = read.stat().st_mtime_ns
    assert load_scorer(f"glove:{glove}")(["late"]).tolist() == [VECTORS["late"]]
    assert read.stat().st_mtime_ns == before
    glove.write_text(lines({"late": [7, 7, 7]}))
    os.utime(glove, (1, 1))
    assert load_scorer(f"glove:{glove}")(["late"]).tolist() == [[7, 7, 7]]


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b"red 1 2 3\ncar 1 2\n", "line 2: expected a word and 3 numbers, found 2"),
        (b"red 1 2 3\ncar 1 2 nan\n", "line 2: expected a word and 3 numbers, found 0"),
        (b"red 1 2 3\ncar 0.1 1 2 3\n", "line 2: expected a word and 3 numbers, found 4"),
        (b"red 1 2 3\ncar 0,5 1 2 3\n", "line 2: expected a word and 3 numbers"),
        (b"2 3\nred 1 2 3\ncar 0.1 1 2 3\n", "line 3: expected a word and 3 numbers, found 4"),
        (b"9999 3\nred 1 2 3\n", "holds 1 word, and 9,999 by its first line: it is damaged or cut"),
        (b"2 300\nred 1 2 3\ncar 1 2 3\n", "line 2: expected a word and 300 numbers, found 3"),
        (b"3 3\nred \x00\x01\x02\x03\n\x7f", "line 2: expected a word and its numbers on each line"),
        (b"a sentence of words and nothing else\n", "line 1: expected a word and its numbers"),
        (b"", "holds no vectors"),
        (b"\x1f\x8b\x08broken", "cannot be read"),
        (b"x" * (1 << 21), "line 1 is longer than 1,048,576 bytes"),
    ],
)
def test_what_is_no_file_of_word_vectors(content, complaint, glove, cache):
    glove.write_bytes(content)
    with pytest.raises(DataError, match=complaint):
        load_scorer(f"glove:{glove}")(["red"])
    assert not list(cache.rglob("*.f32"))
    if "by its first line" not in complaint:  # the end is not looked at
        with pytest.raises(DataError, match=complaint):
            check_model(f"glove:{glove}")


def test_a_file_that_is_not_there():
    with pytest.raises(DataError, match=r"nowhere\.txt cannot be read: No such file"):
        check_model("glove:nowhere.txt")
    with pytest.raises(BaseEncoderError):
        check_model("glove")


@pytest.mark.parametrize("name", ["vectors.f32", "words.parquet", "sums.json"])
def test_a_damaged_cache_is_named_and_made_again(glove, cache, name):
    texts = ["red late", "late"]
    before = load_scorer(f"glove:{glove}")(texts)
    (file,) = cache.rglob(name)
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(bytes(data))
    with pytest.warns(Damaged, match="is damaged, and is made again"):
        assert np.array_equal(load_scorer(f"glove:{glove}")(texts), before)


def test_results_replace_no_vectors(glove, tmp_path, capsys):
    from selfsent.cli.main import main

    (tmp_path / "pairs.tsv").write_text("red\tcar\t1\nlate\tcar\t2\nred\tlate\t0\n")
    with pytest.raises(SystemExit) as stop:
        main(["evaluate", f"nostop:{glove}", "--pairs", str(tmp_path / "pairs.tsv"), "--json", str(glove)])
    assert stop.value.code == 2
    assert glove.read_text() == lines()
