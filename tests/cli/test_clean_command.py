import pyarrow.parquet as pq

import tiny


def test_the_text_is_written_as_it_is_read_one_line_for_each_row(selfsent, tmp_path):
    (tmp_path / "t.csv").write_text(
        "id,body\n7,<p>the printer</p>\n8,\n9,see https://example.org\n10,<b>the printer</b>\n"
    )
    given = ("clean", tmp_path / "t.csv", "--text-column", "body", "--id-column", "id", "--clean", "html,urls")
    done = selfsent(*given, "--output", tmp_path / "clean.csv").ok()
    assert f"4 rows in {tmp_path / 'clean.csv'}" in done.err
    rows = [(row["row"], row["id"], row["text"]) for row in tiny.rows_of(tmp_path / "clean.csv")]
    assert rows == [("0", "7", "the printer"), ("1", "8", ""), ("2", "9", "see"), ("3", "10", "the printer")]
    assert selfsent(*given, "--split-sentences", "--output", tmp_path / "c.parquet").status == 0
    assert pq.read_table(tmp_path / "c.parquet").column_names == ["row", "sentence", "id", "text"]
    assert "--output would replace" in selfsent(*given, "--output", tmp_path / "t.csv").complaint
    assert "must end in" in selfsent(*given, "--output", tmp_path / "c.txt").complaint


def test_a_column_of_numbers_is_called_that(selfsent, tmp_path):
    (tmp_path / "t.csv").write_text("id,text\n" + "".join(f"{n},{n * 7}\n" for n in range(20)))
    done = selfsent("clean", tmp_path / "t.csv", "--output", tmp_path / "c.csv")
    assert "100% of the texts are numbers" in done.err


def test_a_query_that_nothing_answers_is_told(selfsent, tmp_path):
    (tmp_path / "t.txt").write_text("the printer is out of toner\nmy invoice was paid twice\n")
    search = ("search", "bundled", tmp_path / "t.txt")
    assert "nothing is near 'zqxv wvvk'" in selfsent(*search, "zqxv wvvk").err
    assert "nothing is near" not in selfsent(*search, "no ink in the printer").err
