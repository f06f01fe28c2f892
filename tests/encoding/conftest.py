import sys
from pathlib import Path

import fsspec
import pytest

sys.path.insert(0, str(Path(__file__).parent))  # so that tests can import slow


@pytest.fixture(scope="session")
def base(base_of):
    """The directory of a tiny encoder."""
    return str(base_of("bert", initializer_range=0.5))


@pytest.fixture
def memory():
    """The files of `memory://`, gone after the test."""
    found = fsspec.filesystem("memory")
    yield found
    found.store.clear()
    found.pseudo_dirs[:] = [""]
