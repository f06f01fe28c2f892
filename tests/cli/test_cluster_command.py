import csv
import json

import pyarrow.parquet as pq
import pytest


@pytest.mark.parametrize("name", ["c.csv", "c.tsv", "c.jsonl", "c.parquet"])
def test_groups_on_the_terminal_and_in_a_file(selfsent, model, sentences, tmp_path, name):
    done = selfsent("cluster", model, sentences, "--clusters", 4, "--output", tmp_path / name)
    assert done.status == 0, done.err
    assert "most typical sentence" in done.out
    assert f"120 rows in {tmp_path / name}" in done.err
    if name == "c.parquet":
        rows = pq.read_table(tmp_path / name).to_pylist()
    elif name == "c.jsonl":
        rows = [json.loads(line) for line in (tmp_path / name).read_text().splitlines()]
    else:
        with (tmp_path / name).open(newline="") as file:
            rows = list(csv.DictReader(file, delimiter="\t" if name == "c.tsv" else ","))
    lines = sentences.read_text().splitlines()
    assert sorted(int(row["row"]) for row in rows) == list(range(120))
    assert all(lines[int(row["row"])] == row["text"] for row in rows)
    groups = [int(row["cluster"]) for row in rows]
    assert groups == sorted(groups)
    assert set(groups) == {0, 1, 2, 3}
    sizes = [groups.count(group) for group in range(4)]
    assert sizes == sorted(sizes, reverse=True)
    first = [float(row["cosine"]) for row in rows if int(row["cluster"]) == 0]
    assert first == sorted(first, reverse=True)


def test_hostile_text_is_shown_as_it_is(selfsent, model, tmp_path):
    path = tmp_path / "hostile.txt"
    path.write_text("[bold]ri[/bold]\n\x1b[31mmo ba ki\nla nu po\n" + "ba " * 2000 + "\n")
    shown = selfsent("cluster", model, path, "--clusters", 4).out
    assert "[bold]ri" in shown
    assert "\x1b" not in shown
    assert len(shown) < 5000


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (("--clusters", 1), "--clusters is 1; it must be at least 2"),
        (("--seed", -1), "--seed is -1"),
        (("--output", "groups.txt"), "must end in .csv"),
    ],
)
def test_bad_input(selfsent, model, sentences, options, complaint):
    assert complaint in selfsent("cluster", model, sentences, *options).complaint


def test_a_place_that_cannot_be_written_to(selfsent, model, sentences):
    assert str(sentences) in selfsent("cluster", model, sentences, "--output", sentences / "groups.csv").complaint


def test_sentences_with_equal_vectors_make_fewer_groups(selfsent, model, tmp_path):
    (tmp_path / "equal.txt").write_text("ba de\nBA de\nba DE\nmo ki\n")
    done = selfsent("cluster", model, tmp_path / "equal.txt", "--clusters", 3)
    assert done.status == 0
    assert done.err.endswith("2 groups instead of 3: the other sentences have equal vectors\n")
    assert "Warning" not in done.err


def test_more_groups_than_sentences(selfsent, model, sentences):
    complaint = selfsent("cluster", model, sentences, "--clusters", 121).late_complaint
    assert "--clusters is 121; the corpus has 120 different texts" in complaint


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
