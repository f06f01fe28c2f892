import sys
import types

import pytest
from corpus_files import parquet_bytes

from selfsent.data.corpus.hub import HubDataset
from selfsent.errors import CorpusError


@pytest.fixture
def mirror(write, tmp_path, monkeypatch):
    monkeypatch.setenv("SELFSENT_DATA", str(tmp_path / "mirror"))
    write("mirror/org/plain/train.parquet", parquet_bytes(text=["a", "b"]))
    write("mirror/org/parts/en/test.parquet", parquet_bytes(text=["c", "d"]))


@pytest.fixture
def fake_hub(monkeypatch):
    """A stand-in for `datasets` that serves one data set and remembers how it was asked."""
    asked = []

    def load_dataset(name, config=None, split=None, streaming=False):
        asked.append((name, config, split, streaming))
        if name != "org/remote":
            raise ConnectionError("Couldn't reach the hub\nwith a long story")
        batches = [{"text": ["one", "two"], "n": [1, 2]}, {"text": ["three"], "n": [3]}]
        return types.SimpleNamespace(iter=lambda batch_size: iter(batches))

    monkeypatch.delenv("SELFSENT_DATA", raising=False)
    monkeypatch.setattr("selfsent.data.corpus.hub.require_hub", lambda name: None)
    monkeypatch.setitem(sys.modules, "datasets", types.SimpleNamespace(load_dataset=load_dataset))
    return asked


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("org/name", HubDataset("org/name", None, "train")),
        ("org/name:en", HubDataset("org/name", "en", "train")),
        ("org/name:en:test", HubDataset("org/name", "en", "test")),
        ("org/name::test", HubDataset("org/name", None, "test")),
        ("name", None),
        ("../org/name", None),
        ("org/../name", None),
        ("org/name:a:b:c", None),
    ],
)
def test_parse(text, expected):
    assert HubDataset.parse(text) == expected


@pytest.mark.usefixtures("mirror")
def test_the_mirror_comes_first(read):
    assert read("org/plain").texts() == ["a", "b"]
    assert read("org/parts:en:test").texts() == ["c", "d"]
    with pytest.raises(CorpusError, match="org/plain: the mirror has no split 'dev', only train"):
        read("org/plain::dev")
    with pytest.raises(CorpusError, match="org/parts: the mirror has it in parts en: write"):
        read("org/parts")


def test_the_hub_is_streamed_once(fake_hub, read):
    assert read("org/remote:en", label_column="n").labels.tolist() == [1, 2, 3]
    assert read("org/remote:en", label_column="n").texts() == ["one", "two", "three"]
    assert fake_hub == [("org/remote", "en", "train", True)]


def test_the_hub_is_streamed_once_to_see_whether_texts_are_to_be_split(fake_hub, read):
    for _ in range(2):
        assert read("org/remote", split_sentences=None).texts() == ["one", "two", "three"]
    assert fake_hub == [("org/remote", None, "train", True)]


@pytest.mark.usefixtures("fake_hub")
def test_errors_of_the_hub_are_one_line(read):
    with pytest.raises(CorpusError, match=r"org/gone: no such file, and not .*: Couldn't reach the hub$"):
        read("org/gone")
    with pytest.raises(CorpusError, match=r"org/remote: no column 'body'; it has 'text', 'n'"):
        read("org/remote", text_column="body")


def test_without_datasets(read, monkeypatch):
    monkeypatch.delenv("SELFSENT_DATA", raising=False)
    monkeypatch.setattr("selfsent.data.corpus.hub.require_hub", lambda name: None)
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(CorpusError, match=r"org/name: no such file, .* pip install 'selfsent\[hub\]'"):
        read("org/name")


def test_without_a_network_it_says_so_at_once(read, monkeypatch):
    monkeypatch.delenv("SELFSENT_DATA", raising=False)
    monkeypatch.setattr("selfsent.data.corpus.remote.getproxies", dict)
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(CorpusError, match=r"org/name: no such file, and the hub cannot be reached to look there"):
        read("org/name")
