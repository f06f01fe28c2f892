import dataclasses
import json

import fsspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tiny
from selfsent.data.corpus import read_corpus
from selfsent.encoding import BatchEncoder, Shard, job as jobs
from selfsent.encoding.folder import Folder
from selfsent.encoding.job import MANIFEST, encode_shard, make_job, missing
from selfsent.errors import CorpusError, OutputError
from selfsent.models.loading import load_encoder
from selfsent.search import encode_to_file


@pytest.fixture(autouse=True)
def small_parts(monkeypatch):
    """Parts of 50 rows, read 7 at a time."""
    monkeypatch.setattr(jobs, "ROWS", 50)
    monkeypatch.setattr("selfsent.data.corpus.formats.BATCH_ROWS", 7)


def rows(count, seed=0):
    texts = tiny.make_sentences(count, seed)
    texts[3] = texts[1]
    texts[5] = ""
    return pa.table({"text": texts, "id": [f"T-{seed}-{n}" for n in range(count)], "n": range(count)})


@pytest.fixture
def files(tmp_path):
    """Two parquet files of several row groups each, and their pattern."""
    for number, (count, group) in enumerate(((120, 70), (30, 7))):
        pq.write_table(rows(count, number), tmp_path / f"part-{number}.parquet", row_group_size=group)
    return str(tmp_path / "part-*.parquet")


def do(job, parts):
    return [encode_shard(job, part) for part in missing(job, parts)]


def test_parts_hold_each_row_once_as_plain_encode_has_it(base, files, tmp_path):
    job, parts = make_job(BatchEncoder(base), [files], str(tmp_path / "out"), carry=("id", "n"))
    assert [(part.file, part.start, part.rows) for part in parts] == [(0, 0, 50), (0, 50, 50), (0, 100, 20), (1, 0, 30)]
    done = [(each.rows, each.zeros, each.problem) for each in do(job, parts)]
    assert done == [(50, 1, ""), (50, 0, ""), (20, 0, ""), (30, 1, "")]
    found = pq.read_table(tmp_path / "out")  # the manifest is passed over
    assert found.schema.names == ["file", "row", "id", "n", "text", "embedding"]
    corpus = read_corpus(files, carry=("id", "n"), cache=tmp_path / "cache")
    encode_to_file(load_encoder(base), corpus, tmp_path / "plain.parquet")
    plain = pq.read_table(tmp_path / "plain.parquet")
    for name in ("id", "n", "text"):
        assert found[name].to_pylist() == plain[name].to_pylist(), name
    assert found["row"].to_pylist() == [*range(120), *range(30)]
    assert {path.rpartition("/")[2] for path in found["file"].to_pylist()} == {"part-0.parquet", "part-1.parquet"}
    vectors, expected = (np.stack(table["embedding"].to_pylist()) for table in (found, plain))
    np.testing.assert_allclose(vectors, expected, atol=1e-5)
    assert found.schema.field("n").type == pa.int64()


def test_only_what_is_missing_is_done_and_comes_out_the_same(base, files, tmp_path, monkeypatch):
    out = tmp_path / "out"
    job, parts = make_job(BatchEncoder(base), [files], str(out))
    do(job, parts)
    before = {path.name: path.read_bytes() for path in out.iterdir()}
    (out / parts[1].name).unlink()
    monkeypatch.setattr(jobs, "look_at_parquet", lambda *given: pytest.fail("looked at again"))
    job, parts = make_job(BatchEncoder(base), [files], str(out))
    assert missing(job, parts) == [parts[1]]
    do(job, parts)
    assert {path.name: path.read_bytes() for path in out.iterdir()} == before


def test_a_part_that_is_cut_off_is_not_there(base, files, tmp_path, monkeypatch):
    out = tmp_path / "out"
    job, parts = make_job(BatchEncoder(base), [files], str(out))

    def stop(self, table):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(pq.ParquetWriter, "write_table", stop)
        with pytest.raises(KeyboardInterrupt):
            encode_shard(job, parts[0])
    (out / f".{parts[0].name}.selfsent-0123abcd").touch()  # as `kill -9` leaves it
    assert missing(job, parts) == parts
    do(job, parts)
    job.output.sweep()
    assert {path.name for path in out.iterdir()} == {MANIFEST, *(part.name for part in parts)}


def test_elsewhere_as_here(base, files, memory):
    table = rows(120)
    with memory.open("/bucket/in/lang=en/a.parquet", "wb") as file:
        pq.write_table(table, file, row_group_size=30)
    memory.pipe("/bucket/in/lang=de/b.csv", b"id,text,lang\nT-1,es regnet,nl\n")
    options = {"carry": ("id", "lang"), "split": True}
    job, parts = make_job(BatchEncoder(base), ["memory://bucket/in"], "memory://bucket/out/", **options)
    assert [part.rows for part in parts] == [None, 50, 50, 20]
    do(job, parts)
    again = make_job(BatchEncoder(base), ["memory://bucket/in"], "memory://bucket/out", **options)
    assert missing(*again) == []
    found = pa.concat_tables(pq.read_table(memory.open(f"/bucket/out/{part.name}")) for part in parts)
    assert found["id"].to_pylist() == ["T-1", *table["id"].to_pylist()]
    assert set(found["lang"].to_pylist()) == {"nl", "en"}
    assert found["sentence"].to_pylist() == [0] * 121
    assert sorted(Folder("memory://bucket/out").names()) == [MANIFEST, *sorted(part.name for part in parts)]


