import sys

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest


@pytest.fixture
def table(tmp_path):
    pq.write_table(pa.table({"text": ["one", "two"], "file": ["a", "b"]}), tmp_path / "in.parquet")
    return tmp_path / "in.parquet"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--without", "x.txt"], "--without does not go with --engine ray"),
        (["--document-column", "d"], "--document-column does not go with --engine ray"),
        (["--workers", "0"], "--workers is 0; it must be at least 1"),
        (["--keep", "file"], "a column 'file' of their own"),
        (["--output", "x.parquet"], "is to be a folder with --engine ray"),
        (["--output", "memory://x"], "memory://x is in the memory of one process"),
        (["--text-column", "text", "--text-column", "file"], "--engine ray reads one text column"),
        (["--keep", "team"], "no column 'team'"),
        (["--output", "nope://x/y"], "unknown protocol nope://"),
        (["--engine", "spark"], "invalid choice"),
    ],
)
def test_what_does_not_go_together(options, said, table, base, selfsent, tmp_path):
    outcome = selfsent("encode", base, table, "--engine", "ray", "--output", tmp_path / "out", *options)
    assert said in outcome.complaint
    assert not (tmp_path / "out").exists()


def test_an_output_inside_of_the_input_is_refused(table, base, selfsent):
    for name in (table.parent, table.parent.as_uri()):
        said = selfsent("encode", base, name, "--engine", "ray", "--output", table.parent / "out").complaint
        assert "which is read: name a folder outside of it" in said


def test_ray_is_not_installed(table, base, selfsent, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    line = selfsent("encode", base, table, "--engine", "ray", "--output", tmp_path / "out").complaint
    assert "Ray is not installed" in line
    assert "pip install 'selfsent[ray]'" in line


def test_bulk_options_need_the_engine(table, base, selfsent, tmp_path):
    assert "go with --engine ray" in selfsent("encode", base, table, "--output", "x.npy", "--workers", 2).complaint
    assert "add --engine ray" in selfsent("encode", base, table, "--output", "s3://b/x.npy").complaint


def test_an_address_wherever_a_file_is_taken(sentences, base, selfsent, tmp_path):
    memory = fsspec.filesystem("memory")
    memory.pipe("/shelf/sentences.txt", sentences.read_bytes())
    try:
        outcome = selfsent("search", base, "memory://shelf/sentences.txt", "ba", "--without", "memory://shelf/*.txt")
        assert "no text in it besides what is to be left out" in outcome.late_complaint
        for command in (
            ["search", base, "memory://shelf/none.txt", "x"],
            ["train", "memory://shelf/none.txt", "--output", tmp_path],
        ):
            assert selfsent(*command).complaint == "selfsent: memory://shelf/none.txt: not found"
        assert selfsent("encode", base, "memory://shelf", "--output", tmp_path / "x.npy").status == 0
    finally:
        memory.store.clear()
        memory.pseudo_dirs[:] = [""]
