import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

from selfsent import files
from selfsent.errors import OutputError
from selfsent.files import atomic_directory, atomic_file, new_folder, remove, sweep_half_written, write_json, write_text
from selfsent.locks import lock_directory


def names(folder):
    return sorted(each.name for each in folder.iterdir())


def fail(written):
    raise RuntimeError("half-way")


def test_a_file_appears_when_the_block_ends_without_an_error(tmp_path):
    path = tmp_path / "deep" / "file.txt"
    with atomic_file(path) as temporary:
        temporary.write_text("new")
        assert not path.exists()
    with pytest.raises(RuntimeError, match="half-way"), atomic_file(path) as temporary:
        fail(temporary.write_text("newer"))
    assert path.read_text() == "new"
    assert names(path.parent) == ["file.txt"]


def test_a_directory_takes_the_place_of_another_as_a_whole(tmp_path, monkeypatch):
    path = tmp_path / "model"
    for content in ("old", "new"):
        with atomic_directory(path) as temporary:
            (temporary / content).mkdir()
            (temporary / content / "file").write_text(content)
        assert [str(each.relative_to(path)) for each in path.rglob("*")] == [content, f"{content}/file"]
    with pytest.raises(RuntimeError), atomic_directory(path) as temporary:
        fail((temporary / "newer").touch())
    assert (path / "new" / "file").read_text() == "new"
    monkeypatch.chdir(path)
    with atomic_directory(Path()) as temporary:  # the current one, which has no name
        (temporary / "here").touch()
    assert (names(path), names(tmp_path)) == (["here"], ["model"])


def test_json_keeps_letters_as_they_are(tmp_path):
    write_json(tmp_path / "a.json", {"sentence": "Grüße 你好"})
    text = (tmp_path / "a.json").read_text(encoding="utf-8")
    assert "Grüße 你好" in text
    assert json.loads(text) == {"sentence": "Grüße 你好"}


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes here")
def test_what_cannot_be_written_is_reported_and_nothing_is_left(tmp_path):
    (tmp_path / "file").touch()
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    for writer, path, said in (
        (atomic_file, "file/below", "file/below cannot be written"),
        (atomic_directory, "file/below", "file/below cannot be written"),
        (atomic_file, "folder", "folder is a directory"),
        (atomic_file, "pipe", "not an ordinary file"),
    ):
        with pytest.raises(OutputError, match=said), writer(tmp_path / path):
            pass
    assert names(tmp_path) == ["file", "folder", "pipe"]
    assert (tmp_path / "pipe").is_fifo()


def test_the_file_that_a_link_means_is_written(tmp_path):
    (tmp_path / "there").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "there" / "file")
    write_text(tmp_path / "link", "new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "there" / "file").read_text() == "new"


def test_what_a_link_leads_to_is_never_removed(tmp_path):
    elsewhere, path = tmp_path / "elsewhere", tmp_path / "run"
    elsewhere.mkdir()
    (elsewhere / "mine").write_text("kept")
    path.mkdir()
    for name in ("whole", f".whole.selfsent-{'0' * 8}"):  # one of them looks like a leftover
        (path / name).symlink_to(elsewhere)
    (path / "file").symlink_to(elsewhere / "mine")
    sweep_half_written(path)
    with atomic_directory(path) as temporary:
        (temporary / "new").touch()
    assert names(path) == ["new"]
    (tmp_path / "link").symlink_to(elsewhere)
    remove(tmp_path / "link")
    assert names(tmp_path) == ["elsewhere", "run"]
    assert (elsewhere / "mine").read_text() == "kept"


def test_who_may_read_is_what_the_umask_says(tmp_path):
    def write(path):
        save_file({"x": np.zeros(2)}, str(path))
        path.chmod(0o600)  # as some versions of safetensors leave it

    before = os.umask(0o027)
    try:
        with atomic_file(tmp_path / "weights") as temporary:
            write(temporary)
        with atomic_directory(tmp_path / "model") as temporary:
            (temporary / "part").mkdir()
            write(temporary / "part" / "weights")
        new_folder(tmp_path).rename(tmp_path / "built")
    finally:
        os.umask(before)
    modes = {str(path.relative_to(tmp_path)): path.stat().st_mode & 0o777 for path in tmp_path.rglob("*")}
    folders = dict.fromkeys(("model", "model/part", "built"), 0o750)
    assert modes == {"weights": 0o640, "model/part/weights": 0o640, **folders}


@pytest.mark.skipif(sys.platform != "linux", reason="other systems cannot exchange two names")
def test_a_directory_is_never_missing_while_it_is_replaced(tmp_path, monkeypatch):
    path = tmp_path / "index"
    path.mkdir()
    (path / "old").touch()
    monkeypatch.setattr(Path, "rename", None)  # whatever moves it away first
    with atomic_directory(path) as temporary:
        (temporary / "new").touch()
    assert (names(tmp_path), names(path)) == (["index"], ["new"])


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
    assert names(tmp_path) == ["entry"]


def test_where_names_cannot_be_exchanged_a_kill_loses_no_directory(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "exchange", lambda *_: False)
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
    assert names(tmp_path) == ["best"]


@pytest.mark.parametrize("write", [atomic_file, atomic_directory])
def test_leftovers_of_a_killed_process_go_with_the_next_output(tmp_path, write):
    left = [".other.selfsent-0123abcd", ".out.selfsent-0123abcd", ".out.selfsent-99999999"]
    for name in left:
        (tmp_path / name).touch()
    for name in left[:2]:
        os.utime(tmp_path / name, (0, 0))
    with write(tmp_path / "out"):
        pass
    assert names(tmp_path) == [left[0], left[2], "out"]
    new_folder(tmp_path).rmdir()  # of any name
    assert names(tmp_path) == [left[2], "out"]


def test_a_directory_is_held_by_one_process(tmp_path):
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
