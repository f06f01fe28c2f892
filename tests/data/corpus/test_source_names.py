import io
import os
import threading
from pathlib import Path

import pytest
from corpus_files import jsonl_bytes

from selfsent.errors import CorpusError


def test_folder_pattern_and_list_agree(read, write, tmp_path):
    a, b = write("d/a.txt", "one\ntwo\n"), write("d/deep/b.jsonl", jsonl_bytes([{"text": "three"}]))
    write("d/.hidden/c.txt", "no")
    write("d/.d.txt", "no")
    write("d/readme.md", "no")
    expected = ["one", "two", "three"]
    for source in (tmp_path / "d", f"{tmp_path}/d/**/*.*[tl]", [a, b], [str(a), str(b)], (str(tmp_path / "d"),)):
        corpus = read(source)
        assert corpus.texts() == expected
        assert corpus.report.files == 2


def test_strings(read):
    assert read(["one. Two", "two", "one. Two"]).texts() == ["one. Two", "two"]
    assert read(f"sentence {n}" for n in range(3)).texts() == ["sentence 0", "sentence 1", "sentence 2"]
    with pytest.raises(CorpusError, match="item 1 of the texts is int, not a string"):
        read(["one", 2])
    with pytest.raises(CorpusError, match="no text in it"):
        read([])
    with pytest.raises(CorpusError, match="have no columns"):
        read(["one", "two"], label_column="l")


def test_standard_input(read, monkeypatch):
    for data, documents in ((b"one\ntwo\n", None), (b"one\n\ntwo\n", [0, 1])):
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(data)))
        corpus = read("-")
        assert corpus.texts() == ["one", "two"]
        assert (None if documents is None else corpus.documents.tolist()) == documents
    assert corpus.source == "standard input"
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"one\n\xff")))
    with pytest.raises(CorpusError, match="standard input, line 2: not UTF-8"):
        read("-")


def test_a_named_pipe(read, tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=lambda: pipe.write_bytes(b"one\ntwo\n"))
    writer.start()
    assert read(pipe).texts() == ["one", "two"]
    writer.join()


@pytest.mark.parametrize(
    ("source", "message"),
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
def test_missing(source, message, read):
    with pytest.raises(CorpusError, match=message) as caught:
        read(source)
    assert "\n" not in str(caught.value)


def test_a_link_to_nowhere(read, write, tmp_path):
    write("d/a.txt", "one\ntwo\n")
    (tmp_path / "d" / "b.txt").symlink_to(tmp_path / "gone.txt")
    for source in (tmp_path / "d", tmp_path / "d" / "b.txt"):
        with pytest.raises(CorpusError, match=r"b\.txt: "):
            read(source)


def test_a_folder_without_text(read, write, tmp_path):
    write("d/picture.png", b"x")
    with pytest.raises(CorpusError, match=r"d: no text in this folder; known are \.txt, \.csv"):
        read(tmp_path / "d")


def test_folders_behind_links_are_read_once(read, tmp_path):
    (tmp_path / "else" / "deep").mkdir(parents=True)
    (tmp_path / "else" / "deep" / "b.txt").write_text("ko mi\n")
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "a.txt").write_text("ba de\n")
    (tmp_path / "here" / "more").symlink_to(tmp_path / "else")
    (tmp_path / "else" / "deep" / "up").symlink_to(tmp_path / "here")
    corpus = read(tmp_path / "here")
    assert corpus.texts() == ["ba de", "ko mi"]
    assert corpus.report.files == 2
