import json
import time

import pyarrow.parquet as pq

import tiny
from web import answered, answering


def test_groups_on_the_terminal_and_in_a_file(selfsent, model, sentences, tmp_path):
    done = selfsent("cluster", model, sentences, "--clusters", 4, "--output", tmp_path / "c.parquet").ok()
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


def test_as_many_groups_as_there_are_new_rows_join_them_and_counts_over_time(selfsent, model, tmp_path):
    texts = [f"{'ba de gu' if row % 2 else 'mo ki ta lo'} {'ne' * (row % 3)}" for row in range(40)]
    lines = [f"T-{row},{text},2026-01-{1 + row % 28:02d}" for row, text in enumerate(texts)]
    (tmp_path / "t.csv").write_text("\n".join(["id,text,created", *lines]) + "\n")
    reading = ("--id-column", "id", "--over", "created")
    written = ("--output", tmp_path / "g.parquet", "--json", tmp_path / "g.json")
    selfsent("cluster", model, tmp_path / "t.csv", *reading, *written).ok()
    table, groups = tiny.rows_of(tmp_path / "g.parquet"), json.loads((tmp_path / "g.json").read_text())
    assert len(table) == 40
    assert {row["id"] for row in table} == {f"T-{row}" for row in range(40)}
    counted = sum(sum(group["over"].values()) for group in groups["clusters"])
    assert counted == sum(row["cluster"] >= 0 for row in table)
    assert list(groups["clusters"][0]["over"])[:2] == ["2026-01-01", "2026-01-02"]
    (tmp_path / "new.csv").write_text("id,text\nN-1,ba de gu\nN-2,mo ki ta lo\n")
    new = ("cluster", model, tmp_path / "new.csv", "--id-column", "id", "--to", tmp_path / "g.parquet")
    assert selfsent(*new, "--output", tmp_path / "n.parquet").status == 0
    old = {row["text"]: row["cluster"] for row in table}
    assert {row["text"]: row["cluster"] for row in tiny.rows_of(tmp_path / "n.parquet")} == {
        text: old[text] for text in ("ba de gu", "mo ki ta lo")
    }
    assert "--to takes the groups of a file" in selfsent(*new, "--clusters", 2).complaint
    assert "no column 'cluster'" in selfsent(*new[:-1], tmp_path / "t.csv").complaint
    assert "--output would replace" in selfsent(*new, "--output", tmp_path / "g.parquet").complaint


def test_a_page_with_a_map(selfsent, model, sentences, tmp_path):
    selfsent("cluster", model, sentences, "--clusters", 4, "--page", tmp_path / "c.html", "--map", 40).ok()
    page = (tmp_path / "c.html").read_text()
    assert "<h1>4 groups of 120 sentences</h1>" in page
    assert "40 of 120 sentences, drawn at random" in page
    assert "\\u00b7 group " in page
    without = selfsent("cluster", model, sentences, "--clusters", 4, "--page", "-", "--map", 0).out
    assert without.startswith("<!doctype html>")
    assert "<canvas" not in without
    assert "--map is 2" in selfsent("cluster", model, sentences, "--map", 2).complaint
    assert "--page would replace" in selfsent("cluster", model, sentences, "--page", sentences).complaint


def test_two_levels_and_titles(selfsent, model, sentences, tmp_path, monkeypatch):
    monkeypatch.setenv("SELFSENT_CACHE", str(tmp_path / "cache"))
    common = ("cluster", model, sentences, "--clusters", 6, "--levels", 2)
    with answering(lambda *a: (200, answered("A <b>title</b>"), {})) as (url, asked):
        done = selfsent(
            *common, "--llm", url, "--llm-model", "tiny", "--page", tmp_path / "p.html", "--json", tmp_path / "g.json"
        )
    assert done.status == 0, done.err
    found = json.loads((tmp_path / "g.json").read_text())
    parents = [group["parent"] for group in found["clusters"]]
    assert sorted({*parents}) == list(range(len(found["parents"])))
    sizes = [
        sum(group["size"] for group in found["clusters"] if group["parent"] == p["parent"]) for p in found["parents"]
    ]
    assert [parent["size"] for parent in found["parents"]] == sizes
    assert {group["title"] for group in found["clusters"] + found["parents"]} == {"A <b>title</b>"}
    assert len(asked) == 6 + len(found["parents"])
    assert "part of" in done.out
    assert f"{url} is asked for 6 titles" in done.err
    page = (tmp_path / "p.html").read_text()
    assert "A &lt;b&gt;title&lt;/b&gt;" in page
    assert "<b>title" not in page
    assert selfsent(*common, "--output", tmp_path / "g.parquet").status == 0
    assert all(row["parent"] == parents[row["cluster"]] for row in tiny.rows_of(tmp_path / "g.parquet"))
    with answering(lambda *a: (403, {}, {})) as (url, _):
        told = selfsent(*common, "--llm", url, "--llm-model", "tiny", "--json", tmp_path / "untitled.json")
    assert (told.status, "not all titles: " in told.err) == (0, True)
    assert len(json.loads((tmp_path / "untitled.json").read_text())["clusters"]) == 6
    with answering(lambda *a: (time.sleep(2), (200, answered("late"), {}))[1]) as (url, asked):
        llm = ("--llm", url, "--llm-model", "tiny", "--timeout", 0.05)
        told = selfsent("cluster", model, sentences, "--clusters", 2, *llm)
    assert (told.status, len(asked)) == (0, 2), told.err
    slow = "no answer to 2 questions in a row (too slow)"
    assert f"{slow}. What was made is kept: give a --timeout above 0.05" in told.err
    with answering(lambda *a: (200, answered("Title:\n\nTitle:"), {})) as (url, _):  # as SmolLM2 answered
        told = selfsent("cluster", model, sentences, "--clusters", 2, "--llm", url, "--llm-model", "tiny")
    assert (told.status, "2 groups without a title: the answers hold none" in told.err) == (0, True), told.err
    told = selfsent("cluster", model, sentences, "--llm", "http://localhost:1/v1")
    assert (told.status, "--llm-model" in told.err) == (2, True)
    told = selfsent("cluster", model, sentences, "--levels", 2, "--to", tmp_path / "g.parquet")
    assert (told.status, "--levels" in told.err) == (2, True)
