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
def hub(monkeypatch):
    """A stand-in for `datasets` that serves one data set and records its requests."""
    requests = []

    def load_dataset(name, config=None, split=None, streaming=False):
        requests.append((name, config, split, streaming))
        if name != "org/remote":
            raise ConnectionError("Couldn't reach the hub\nwith a long story")
        batches = [{"text": ["one", "two"], "n": [1, 2]}, {"text": ["three"], "n": [3]}]
        return types.SimpleNamespace(iter=lambda batch_size: iter(batches))

    monkeypatch.delenv("SELFSENT_DATA", raising=False)
    monkeypatch.setattr("selfsent.data.corpus.hub.require_hub", lambda name: None)
    monkeypatch.setitem(sys.modules, "datasets", types.SimpleNamespace(load_dataset=load_dataset))
    return requests


def test_names():
    names = {"org/name": (None, "train"), "org/name:en": ("en", "train"), "org/name:en:test": ("en", "test")}
    for text, (config, split) in (names | {"org/name::test": (None, "test")}).items():
        assert HubDataset.parse(text) == HubDataset("org/name", config, split)
    assert not any(map(HubDataset.parse, ("name", "../org/name", "org/../name", "org/name:a:b:c")))


@pytest.mark.usefixtures("mirror")
def test_the_mirror_comes_first(read):
    assert read("org/plain").texts() == ["a", "b"]
    assert read("org/parts:en:test").texts() == ["c", "d"]
    with pytest.raises(CorpusError, match="org/plain: the mirror has no split 'dev', only train"):
        read("org/plain::dev")
    with pytest.raises(CorpusError, match="org/parts: the mirror has it in parts en: write"):
        read("org/parts")


@pytest.mark.parametrize("split", [False, None])
def test_the_hub_is_streamed_once(hub, read, split):
    for _ in range(2):
        corpus = read("org/remote:en", label_column="n", split_sentences=split)
        assert (corpus.texts(), corpus.labels.tolist()) == (["one", "two", "three"], [1, 2, 3])
    assert hub == [("org/remote", "en", "train", True)]


@pytest.mark.usefixtures("hub")
def test_errors_of_the_hub_are_one_line(read, monkeypatch):
    with pytest.raises(CorpusError, match=r"org/gone: no such file, and not .*: Couldn't reach the hub$"):
        read("org/gone")
    with pytest.raises(CorpusError, match=r"org/remote: no column 'body'; it has 'text', 'n'"):
        read("org/remote", text_column="body")
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(CorpusError, match=r'org/name: no such file, .* -e "\.\[hub\]"'):
        read("org/name")


def test_without_a_network_it_says_so_at_once(read, monkeypatch):
    monkeypatch.delenv("SELFSENT_DATA", raising=False)
    monkeypatch.setattr("urllib.request.getproxies", dict)
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    with pytest.raises(CorpusError, match=r"org/name: no such file, and the hub cannot be reached to look there"):
        read("org/name")
