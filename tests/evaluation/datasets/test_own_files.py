import csv
import gzip
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from selfsent.errors import DataError, SettingsError
from selfsent.evaluation.suites import check_request, evaluate
from selfsent.evaluation.tasks.own import OWN

COLUMNS = {"pairs": ("sentence1", "sentence2", "score"), "relevance": ("query", "text"), "labels": ("text", "label")}
ROWS = {
    "pairs": [("a b", 'c, "d"', 1.5), ("e", "f ü", 3.0), ("g", "h", 4.25)],
    "relevance": [("a b", "c, d"), ("e", "f ü"), ("e", "h")],
    "labels": [(f"text {n}, of {n}", ("one", "two")[n % 2]) for n in range(26)],
}


def write(path, kind, names=None):
    """The rows of a kind, among other columns and in another order than is asked for."""
    names = names or COLUMNS[kind]
    rows = [{"id": n} | dict(reversed(list(zip(names, row, strict=True)))) for n, row in enumerate(ROWS[kind])]
    if path.suffix == ".parquet":
        pq.write_table(pa.Table.from_pylist(rows), path)
    elif path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    else:
        with path.open("w", newline="") as file:
            table = csv.DictWriter(file, rows[0])
            table.writeheader()
            table.writerows(rows)
    return path


def tabs(path, kind):
    path.write_text("".join("\t".join(map(str, row)) + "\n" for row in ROWS[kind]))
    return path


@pytest.mark.parametrize("kind", OWN)
@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
def test_files_name_their_columns_as_a_corpus_does(tmp_path, kind, ending):
    found, expected = (
        OWN[kind][0](path) for path in (write(tmp_path / f"mine.{ending}", kind), tabs(tmp_path / "mine", kind))
    )
    assert found.columns == expected.columns
    assert (found.name, found.fingerprint) == ("mine", expected.fingerprint)


@pytest.mark.parametrize("kind", OWN)
def test_columns_by_other_names(tmp_path, kind):
    other = tuple(f"my {name}" for name in COLUMNS[kind])
    path = write(tmp_path / "mine.csv", kind, other)
    assert OWN[kind][0](path, other).columns == OWN[kind][0](tabs(tmp_path / "mine.tsv", kind)).columns
    with pytest.raises(SettingsError, match=rf"needs {len(other)} columns, for .*; 1 are named"):
        OWN[kind][0](path, other[:1])


def test_a_compressed_file_goes_by_its_whole_name(tmp_path):
    path = write(tmp_path / "my.own.csv", "labels")
    (tmp_path / "my.own.csv.gz").write_bytes(gzip.compress(path.read_bytes()))
    assert OWN["labels"][0](tmp_path / "my.own.csv.gz").name == "my.own"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("text,team\na,b\n", r"mine.csv: no column 'label'; it has 'text', 'team': needed are text, label"),
        ("text,label\na,\n", r"mine.csv, line 2: no value in column 'label'"),
        ("text,label\na,b\n ,c\n", r"mine.csv, row 2: text is empty"),
        ("text,label\na,b\n", "has 1 row; at least two"),
        ("", "has 0 rows; at least two"),
        ('text,label\n"a,b\n', "broken quoting"),
    ],
)
def test_bad_files_are_one_line(tmp_path, text, message):
    (tmp_path / "mine.csv").write_text(text)
    with pytest.raises(DataError, match=message) as caught:
        OWN["labels"][0](tmp_path / "mine.csv")
    assert "\n" not in str(caught.value)


def test_a_file_without_names_cannot_have_others(tmp_path):
    with pytest.raises(DataError, match="does not name its columns"):
        OWN["labels"][0](tabs(tmp_path / "mine.txt", "labels"), ("body", "team"))


def test_evaluate_takes_the_names_of_columns(tmp_path, model):
    path = write(tmp_path / "mine.csv", "labels", ("body", "team"))
    assert evaluate(model, labels=path, columns=("body", "team")).scores["mine"].n == 26
    with pytest.raises(SettingsError, match="those of one file"):
        check_request(task="stsb", columns=("body", "team"))
