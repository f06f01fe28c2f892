import io
import os
import threading
from pathlib import Path

import pytest
from corpus_files import jsonl_bytes

from selfsent.errors import CorpusError


def test_folder_pattern_and_list_agree(read, write, tmp_path):
    a, b = write("d/a.txt", "one\ntwo\n"), write("d/deep/b.jsonl", jsonl_bytes([{"text": "three"}]))
    for name in ("d/.hidden/c.txt", "d/.d.txt", "d/readme.md"):
        write(name, "no")
    for source in (tmp_path / "d", f"{tmp_path}/d/**/*.*[tl]", [a, b], [str(a), str(b)], (str(tmp_path / "d"),)):
        corpus = read(source)
        assert (corpus.texts(), corpus.report.files) == (["one", "two", "three"], 2)


def test_strings(read):
    assert read(["one. Two", "two", "one. Two"]).texts() == ["one. Two", "two"]
    assert read(f"sentence {n}" for n in range(3)).texts() == ["sentence 0", "sentence 1", "sentence 2"]
    for texts, options, said in (
        (["one", 2], {}, "item 1 of the texts is int, not a string"),
        ([], {}, "no text in it"),
        (["one", "two"], {"label_column": "l"}, "have no columns"),
    ):
        with pytest.raises(CorpusError, match=said):
            read(texts, **options)


def test_standard_input(read, monkeypatch):
    for data, documents in ((b"one\ntwo\n", None), (b"one\n\ntwo\n", [0, 1])):
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(data)))
        corpus = read("-")
        assert (corpus.texts(), corpus.source) == (["one", "two"], "standard input")
        assert (None if documents is None else corpus.documents.tolist()) == documents
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"one\n\xff")))
    with pytest.raises(CorpusError, match="standard input, line 2: not UTF-8"):
        read("-")


def test_a_named_pipe(read, tmp_path):
    os.mkfifo(pipe := tmp_path / "pipe")
    writer = threading.Thread(target=lambda: pipe.write_bytes(b"one\ntwo\n"))
    writer.start()
    assert read(pipe).texts() == ["one", "two"]
    writer.join()


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("missing.txt", "missing.txt: no such file or directory"),
        ("some/missing.csv.gz", "some/missing.csv.gz: no such file or directory"),
        ("/not/there", "/not/there: no such file or directory"),
        ("nothing-*.txt", r"nothing-\*.txt: no file matches this pattern"),
        (["a.txt", "b.txt"], "a.txt: no such file or directory"),
        (Path("gone"), "gone: no such file or directory"),
        ("a\0b", "no such file or directory"),
    ],
)
def test_missing(source, said, read):
    with pytest.raises(CorpusError, match=rf"^[^\n]*{said}$"):
        read(source)


def test_links(read, write, tmp_path):
    write("here/a.txt", "ba de\n")
    write("else/deep/b.txt", "ko mi\n")
    (tmp_path / "here" / "more").symlink_to(tmp_path / "else")
    (tmp_path / "else" / "deep" / "up").symlink_to(tmp_path / "here")
    corpus = read(tmp_path / "here")
    assert (corpus.texts(), corpus.report.files) == (["ba de", "ko mi"], 2)
    (tmp_path / "here" / "c.txt").symlink_to(tmp_path / "gone.txt")
    for source in (tmp_path / "here", tmp_path / "here" / "c.txt"):
        with pytest.raises(CorpusError, match=r"c\.txt: "):
            read(source)


def test_a_folder_without_text(read, write, tmp_path):
    write("d/picture.png", b"x")
    with pytest.raises(CorpusError, match=r"d: no text in this folder; known are \.txt, \.csv"):
        read(tmp_path / "d")
