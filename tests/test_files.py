import json
import os
import sys
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

from selfsent import files
from selfsent.errors import OutputError
from selfsent.files import (
    atomic_directory,
    atomic_file,
    new_folder,
    sweep_half_written,
    write_json,
    write_text,
)
from selfsent.locks import lock_directory


def fail(written):
    raise RuntimeError("half-way")


def test_a_file_appears_when_the_block_ends(tmp_path):
    path = tmp_path / "deep" / "file.txt"
    with atomic_file(path) as temporary:
        temporary.write_text("new")
        assert not path.exists()
        assert temporary.parent == path.parent
    assert path.read_text() == "new"
    assert [each.name for each in path.parent.iterdir()] == ["file.txt"]


def test_an_error_leaves_the_old_file_and_nothing_else(tmp_path):
    path = tmp_path / "file.txt"
    write_text(path, "old")
    with pytest.raises(RuntimeError, match="half-way"), atomic_file(path) as temporary:
        fail(temporary.write_text("ne"))
    assert path.read_text() == "old"
    assert [each.name for each in tmp_path.iterdir()] == ["file.txt"]


def test_a_directory_takes_the_place_of_another_as_a_whole(tmp_path):
    path = tmp_path / "model"
    for content in ("old", "new"):
        with atomic_directory(path) as temporary:
            (temporary / content).mkdir()
            (temporary / content / "file").write_text(content)
        assert [str(each.relative_to(path)) for each in path.rglob("*")] == [content, f"{content}/file"]
    with pytest.raises(RuntimeError), atomic_directory(path) as temporary:
        fail((temporary / "newer").touch())
    assert (path / "new" / "file").read_text() == "new"
    assert [each.name for each in tmp_path.iterdir()] == ["model"]


def test_json_keeps_letters_as_they_are(tmp_path):
    write_json(tmp_path / "a.json", {"sentence": "Grüße 你好"})
    assert "Grüße 你好" in (tmp_path / "a.json").read_text(encoding="utf-8")
    assert json.loads((tmp_path / "a.json").read_text(encoding="utf-8")) == {"sentence": "Grüße 你好"}


@pytest.mark.parametrize("place", ["file/below", "folder"])
def test_what_cannot_be_written_is_said(tmp_path, place):
    (tmp_path / "file").touch()
    (tmp_path / "folder").mkdir()
    with pytest.raises(OutputError, match=place):
        write_text(tmp_path / place, "text")
    assert sorted(each.name for each in tmp_path.iterdir()) == ["file", "folder"]


