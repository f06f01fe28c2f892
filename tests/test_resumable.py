"""Kills, full disks and damage, for every kind of work that goes on where it stopped."""

import subprocess
import sys

import numpy as np
import pytest

from selfsent.errors import Damaged, OutputError
from selfsent.locks import lock_range
from selfsent.resumable import ArrayCache, Chunks, VectorsOfTexts, key_of

VECTORS = np.random.default_rng(0).normal(size=(9, 4)).astype(np.float32)
KILLED = """
import os, signal, sys
import numpy as np
from pathlib import Path
from selfsent import resumable

where, directory = sys.argv[1], Path(sys.argv[2])
vectors = np.load(directory / "vectors.npy")

def die(*_, **__):
    os.kill(os.getpid(), signal.SIGKILL)

if where == "table":
    table = resumable.ArrayCache(directory / "t", 9, 4, np.float32)
    table.write(np.arange(3), vectors[:3])
    synced, fsync = [], os.fsync

    def die_before_it_is_done(file):
        synced.append(file)
        if len(synced) == 2:  # vectors and their checksums are on the disk, and not that they are there
            die()
        fsync(file)

    os.fsync = die_before_it_is_done
    table.write(np.arange(3, 9), vectors[3:])
else:
    chunks = resumable.Chunks(directory / "all.parquet", {"seed": 0}, False)
    chunks.write("0", {"x": [0, 1]})
    if where == "join":
        chunks.write("1", {"x": [2]})
    os.replace = Path.replace = die
    chunks.join() if where == "join" else chunks.write("1", {"x": [2]})
"""


def killed(where, directory):
    np.save(directory / "vectors.npy", VECTORS)
    done = subprocess.run([sys.executable, "-c", KILLED, where, str(directory)], check=False)
    assert done.returncode == -9


def test_a_table_keeps_what_was_done_before_a_kill(tmp_path):
    killed("table", tmp_path)
    table = ArrayCache(tmp_path / "t", 9, 4, np.float32)
    assert (table.done.tolist(), table.repaired) == ([1] * 3 + [0] * 6, 0)
    table.write(np.array([3, 4, 8]), VECTORS[[3, 4, 8]])
    table.write(np.array([5, 6, 7]), VECTORS[5:8])
    assert np.array_equal(table.vectors, VECTORS)
    assert np.array_equal(np.load(tmp_path / "t" / "vectors.npy"), VECTORS)
    table.clear()
    assert not ArrayCache(tmp_path / "t", 9, 4, np.float32).done.any()
    assert len(ArrayCache(tmp_path / "t", 7, 4, np.float32).done) == 7  # of another shape it is begun anew
    assert len(ArrayCache(tmp_path / "none", 0, 4, np.float16).done) == 0


@pytest.mark.parametrize("name", ["vectors", "sums", "done"])
@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_a_damaged_row_alone_is_made_again(tmp_path, name, dtype):
    table = ArrayCache(tmp_path, 9, 4, dtype)
    table.write(np.arange(9), VECTORS.astype(dtype))
    data = bytearray(table.path(name).read_bytes())
    data[-1] ^= 2
    table.path(name).write_bytes(data)
    with pytest.warns(Damaged, match="my table is damaged"):
        found = ArrayCache(tmp_path, 9, 4, dtype, "my table")
    assert (found.done.tolist(), found.repaired) == ([1] * 8 + [0], 1)


@pytest.mark.parametrize("name", ["vectors", "done"])
@pytest.mark.parametrize("damage", ["missing", "cut", "no numbers", "empty", "no Python"])
def test_a_table_that_is_not_whole_is_begun_anew(tmp_path, name, damage):
    table = ArrayCache(tmp_path, 9, 4, np.float32)
    table.write(np.arange(9), VECTORS)
    path = table.path(name)
    whole = path.read_bytes()
    path.unlink()
    if damage != "missing":
        other = {"cut": whole[:-9], "no numbers": b"\x93", "empty": b"", "no Python": whole.replace(b"(9,", b"((9,")}
        path.write_bytes(other[damage])
    assert not ArrayCache(tmp_path, 9, 4, np.float32).done.any()


