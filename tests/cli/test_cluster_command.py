import pyarrow.parquet as pq


def test_groups_on_the_terminal_and_in_a_file(selfsent, model, sentences, tmp_path):
    done = selfsent("cluster", model, sentences, "--clusters", 4, "--output", tmp_path / "c.parquet")
    assert done.status == 0, done.err
    assert "most typical sentence" in done.out
    assert f"120 rows in {tmp_path / 'c.parquet'}" in done.err
    table = pq.read_table(tmp_path / "c.parquet").to_pydict()
    lines = sentences.read_text().splitlines()
    assert sorted(table["row"]) == list(range(120))
    assert [lines[row] for row in table["row"]] == table["text"]
    groups = table["cluster"]
    assert groups == sorted(groups)
    sizes = [groups.count(group) for group in range(4)]
    assert sizes == sorted(sizes, reverse=True)
    assert sum(sizes) == 120
    first = table["cosine"][: sizes[0]]
    assert first == sorted(first, reverse=True)


def test_sentences_with_equal_vectors_make_fewer_groups(selfsent, model, tmp_path):
    (tmp_path / "equal.txt").write_text("ba de\nBA de\nba DE\nmo ki\n")
    done = selfsent("cluster", model, tmp_path / "equal.txt", "--clusters", 3)
    assert done.status == 0
    assert done.err.endswith("2 groups instead of 3: the other sentences have equal vectors\n")
    assert "Warning" not in done.err


def test_a_page_with_a_map(selfsent, model, sentences, tmp_path):
    done = selfsent("cluster", model, sentences, "--clusters", 4, "--page", tmp_path / "c.html", "--map", 40)
    assert done.status == 0, done.err
    page = (tmp_path / "c.html").read_text()
    assert "<h1>4 groups of 120 sentences</h1>" in page
    assert "40 of 120 sentences, drawn at random" in page
    without = selfsent("cluster", model, sentences, "--clusters", 4, "--page", "-", "--map", 0).out
    assert without.startswith("<!doctype html>")
    assert "<canvas" not in without
    assert "--map is 2" in selfsent("cluster", model, sentences, "--map", 2).complaint
    assert "--page would replace" in selfsent("cluster", model, sentences, "--page", sentences).complaint
