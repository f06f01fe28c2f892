import gzip
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tiny
from selfsent.progress import Shown

PRINTER = "The printer in room 42 on the second floor is jammed again, please send someone"
ROWS = [
    {"id": 17, "body": PRINTER, "note": "007", "more": 'a "b", c'},
    {"id": 18, "body": PRINTER.replace("42", "43"), "note": "x", "more": ""},
    {"id": 19, "body": "", "note": "", "more": "two\nlines"},
    {"id": 20, "body": "My mail is locked", "note": "1.50", "more": "é"},
]


@pytest.fixture
def tickets(tmp_path):
    return tiny.write_table(tmp_path / "tickets.csv", ROWS)


def cells(path):
    return [{**row, "id": int(row["id"])} for row in tiny.rows_of(path)]


def test_a_table_without_copies_and_its_families(selfsent, tickets, tmp_path):
    given = "dedup", tickets, "--text-column", "body", "--id-column", "id", "--output", tmp_path / "unique.csv"
    done = selfsent(*given).ok()
    assert f"3 rows of 4 in {tmp_path}/unique.csv; families in {tmp_path}/families.csv" in done.err
    assert done.out.splitlines()[1].strip() == "18: 42 → 43"
    assert cells(tmp_path / "unique.csv") == [ROWS[0], ROWS[2], ROWS[3]]
    (family,) = tiny.rows_of(tmp_path / "families.csv")
    assert (family["kept"], family["rows"], family["others"], family["differs"]) == ("17", "2", "18", "18: 42 → 43")
    assert "42 → 43" in (tmp_path / "families.html").read_text()
    before = {path: path.read_bytes() for path in tmp_path.glob("*.*")}
    assert "exists already: give --overwrite" in selfsent(*given).complaint
    assert {path: path.read_bytes() for path in tmp_path.glob("*.*")} == before
    again = selfsent(*given, "--overwrite", "--guard", "numbers")
    assert "4 rows of 4" in again.err
    assert cells(tmp_path / "unique.csv") == ROWS


def test_the_formats_keep_all_columns(selfsent, tmp_path):
    kept = [ROWS[0], ROWS[2], ROWS[3]]
    lines = [json.dumps({**row, "tags": [1, {"a": 2}]}) for row in ROWS]
    (tmp_path / "t.jsonl").write_text("\n".join([*lines[:2], "", *lines[2:]]))
    selfsent("dedup", tmp_path / "t.jsonl", "--text-column", "body", "--output", tmp_path / "u.jsonl.gz").ok()
    written = gzip.decompress((tmp_path / "u.jsonl.gz").read_bytes()).decode()
    assert written.splitlines() == [lines[0], lines[2], lines[3]]
    columns = {name: [row[name] for row in ROWS] for name in ROWS[0]}
    table = pa.table({**columns, "at": pa.array([1, 2, 3, 4], "date32")})
    pq.write_table(table, tmp_path / "t.parquet")
    given = "dedup", tmp_path / "t.parquet", "--text-column", "body", "--overwrite"
    assert selfsent(*given, "--output", tmp_path / "u.parquet").status == 0
    assert pq.read_table(tmp_path / "u.parquet").equals(table.take([0, 2, 3]))
    given = "dedup", tiny.write_table(tmp_path / "t.tsv", ROWS), "--text-column", "body", "--overwrite"
    assert selfsent(*given, "--output", tmp_path / "u.tsv").status == 0
    assert cells(tmp_path / "u.tsv") == kept
    (tmp_path / "t.txt").write_text(f"{PRINTER}\n\n{PRINTER.upper()}\nMy mail is locked\n")
    assert selfsent("dedup", tmp_path / "t.txt", "--output", tmp_path / "u.txt", "--overwrite").status == 0
    assert (tmp_path / "u.txt").read_text() == f"{PRINTER}\n\nMy mail is locked\n"