def test_a_key_is_of_content():
    rows = np.arange(5)
    keys = {key_of(each) for each in (["a", rows], ["b", rows], ["a", rows[1:]], ["a", 5 - rows], {"a": 1})}
    assert len(keys) == 5
    assert key_of(("a", rows.copy())) == key_of(["a", rows])
    assert key_of({"a": 1, "b": None}) == key_of({"b": None, "a": 1})
    with pytest.raises(TypeError, match="no key can be made of"):
        key_of([object()])


def test_missing_rows_alone_are_computed_and_nothing_is_loaded_for_known_ones(tmp_path):
    cache, asked, told = ArrayCache(tmp_path, 9, 4, np.float32), [], []

    def compute(rows):
        asked.append(rows.tolist())
        if len(asked) == 2:
            raise KeyboardInterrupt
        return VECTORS[rows]

    with pytest.raises(KeyboardInterrupt):
        cache.fill(np.array([7, 1, 3, 5, 0]), lambda: (compute, 2))
    again = ArrayCache(tmp_path, 9, 4, np.float32)
    found = again.fill(np.array([7, 1, 3, 5, 0]), lambda: (compute, 2), told.append)
    assert asked == [[0, 1], [3, 5], [3, 5], [7]]  # the same chunks as in a run without a break
    assert (told[0], sum(told)) == (2, 5)
    assert np.array_equal(found[[0, 1, 3, 5, 7]], VECTORS[[0, 1, 3, 5, 7]])
    cache.fill(np.array([7, 0]), lambda: pytest.fail("loaded"), told.append)
    assert sum(told) == 7


def test_rows_in_order_begin_again_where_a_gap_is(tmp_path):
    cache, begun, told = ArrayCache(tmp_path, 9, 4, np.float32), [], []

    def stream(row):
        begun.append(row)
        return np.split(VECTORS[row:], range(4, 9 - row, 4))

    cache.write(np.arange(4), VECTORS[:4])
    assert (cache.fill_in_order(stream, told.append), told) == (4, [4, 4, 1])
    cache.clear()
    cache.write(np.arange(1, 4), VECTORS[1:4])
    assert (cache.fill_in_order(stream), begun) == (0, [4, 0])
    assert np.array_equal(cache.vectors, VECTORS)


def test_a_chunk_is_computed_once(tmp_path):
    parts, told = {"0": [1, 2], "1": [3]}, []
    first = Chunks(tmp_path / "x", {}, False)
    assert first.fill(parts, lambda part: {"x": [2 * each for each in part]}, told.append) == 3
    (tmp_path / "x.parts" / "1.parquet").unlink()
    again = Chunks(tmp_path / "x", {}, False)
    assert again.fill(parts, lambda part: {"x": [5 * each for each in part]}, told.append) == 1
    assert ([row["x"] for row in again.rows()], told) == ([2, 4, 15], [2, 1, 2, 1])


def test_a_full_disk_is_one_line(tmp_path, monkeypatch):
    def full(file):
        raise OSError(28, "No space left on device")

    table = ArrayCache(tmp_path, 9, 4, np.float32)
    monkeypatch.setattr("selfsent.resumable.os.fsync", full)
    with pytest.raises(OutputError, match=r"vectors\.npy cannot be written: No space left"):
        table.write(np.arange(9), VECTORS)
    assert not ArrayCache(tmp_path, 9, 4, np.float32).done.any()


@pytest.mark.parametrize("where", ["chunk", "join"])
def test_chunks_keep_what_was_done_before_a_kill(tmp_path, where):
    import pyarrow.parquet as pq

    killed(where, tmp_path)
    assert not (tmp_path / "all.parquet").exists()
    with pytest.raises(OutputError, match="give overwrite=True"):
        Chunks(tmp_path / "all.parquet", {"seed": 1}, False)
    chunks = Chunks(tmp_path / "all.parquet", {"seed": 0}, False)
    assert chunks.find("0")
    assert chunks.find("1") is (where == "join")
    if where == "chunk":
        chunks.write("1", {"x": [2]})
    assert (len(chunks), chunks.join()) == (2, 3)
    assert pq.read_table(tmp_path / "all.parquet")["x"].to_pylist() == [0, 1, 2]
    assert not (tmp_path / "all.parquet.parts").exists()


