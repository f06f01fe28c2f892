import sys
from pathlib import Path

import pytest

from selfsent.data.corpus import read_corpus

sys.path.insert(0, str(Path(__file__).parent))  # so that tests can import corpus_files


@pytest.fixture
def read(tmp_path):
    """`read_corpus` with a cache of its own."""

    def call(source, **options):
        return read_corpus(source, cache=tmp_path / "cache", **options)

    return call


@pytest.fixture
def write(tmp_path):
    """Write a file below the test's folder: text or bytes."""

    def call(name, content):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return call
