import gzip
import os
import re
import sys
from pathlib import Path

import fsspec
import pytest
from corpus_files import COMPRESS, SENTENCES, encoded

import web
from selfsent.data.corpus import remote
from selfsent.data.corpus.remote import RemoteFile, is_address, shown
from selfsent.errors import CorpusError


@pytest.fixture
def put():
    """Put a file into memory, where `memory://` finds it."""
    memory = fsspec.filesystem("memory")

    def call(path, data):
        memory.pipe(path, data.encode() if isinstance(data, str) else data)

    yield call
    memory.store.clear()
    memory.pseudo_dirs[:] = [""]


@pytest.fixture
def site():
    pytest.importorskip("aiohttp", reason="aiohttp, by which fsspec reads from the web, is not installed")
    with web.served() as found:
        yield found


def refused(read, source, **options):
    with pytest.raises(CorpusError) as caught:
        read(source, **options)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("compression", COMPRESS)
@pytest.mark.parametrize("suffix", [".txt", ".csv", ".jsonl", ".parquet"])
def test_every_kind_of_file_is_read_as_from_here(suffix, compression, read, put):
    put(f"/shelf/x{suffix}{compression}", COMPRESS[compression](encoded(suffix, SENTENCES)))
    assert read(f"memory://shelf/x{suffix}{compression}").texts() == SENTENCES


def test_folders_patterns_and_lists(read, put, write):
    for name, text in {"a.txt": "one\ntwo", "deep/b.txt": "three", ".c.txt": "no", "readme.md": "no"}.items():
        put(f"/shelf/{name}", text)
    here = str(write("d.txt", "four\n"))
    expected = ["one", "two", "three"]
    for source in ("memory://shelf", "memory://shelf/", "memory://shelf/[ad]*/*.t?t", "memory://shelf/**/*.txt"):
        found = read(source, min_rows=1).texts()
        assert found == (["three"] if "?" in source else expected)
    assert read(["memory://shelf", here]).texts() == [*expected, "four"]
    assert read(f"file://{here}", min_rows=1).texts() == ["four"]
    assert read("memory://shelf").source == "memory://shelf"


def test_a_file_that_did_not_change_is_not_read_again(read, put, monkeypatch):
    put("/shelf/x.txt", "one\ntwo\n")
    first = read("memory://shelf/x.txt")
    with monkeypatch.context() as patched:
        patched.setattr(RemoteFile, "open", lambda self: pytest.fail("read again"))
        assert read("memory://shelf/x.txt").directory == first.directory
    put("/shelf/x.txt", "one\nTWO\n")
    assert read("memory://shelf/x.txt").texts() == ["one", "TWO"]


def test_a_tag_of_a_web_server_counts_and_size_alone_does_not(read, site):
    address, files = site
    for folder in ("tagged", "plain"):
        for number in (0, 0, 1, 1):
            files[f"/{folder}/x.txt"] = f"one\ntwo {number}\n".encode()
            assert read(f"{address}/{folder}/x.txt").texts() == ["one", f"two {number}"]
    loaded = [path for method, path, _ in files["asked"] if method == "GET"]
    assert (loaded.count("/tagged/x.txt"), loaded.count("/plain/x.txt")) == (2, 4)


@pytest.mark.parametrize("folder", ["ranges", "whole", "cut"])
@pytest.mark.parametrize("suffix", [".txt", ".csv.gz", ".parquet"])
def test_whatever_a_web_server_can(folder, suffix, read, site, tmp_path):
    address, files = site
    texts = [f"sentence {number} {os.urandom(100).hex()}" for number in range(3000)]
    data = encoded(suffix.removesuffix(".gz"), texts)
    files[f"/{folder}/x{suffix}"] = gzip.compress(data) if suffix.endswith(".gz") else data
    source = f"{address}/{folder}/x{suffix}?key=1"
    if folder == "cut":
        assert re.search("cut.*run the same command again", refused(read, source))
        assert list((tmp_path / "cache" / "corpora").iterdir()) == []
    else:
        assert read(source).texts() == texts


