import os
import time

import pytest

from selfsent.cached import entries
from selfsent.data.corpus import read_corpus


@pytest.fixture
def selfsent_cache(tmp_path, monkeypatch):
    """Read a file of this name, and the cache folder, which is empty before."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SELFSENT_CACHE", str(tmp_path / "cache"))

    def read(name):
        (tmp_path / name).write_text(f"text\none of {name}\nanother one\n")
        read_corpus(name)

    return read, tmp_path / "cache"


def test_the_cache_is_listed_and_cleared_by_source_and_age(selfsent_cache, selfsent):
    read, folder = selfsent_cache
    read("old.csv")
    read("new.csv")
    (old,) = [entry for entry in entries(folder) if entry.is_of("old.csv")]
    assert (old.kind, old.size > 0, old.source.endswith("old.csv")) == ("text", True, True)
    for file in (old.path, *old.path.rglob("*")):
        os.utime(file, (time.time() - 40 * 86_400,) * 2)
    listed = selfsent("cache")
    assert listed.status == 0
    assert all(name in listed.out for name in ("old.csv", "new.csv", "40 d"))
    assert "2 entries, " in listed.err
    assert len(list(entries(folder))) == 2  # listing removes nothing
    assert "1 entry, " in selfsent("cache", "--older", "30d", "--clear").err
    assert [entry.source.endswith("new.csv") for entry in entries(folder)] == [True]
    assert "0 entries" in selfsent("cache", "--of", "old.csv", "--clear").err
    assert "1 entry" in selfsent("cache", "--of", "new.csv", "--clear").err
    assert "0 entries" in selfsent("cache").err
    assert "is not a duration" in selfsent("cache", "--older", "long").complaint