def test_a_damaged_chunk_is_made_again(tmp_path):
    plan, numbers = {"seed": 0}, np.random.default_rng(0).integers(1 << 60, size=500).tolist()
    Chunks(tmp_path / "x", plan, False).write("0", {"x": numbers})
    path = tmp_path / "x.parts" / "0.parquet"
    data = bytearray(path.read_bytes())
    data[1000] ^= 1
    path.write_bytes(data)
    with pytest.warns(Damaged, match=r"0\.parquet is damaged"):
        assert not Chunks(tmp_path / "x", plan, False).find("0")
    assert not Chunks(tmp_path / "x", {"seed": 1}, True).find("0")
    assert not path.exists()


def test_bytes_of_a_lock_are_held_once(tmp_path):
    other = (
        "import sys; from pathlib import Path; from selfsent.locks import lock_range\n"
        "with lock_range(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), False) as mine: print(mine)"
    )

    def has(start, end):
        command = [sys.executable, "-c", other, str(tmp_path / "lock"), str(start), str(end)]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip() == "True"

    with lock_range(tmp_path / "lock", 10, 20, patient=False) as mine:
        assert mine
        assert not has(0, 11)
        assert has(20, 30)
    assert has(0, 11)


def test_vectors_of_texts_are_made_once(tmp_path):
    asked, path = [], tmp_path / "new" / "v.sqlite"

    def encode(texts):
        if "kill" in texts:
            raise KeyboardInterrupt
        asked.extend(texts)
        return np.array([[len(text), 1 / 3] for text in texts])

    vectors_of = VectorsOfTexts(path, encode, lookup_size=2, batch_size=3)
    texts = ["a", "bb", "a", "\ud800", "", "ccc", "dddd"]
    expected = np.float32([[len(text), 1 / 3] for text in texts])
    with pytest.raises(KeyboardInterrupt):
        vectors_of([*texts[:3], "\ud800", "kill"])
    assert asked == ["a", "bb", "\ud800"]  # what was made before is kept
    assert np.array_equal(vectors_of(texts), expected)
    assert asked == ["a", "bb", "\ud800", "", "ccc", "dddd"]
    assert np.array_equal(vectors_of(texts[::-1]), expected[::-1])
    assert len(asked) == 6
    content = path.read_bytes()
    at = content.index(expected[5].astype("<f4").tobytes())
    path.write_bytes(content[:at] + b"x" + content[at + 1 :])
    assert np.array_equal(vectors_of(texts), expected)
    assert asked[6:] == ["ccc"]  # a byte has changed
    path.write_bytes(b"no SQLite at all" * 99)
    with pytest.warns(Damaged, match=r"v.sqlite"):
        assert np.array_equal(vectors_of(texts), expected)
    (tmp_path / "file").touch()
    with pytest.raises(OutputError, match="cannot be written"):
        VectorsOfTexts(tmp_path / "file" / "v.sqlite", encode)(["a"])
    with pytest.raises(OutputError, match="cannot be written: unable to open"):
        VectorsOfTexts(tmp_path, encode)(["a"])


def test_processes_share_vectors_of_texts(tmp_path):
    code = """
import sys
import time
import numpy as np
from pathlib import Path
from selfsent.resumable import VectorsOfTexts

file, own = Path(sys.argv[1]), int(sys.argv[2])

def encode(texts):
    file.with_name(f"{own}.began").touch()
    while len([*file.parent.glob("*.began")]) < 3:  # nobody writes before all have seen that nothing is there
        time.sleep(0.01)
    return np.float32([[float(text)] for text in texts])

texts = [str(number) for number in range(own * 100, own * 100 + 200)]
found = VectorsOfTexts(file, encode, batch_size=5)(texts)
assert found.ravel().tolist() == [float(text) for text in texts]
"""
    command = [sys.executable, "-c", code, str(tmp_path / "v.sqlite")]
    running = [subprocess.Popen([*command, str(own)]) for own in range(3)]
    assert [each.wait() for each in running] == [0, 0, 0]
    none = VectorsOfTexts(tmp_path / "v.sqlite", lambda texts: pytest.fail("made again"))
    assert none([str(number) for number in range(400)]).ravel().tolist() == list(range(400))
