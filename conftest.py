import gc
import os
import shutil
import sys

os.environ.setdefault("OMP_NUM_THREADS", "1")  # tiny models lose more than they gain by sharing work among threads
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

import pytest

import surroundings

surroundings.leave()
os.fsync = lambda descriptor: None  # no test pulls the plug, and many write hundreds of files


FROZEN = set()
"""Names of modules whose objects the garbage collector leaves out."""


@pytest.fixture(scope="module", autouse=True)
def frozen_modules():
    """Every run of training collects garbage, and would look at what imports left, which is much more than its own."""
    if len(sys.modules) > 1.1 * len(FROZEN):
        FROZEN.update(sys.modules)
        gc.collect()
        gc.freeze()


def pytest_collection_modifyitems(items):
    import tiny

    if not tiny.has_lora():
        skipped = pytest.mark.skip(reason="peft is missing, or too old for this transformers")
        for item in items:
            if item.path.name in ("test_lora.py", "test_lora_runs.py", "test_adapters.py"):
                item.add_marker(skipped)


@pytest.fixture(scope="session")
def base_of(tmp_path_factory):
    """The directory of a tiny base of an architecture of `tiny.ARCHITECTURES`; made once for each set of changes."""
    import tiny

    made = {}

    def of(name, **changes):
        key = (name, *sorted(changes.items()))
        if key not in made:
            made[key] = tiny.save_base(tmp_path_factory.mktemp(name), name, **changes)
        return made[key]

    return of


@pytest.fixture(scope="session")
def encoder_of(base_of):
    """A fresh encoder of an architecture, without dropout unless a rate is given, in evaluation mode."""
    from selfsent.models.loading import load_encoder

    def of(name, pooling="mean", dropout=0.0, **changes):
        return load_encoder(base_of(name, **changes), pooling, dropout).eval()

    return of


@pytest.fixture
def two_threads():
    """Two threads for torch, of which the tests otherwise leave it one."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


@pytest.fixture(autouse=True)
def quick_maps(request, monkeypatch):
    """Maps of two columns of the vectors: few tests look at one."""
    if request.module.__name__.endswith("test_maps"):
        return
    from selfsent.report import maps

    monkeypatch.setattr(maps, "lay_out", lambda vectors, beside=None, seed=0: vectors[:, :2])


@pytest.fixture(scope="session")
def browser():
    """A Chromium or Chrome of this machine."""
    sync_api = pytest.importorskip("playwright.sync_api", reason="no Playwright to drive a browser with")
    names = ("chromium", "chromium-browser", "google-chrome")
    if (path := next(filter(None, map(shutil.which, names)), None)) is None:
        pytest.skip("no Chromium or Chrome on this machine")
    with sync_api.sync_playwright() as driver:
        # A sandbox cannot be had as root, as in a container.
        options = ["--no-sandbox"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []
        chromium = driver.chromium.launch(executable_path=path, args=options)
        yield chromium
        chromium.close()