def test_several_files_become_one(selfsent, tmp_path):
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.csv").write_text(f"text;n\n{PRINTER};1\nMy mail is locked;2\n")
    (tmp_path / "in" / "b.csv").write_text(f"text;n\n{PRINTER.lower()};3\nA third thing;4\n")
    assert selfsent("dedup", tmp_path / "in", "--output", tmp_path / "u.csv").status == 0
    assert (tmp_path / "u.csv").read_text() == f"text;n\n{PRINTER};1\nMy mail is locked;2\nA third thing;4\n"
    (tmp_path / "in" / "c.csv").write_text("n;text\n1;Something else\n")
    done = selfsent("dedup", tmp_path / "in", "--output", tmp_path / "u2.csv", "--families", tmp_path / "f2.csv")
    assert "its columns are not those of the first file" in done.late_complaint
    assert not (tmp_path / "u2.csv").exists()


def test_meaning(selfsent, model, tmp_path):
    (tmp_path / "t.txt").write_text("ba de fi go\nko mi\nla nu po\nBa de fi go\n")
    given = "dedup", tmp_path / "t.txt", "--level", "meaning", "--model", model, "--json", tmp_path / "d.json"
    selfsent(*given, "--threshold", 0.999, "--output", tmp_path / "u.txt").ok()
    assert (tmp_path / "u.txt").read_text() == "ba de fi go\nko mi\nla nu po\n"
    about = json.loads((tmp_path / "d.json").read_text())
    assert (about["level"], about["threshold"], about["rows"], about["kept"]) == ("meaning", 0.999, 4, 3)
    assert about["families"][0]["other_rows"] == "3"


def test_what_cannot_be_done(selfsent, tickets, tmp_path):
    given = "dedup", tickets, "--text-column", "body"
    for more, reason in (
        (("--output", tmp_path / "u.jsonl"), "its name must end in .csv"),
        (("--output", tickets, "--overwrite"), "which is read: name another file"),
        (("--output", tmp_path / "u.csv", "--split-sentences"), "a sentence is no row"),
        (("--output", tmp_path / "u.csv", "--without", tickets), "compares a table with itself"),
        (("--output", tmp_path / "u.csv", "--guard", "dates"), "it is one of numbers, negations, names"),
        (("--output", tmp_path / "u.csv", "--keep-row", "last"), "--keep-row is 'last'"),
    ):
        assert reason in selfsent(*given, *more).complaint
    assert "read only once" in selfsent("dedup", "-", "--output", tmp_path / "u.txt").complaint
    assert [path.name for path in tmp_path.iterdir()] == ["tickets.csv"]


def test_hostile_text_is_escaped(selfsent, tmp_path):
    (tmp_path / "t.csv").write_text("text\n=1+1 <script>alert(1)</script> one\n=1+1 <script>alert(1)</script> ONE\n")
    given = "dedup", tmp_path / "t.csv", "--output", tmp_path / "u.csv", "--safe-csv"
    assert selfsent(*given).status == 0
    assert "<script>" not in (tmp_path / "families.html").read_text()
    assert "'=1+1" in (tmp_path / "families.csv").read_text()


def test_an_interruption_leaves_nothing_half_written(selfsent, tickets, tmp_path, monkeypatch):
    def interrupted(told, what, done, total):
        if what == "writing":
            raise KeyboardInterrupt

    monkeypatch.setattr(Shown, "count", interrupted)
    done = selfsent("dedup", tickets, "--text-column", "body", "--output", tmp_path / "u.csv")
    assert done.status == 130
    assert not list(tmp_path.glob("*u.csv*"))


def test_a_threshold_with_a_precision(selfsent, tmp_path):
    words = [f"word{number} thing{number * 7 % 300} other{number * 11 % 300} last{number}" for number in range(300)]
    (tmp_path / "t.txt").write_text("\n".join([*words, *(f"{text} more" for text in words[:60])]))
    given = "dedup", tmp_path / "t.txt", "--output", tmp_path / "u.txt", "--json", tmp_path / "d.json"
    done = selfsent(*given, "--precision", 0.99).ok()
    about = json.loads((tmp_path / "d.json").read_text())
    assert (about["rows"], about["kept"]) == (360, 300)
    assert about["precision"]["precision"] >= 0.99
    assert f"minimum similarity {about['threshold']:g}: 9" in done.err or ": 100.0 %" in done.err
    assert "of the copies are copies" in (tmp_path / "families.html").read_text()
    assert "--precision chooses the threshold" in selfsent(*given, "--precision", 0.9, "--threshold", 0.5).complaint
