from functools import partial

import pytest

import tiny

NUMBERS = ("score", "cosine", "words")


@pytest.fixture
def alike(tmp_path):
    """A corpus with two sentences that any encoder takes for one: the tokenizer has no capitals."""
    path = tmp_path / "alike.txt"
    path.write_text("ba de fi go\nko mi\nla nu po\nBa de fi go\n[bold]ri sa te[/bold]\n\x1b[31mmo ba ki\n")
    return path


def test_the_most_similar_pairs(selfsent, model, alike):
    done = selfsent("pairs", model, alike, "--top", 2).ok()
    first, second, *_ = done.out.splitlines()
    assert (first, second) == ("1.000  ba de fi go", "       Ba de fi go")
    assert len(done.out.splitlines()) == 4


def test_a_threshold_and_nothing_above_it(selfsent, model, alike, sentences):
    assert len(selfsent("pairs", model, alike, "--threshold", 0.99999).out.splitlines()) == 2
    none = selfsent("pairs", model, sentences, "--threshold", 1)
    assert (none.status, none.out) == (0, "")
    assert "no pair has a score of 1.0 or more" in none.err


def test_pairs_in_a_file(selfsent, model, alike, tmp_path):
    done = selfsent("pairs", model, alike, "--top", 3, "--output", tmp_path / "p.jsonl")
    assert (done.status, done.out) == (0, ""), done.err
    assert "3 pairs in" in done.err
    rows = tiny.rows_of(tmp_path / "p.jsonl")
    assert len(rows) == 3
    places = {"row1": 0, "row2": 3, "repeats1": 0, "repeats2": 0, "text1": "ba de fi go", "text2": "Ba de fi go"}
    assert {key: value for key, value in rows[0].items() if key not in NUMBERS} == places
    assert [*rows[0]][:3] == [*NUMBERS]
    assert [rows[0][name] for name in NUMBERS] == pytest.approx([1, 1, 1], abs=1e-5)
    for row in rows:
        assert row["score"] == pytest.approx((row["cosine"] + 0.5 * row["words"]) / 1.5, abs=2e-6)


def test_approximate_pairs_come_with_their_recall(selfsent, model, sentences):
    done = selfsent("pairs", model, sentences, "--approximate", "--top", 5, "--word-weight", 0).ok()
    assert "finds, measured on a sample: 1" in done.err
    exact = selfsent("pairs", model, sentences, "--top", 5, "--word-weight", 0)
    assert done.out == exact.out


def test_encode_goes_on_where_it_was_interrupted(selfsent, model, sentences, tmp_path, monkeypatch):
    from selfsent.resumable import ArrayCache
    from selfsent.search.vectors import encode_to_file

    monkeypatch.setattr("selfsent.search.vectors.encode_to_file", partial(encode_to_file, chunk_size=50))
    write = ArrayCache.write

    def write_once(table, rows, vectors):
        if table.done.any():
            raise KeyboardInterrupt
        write(table, rows, vectors)

    with monkeypatch.context() as patch:
        patch.setattr(ArrayCache, "write", write_once)
        stopped = selfsent("encode", model, sentences, "--output", tmp_path / "v.npy")
    assert stopped.status == 130
    assert "interrupted: 50 of 120 texts are done" in stopped.err
    done = selfsent("encode", model, sentences, "--output", tmp_path / "v.npy", "--fast").ok()
    if "no faster in bfloat16" in done.err:
        assert "50 texts had been encoded before" in done.err
    assert [path.name for path in tmp_path.iterdir()] == ["v.npy"]


def test_export(selfsent, model, tmp_path, monkeypatch):
    from selfsent.models.export import Exported

    asked = []

    def export(encoder, *how):
        asked.append(how)
        return Exported(True, 32, 96, {}, {}, 1e-7, 0.95)

    monkeypatch.setattr("selfsent.models.export.export", export)
    done = selfsent("export", model, "--normalize", "--output", tmp_path / "graph").ok()
    assert asked == [(tmp_path / "graph", True)]
    assert "32 numbers a sentence, smallest cosine to torch's vectors 0.950000" in done.err
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "export.json").write_text("{}")
    assert "exists already" in selfsent("export", model, "--output", tmp_path / "old").complaint
    assert selfsent("export", model, "--output", tmp_path / "old", "--overwrite").status == 0
    for other in (model, model.parent):
        complaint = selfsent("export", model, "--output", other, "--overwrite").complaint
        assert "exists and is no export of selfsent" in complaint
    assert (model / "model.safetensors").is_file()


def test_pairs_as_families(selfsent, model, alike, tmp_path):
    done = selfsent("pairs", model, alike, "--threshold", 0.999, "--families", tmp_path / "f.jsonl").ok()
    assert "1 family in" in done.err
    (family,) = tiny.rows_of(tmp_path / "f.jsonl")
    assert (family["row"], family["other_rows"], family["rows"]) == (0, "3", 2)
    assert "must end in" in selfsent("pairs", model, alike, "--families", tmp_path / "f.txt").complaint