def test_a_directory_below_a_file_cannot_be_written(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(OutputError, match="cannot be written"), atomic_directory(tmp_path / "file" / "x"):
        pass


def test_the_current_directory_is_replaced_as_any_other(tmp_path, monkeypatch):
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    with atomic_directory(Path()) as directory:
        (directory / "new.txt").write_text("new")
    assert (tmp_path / "here" / "new.txt").read_text() == "new"
    assert [path.name for path in tmp_path.iterdir()] == ["here"]


@pytest.fixture
def for_the_group():
    before = os.umask(0o027)
    yield
    os.umask(before)


@pytest.mark.usefixtures("for_the_group")
def test_who_may_read_is_what_the_umask_says(tmp_path):
    def write(path):
        save_file({"x": np.zeros(2)}, str(path))
        path.chmod(0o600)  # as some versions of safetensors leave it

    with atomic_file(tmp_path / "weights.safetensors") as temporary:
        write(temporary)
    with atomic_directory(tmp_path / "model") as temporary:
        (temporary / "part").mkdir()
        write(temporary / "part" / "weights.safetensors")
    new_folder(tmp_path).rename(tmp_path / "built")
    modes = {str(path.relative_to(tmp_path)): path.stat().st_mode & 0o777 for path in tmp_path.rglob("*")}
    assert modes == {
        "weights.safetensors": 0o640,
        "model": 0o750,
        "model/part": 0o750,
        "model/part/weights.safetensors": 0o640,
        "built": 0o750,
    }


@pytest.mark.skipif(sys.platform != "linux", reason="other systems cannot exchange two names")
def test_a_directory_is_never_missing_while_it_is_replaced(tmp_path, monkeypatch):
    path = tmp_path / "index"
    path.mkdir()
    (path / "old").touch()
    monkeypatch.setattr(Path, "rename", None)  # whatever moves it away first
    with atomic_directory(path) as temporary:
        (temporary / "new").touch()
    assert [each.name for each in tmp_path.iterdir()] == ["index"]
    assert [each.name for each in path.iterdir()] == ["new"]


@pytest.mark.parametrize("seen", [True, False], ids=["in time", "too late"])
def test_of_two_who_make_a_directory_neither_fails(tmp_path, monkeypatch, seen):
    path = tmp_path / "entry"
    exists, asked = Path.exists, []
    if not seen:  # what is there is not there yet when the second one looks
        monkeypatch.setattr(
            Path, "exists", lambda each: exists(each) and (each != path or bool(asked.append(1) or len(asked) > 1))
        )
    with atomic_directory(path) as later:
        (later / "file").write_text("second")
        with atomic_directory(path) as first:
            (first / "file").write_text("first")
    assert (path / "file").read_text() == "second"
    assert [each.name for each in tmp_path.iterdir()] == ["entry"]


def test_where_names_cannot_be_exchanged_a_kill_loses_no_directory(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "_exchange", lambda *_: False)
    path = tmp_path / "best"
    path.mkdir()
    (path / "file").write_text("old")
    rename = Path.rename

    def die(self, target):
        if target == path:
            raise KeyboardInterrupt
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", die)
    monkeypatch.setattr("selfsent.files.shutil.rmtree", lambda *_, **__: None)  # a kill tidies nothing up
    with pytest.raises(KeyboardInterrupt), atomic_directory(path) as temporary:
        (temporary / "file").write_text("new")
    monkeypatch.undo()
    assert not path.exists()
    sweep_half_written(tmp_path)
    assert (path / "file").read_text() == "old"
    assert [each.name for each in tmp_path.iterdir()] == ["best"]


@pytest.mark.parametrize("write", [atomic_file, atomic_directory])
def test_what_a_kill_left_beside_an_output_goes_with_the_next_one(tmp_path, write):
    path = tmp_path / "out"
    for name in (".out.selfsent-0123abcd", ".out.selfsent-99999999", ".other.selfsent-0123abcd"):
        (tmp_path / name).touch()
    for name in (".out.selfsent-0123abcd", ".other.selfsent-0123abcd"):
        os.utime(tmp_path / name, (0, 0))
    with write(path) as temporary:
        if temporary.is_dir():
            (temporary / "file").touch()
    left = [".other.selfsent-0123abcd", ".out.selfsent-99999999", "out"]
    assert sorted(each.name for each in tmp_path.iterdir()) == left


def test_a_directory_is_held_by_one_process(tmp_path):
    import subprocess
    import sys

    code = (
        "import sys; from pathlib import Path; from selfsent.errors import OutputError\n"
        "from selfsent.locks import lock_directory\n"
        "try: lock_directory(Path(sys.argv[1]), 'it is taken')\n"
        "except OutputError as error: print(error)\n"
        "else: print('free')"
    )

    def other():
        done = subprocess.run([sys.executable, "-c", code, str(tmp_path / "run")], capture_output=True, text=True)
        return done.stdout.strip() or done.stderr

    held = lock_directory(tmp_path / "run", "taken")
    assert lock_directory(tmp_path / "run", "taken") is held  # the same process may go on
    assert other() == "it is taken"
    del held
    assert other() == "free"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes here")
def test_what_is_no_ordinary_file_is_not_replaced(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OutputError, match="not an ordinary file"), atomic_file(tmp_path / "pipe"):
        pass
    assert (tmp_path / "pipe").is_fifo()


def test_the_file_that_a_link_means_is_written(tmp_path):
    (tmp_path / "there").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "there" / "file")
    write_text(tmp_path / "link", "new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "there" / "file").read_text() == "new"