def test_a_store_without_whole_files_gets_them_by_moving(tmp_path, monkeypatch):
    moved = []
    monkeypatch.setattr("selfsent.encoding.folder._ATOMIC", ())
    memory = type(fsspec.filesystem("memory"))
    move = memory.mv
    monkeypatch.setattr(memory, "mv", lambda self, *names: moved.append(names) or move(self, *names))
    folder = Folder("memory://shelf/x")
    with folder.atomic_file("a.json") as path:
        path.write_text('{"a": 1}')
    assert folder.names() == {"a.json"}
    assert folder.read_json("a.json") == {"a": 1}
    assert moved[0][0].rpartition("/")[2].startswith(".a.json.")
    with pytest.raises(RuntimeError), folder.atomic_file("b.json"):
        raise RuntimeError
    assert folder.names() == {"a.json"}
    fsspec.filesystem("memory").store.clear()


def test_a_folder_of_something_else_is_refused_by_name(base, base_of, files, tmp_path):
    out = str(tmp_path / "out")
    make_job(BatchEncoder(base), [files], out, carry=("id",))
    other = str(base_of("bert", initializer_range=0.25))
    changed = {
        r"another model \(.*, [0-9a-f]{16}\)": (BatchEncoder(other), {"carry": ("id",)}),
        "--id-column and --keep id, not none": (BatchEncoder(base), {}),
        "--fast False, not True": (BatchEncoder(base, fast=True), {"carry": ("id",)}),
        "--split-sentences False, not True": (BatchEncoder(base), {"carry": ("id",), "split": True}),
        "--clean none, not html": (BatchEncoder(base, clean="html"), {"carry": ("id",)}),
    }
    for said, (encoder, options) in changed.items():
        with pytest.raises(OutputError, match=f"was begun with {said}: give the same, or name another folder"):
            make_job(encoder, [files], out, **options)
    pq.write_table(rows(31, 1), tmp_path / "part-1.parquet")
    with pytest.raises(OutputError, match="other files, or they have changed since: 1 of 2 are as they were"):
        make_job(BatchEncoder(base), [files], out, carry=("id",))
    with pytest.raises(OutputError, match="holds other files, such as out: name a new folder"):
        make_job(BatchEncoder(base), [files], str(tmp_path))
    (tmp_path / "out" / MANIFEST).write_text("{")
    with pytest.raises(OutputError, match="damaged"):
        make_job(BatchEncoder(base), [files], out)


def test_faults_are_found_before_anything_is_begun_or_told_as_a_part_s(base, files, tmp_path):
    out = str(tmp_path / "out")
    for inputs, options, said in (
        ([files], {"carry": ("team",)}, "part-0.parquet: no column 'team'"),
        ([str(tmp_path / "none.parquet")], {}, "no such file"),
    ):
        with pytest.raises(CorpusError, match=said):
            make_job(BatchEncoder(base), inputs, out, **options)
        assert not (tmp_path / "out").exists()
    job, parts = make_job(BatchEncoder(base), [files], out)
    other = dataclasses.replace(job, fingerprint="0" * 16)
    assert "is another model on one of the machines" in encode_shard(other, parts[0]).problem
    (tmp_path / "part-1.parquet").write_bytes(b"PAR1")
    assert "part-1.parquet: not a whole parquet file" in encode_shard(job, parts[-1]).problem


@pytest.mark.parametrize(
    ("values", "kind"), [([True, None], "bool"), ([1, 2], "int64"), ([0.5, 1], "double"), ([[1], [2]], "string")]
)
def test_types_of_columns_do_not_depend_on_the_part(values, kind, base, tmp_path):
    pq.write_table(pa.table({"text": ["a", "b"], "x": values}), tmp_path / "a.parquet")
    job, parts = make_job(BatchEncoder(base), [str(tmp_path / "a.parquet")], str(tmp_path / "out"), carry=("x",))
    do(job, parts)
    assert pq.read_schema(tmp_path / "out" / parts[0].name).field("x").type == kind


def test_a_number_in_one_file_and_text_in_another_is_text(base, tmp_path):
    (tmp_path / "in").mkdir()
    pq.write_table(pa.table({"text": ["a"], "x": [1]}), tmp_path / "in" / "a.parquet")
    (tmp_path / "in" / "b.jsonl").write_text(json.dumps({"text": "b", "x": 2}) + "\n")
    job, parts = make_job(BatchEncoder(base), [str(tmp_path / "in")], str(tmp_path / "out"), carry=("x",))
    do(job, parts)
    assert pq.read_table(tmp_path / "out")["x"].to_pylist() == ["1", "2"]
    assert parts[1] == Shard(1, 0, 0, None)


def test_large_numbers_and_long_texts_are_as_plain_encode_has_them(base, tmp_path, monkeypatch):
    monkeypatch.setattr("selfsent.encoding.job.LONGEST_TEXT", 30)
    ids = pa.array([1, (1 << 63) + 5], pa.uint64())
    pq.write_table(pa.table({"text": ["ba de", "ko mi " * 20], "id": ids}), tmp_path / "in.parquet")
    job, parts = make_job(BatchEncoder(base), [str(tmp_path / "in.parquet")], str(tmp_path / "out"), carry=("id",))
    do(job, parts)
    found = pq.read_table(tmp_path / "out" / parts[0].name)
    assert found["id"].to_pylist() == ["1", str((1 << 63) + 5)]
    assert found["text"].to_pylist() == ["ba de", ("ko mi " * 5).strip()]
