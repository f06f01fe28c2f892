import os

import pytest


@pytest.fixture
def for_the_group():
    before = os.umask(0o027)
    yield
    os.umask(before)


def hidden(folder):
    """What the group may not read although the umask lets it."""
    wanted = {True: 0o750, False: 0o640}
    return [path for path in folder.rglob("*") if path.stat().st_mode & 0o777 != wanted[path.is_dir()]]


@pytest.mark.usefixtures("for_the_group")
def test_everything_that_commands_write_may_be_read(selfsent, base, model, sentences, tmp_path, monkeypatch):
    out = tmp_path / "out"
    monkeypatch.setenv("SELFSENT_CACHE", str(out / "cache"))
    train = ("--method", "simcse", "--base", base, "--steps", 4, "--checkpoint-every", 2, "--batch-size", 8)
    commands = [
        ("train", sentences, *train, "--output", out / "run"),
        ("encode", model, sentences, "--output", out / "v.npy"),
        ("encode", model, sentences, "--output", out / "v.parquet"),
        ("pairs", model, sentences, "--output", out / "pairs.csv"),
    ]
    for command in commands:
        selfsent(*command).ok()
    assert len(list(out.rglob("*.safetensors"))) >= 2
    assert hidden(out) == []
