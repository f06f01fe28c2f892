import json
import struct

import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import load_file, save_file

from selfsent.integrity import CHECKSUM, checksums, damaged, embed_checksum, find_damaged, is_signed, signed


def change(path, at, to=None):
    data = bytearray(path.read_bytes())
    data[at] = data[at] ^ 1 if to is None else to
    path.write_bytes(bytes(data))


@pytest.fixture
def weights(tmp_path):
    path = tmp_path / "module" / "model.safetensors"
    path.parent.mkdir()
    save_file({"a": np.arange(9.0), "b": np.ones((2, 3), np.float32)}, path, metadata={"format": "pt"})
    return path


def test_a_changed_cut_or_missing_file_is_named(tmp_path):
    for name in ("a", "b", "c"):
        (tmp_path / name).write_bytes(b"some bytes of " + name.encode())
    sums = checksums(tmp_path, ["a", "b", "c", "not there"])
    assert sums.keys() == {"a", "b", "c"}
    assert damaged(tmp_path, sums) is None
    change(tmp_path / "b", 3)
    assert damaged(tmp_path, sums) == "b"
    (tmp_path / "b").write_bytes(b"")
    assert damaged(tmp_path, sums) == "b"
    (tmp_path / "a").unlink()
    assert damaged(tmp_path, sums) == "a"


def test_what_is_signed_may_not_change(tmp_path):
    about = json.loads(json.dumps(signed({"rows": 3, "names": ["a", "b"]})))
    assert is_signed(about)
    assert not is_signed({**about, "rows": 4})
    assert is_signed(signed({**about, "rows": 4}))
    assert is_signed({"rows": 3})  # of an older version


def test_sealed_weights_are_the_same_to_others(weights, tmp_path):
    before = load_file(weights)
    embed_checksum(tmp_path)
    with safe_open(weights, "numpy") as opened:
        assert opened.metadata().keys() == {"format", CHECKSUM}
    after = load_file(weights)
    assert all(np.array_equal(before[name], after[name]) for name in ("a", "b"))
    assert [path.name for path in weights.parent.iterdir()] == ["model.safetensors"]
    once = weights.read_bytes()
    embed_checksum(tmp_path)
    assert weights.read_bytes() == once


@pytest.mark.parametrize("part", ["size", "header", "data", "last"])
def test_any_changed_byte_breaks_the_seal(weights, tmp_path, part):
    embed_checksum(tmp_path)
    assert find_damaged(tmp_path) is None
    (size,) = struct.unpack("<Q", weights.read_bytes()[:8])
    places = {"size": [0, 1, 7], "header": [weights.read_bytes().index(b'"a"') + 1], "data": [8 + size, 8 + size + 40]}
    for at in places.get(part, [-1]):
        whole = weights.read_bytes()
        change(weights, at)
        assert find_damaged(tmp_path) == weights, at
        weights.write_bytes(whole)
    assert find_damaged(tmp_path) is None
    for length in (0, 5, 100, len(whole) - 1):
        weights.write_bytes(whole[:length])
        assert find_damaged(tmp_path) == weights


def test_a_changed_tokenizer_is_found_by_its_weights(weights, tmp_path):
    tokenizer = weights.with_name("tokenizer.json")
    tokenizer.write_text('{"model": {"vocab": {"a": 0, "b": 1}}}')
    embed_checksum(tmp_path)
    assert find_damaged(tmp_path) is None
    tokenizer.write_text('{"model": {"vocab": {"a": 0, "c": 1}}}')
    assert find_damaged(tmp_path) == tokenizer
    save_file({"a": np.zeros(2)}, weights)  # with weights of another program, it may be another one
    assert find_damaged(tmp_path) is None