def test_answers_of_a_web_server_are_reported_without_secrets(read, site):
    address, files = site
    for status, said in ((404, "not found"), (403, "access denied"), (401, "access denied"), (503, "answered 503")):
        files["/x.txt"] = status
        line = refused(read, f"{address.replace('//', '//me:secret@')}/x.txt?signature=abc")
        assert said in line
        assert not re.search("secret|abc", line)
    assert "Connect call failed" in refused(read, "http://127.0.0.1:9/x.txt")


def test_a_file_of_which_less_comes_than_there_is(read, put, monkeypatch):
    put("/shelf/x.txt", "one\ntwo\n" * 100)
    memory = fsspec.filesystem("memory")
    info = memory.info
    monkeypatch.setattr(type(memory), "info", lambda self, path, **options: {**info(path), "size": 1000})
    line = refused(read, "memory://shelf/x.txt")
    assert line == "memory:///shelf/x.txt: cut short: 800 of 1,000 bytes came; run the same command again"


@pytest.mark.parametrize("ending", sorted(COMPRESS.keys() - {""}))
def test_an_archive_that_ends_too_early(ending, read, put):
    put(f"/shelf/x.txt{ending}", COMPRESS[ending](os.urandom(10_000).hex().encode())[:-100])
    assert "is the file broken or cut short?" in refused(read, f"memory://shelf/x.txt{ending}")


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("memory://shelf/none.txt", "memory://shelf/none.txt: not found"),
        ("memory://shelf/*.txt", "memory://shelf/*.txt: no file matches this pattern"),
        ("memory://shelf/x.docx", "unknown kind of file; known are .txt"),
        ("memory://deep", "memory://deep: no text in this folder"),
        ("nope://x/y.txt", "nope://x/y.txt: unknown protocol nope://, such as s3, gs, az, hf or https are known"),
        ("htps://x/y.txt", "htps://x/y.txt: unknown protocol htps://, did you mean 'https'?"),
        (Path("s3://x/y.txt"), "no such file or directory"),
    ],
)
def test_what_is_not_there(source, said, read, put):
    put("/shelf/x.docx", "x")
    put("/deep/x.docx", "x")
    assert said in refused(read, source)


def test_a_driver_that_is_not_installed(read, monkeypatch):
    for protocol, package in (("s3", "s3fs"), ("gs", "gcsfs"), ("az", "adlfs"), ("https", "aiohttp")):
        monkeypatch.setitem(sys.modules, package, None)
        monkeypatch.setattr(sys.modules["fsspec.registry"], "_registry", {})
        line = refused(read, f"{protocol}://x/y.txt")
        assert "reading it needs " in line
        assert package in line


def test_what_drivers_raise():
    def wrapped(outer, inner):
        outer.__cause__ = inner
        return outer

    for error, said in (
        (RuntimeError("Unable to locate credentials\nmore"), "cannot be read: Unable to locate credentials;"),
        (wrapped(PermissionError("Forbidden"), OSError("HeadObject: Forbidden")), "access denied.*: HeadObject"),
        (FileNotFoundError("x"), "not found$"),
        (wrapped(FileNotFoundError("x"), TimeoutError("no answer")), "cannot be read: no answer;"),
        (ConnectionResetError(), "cannot be read: ConnectionResetError; .*run the same command again"),
    ):
        assert re.match(said, remote.why(error)), error


def test_addresses():
    assert all(map(is_address, ("s3://a/b.txt", "zip://*.csv::https://a/b.zip", "HTTPS://a", "file:///x")))
    assert not any(map(is_address, ("a.txt", "org/name:part:split", "C:\\x", "see https://a", "s3:/a", "://a")))
    assert shown("https://me:pw@host/x.csv?sig=1") == "https://host/x.csv?…"
    assert shown("s3://bucket/x?.csv") == "s3://bucket/x?.csv"
