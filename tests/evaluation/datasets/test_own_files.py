import csv
import gzip

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tiny
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
        return path
    return tiny.write_table(path, rows)


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
    packed = tmp_path / f"my.own.{ending}.gz"
    packed.write_bytes(gzip.compress((tmp_path / f"mine.{ending}").read_bytes()))
    assert ending == "parquet" or OWN[kind][0](packed).name == "my.own"


@pytest.mark.parametrize("kind", OWN)
def test_columns_by_other_names(tmp_path, kind):
    other = tuple(f"my {name}" for name in COLUMNS[kind])
    path = write(tmp_path / "mine.csv", kind, other)
    assert OWN[kind][0](path, other).columns == OWN[kind][0](tabs(tmp_path / "mine.tsv", kind)).columns
    with pytest.raises(SettingsError, match=rf"needs {len(other)} columns, for .*; 1 are named"):
        OWN[kind][0](path, other[:1])
    with pytest.raises(DataError, match="does not name its columns"):
        OWN[kind][0](tabs(tmp_path / "mine.txt", kind), other)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("text,team\na,b\n", r"mine.csv: no column 'label'; it has 'text', 'team': needed are text, label"),
        ("text,label\na,\n", r"mine.csv, line 2: no value in column 'label'"),
        ("text,label\na,b\n ,c\n", "mine.csv has 1 row besides 1 row without text; at least two are needed"),
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


def test_texts_are_cleaned_joined_and_counted_where_nothing_is_left(tmp_path):
    path = tmp_path / "mine.csv"
    rows = [("id", "subject", "body", "team")]
    rows += [(n, f"no {n}", f"<p>it&#39;s <b>dead</b>\n\tnow {n}</p>", ("it", "house")[n % 2]) for n in range(26)]
    rows += [(98, "", "<br>", "it"), (99, " ", "", "it")]
    with path.open("w", newline="") as file:
        csv.writer(file).writerows(rows)
    found = OWN["labels"][0](path, (("subject", "body"), "team"), "html")
    assert found["text"][:2] == ["no 0 it's dead now 0", "no 1 it's dead now 1"]
    assert (len(found), found.warnings) == (26, ("mine: 2 rows without text left out",))
    found = OWN["relevance"][0](path, ("subject", "body"), ["html"])
    assert found["query"][0] == "no 0"
    assert found["text"][0] == "it's dead now 0"
    assert len(OWN["labels"][0](path, ("body", "team"))) == 27  # a tag is text to those who do not clean
    with pytest.raises(SettingsError, match="there is no cleaner 'htm'; did you mean 'html'"):
        OWN["labels"][0](path, ("body", "team"), "htm")


@pytest.mark.parametrize("kind", OWN)
def test_rows_without_text_are_left_out_of_tabs_too_and_ids_are_not_read(tmp_path, kind, model):
    names = COLUMNS[kind][::-1]
    empty = ("99", *("1" if name in ("label", "score") else " " for name in names))
    rows = [("id", *names), *((n, *row[::-1]) for n, row in enumerate(ROWS[kind])), empty]
    (tmp_path / "mine.tsv").write_text("".join("\t".join(map(str, row)) + "\n" for row in rows))
    found = OWN[kind][0](tmp_path / "mine.tsv")
    assert found.columns == OWN[kind][0](tabs(tmp_path / "plain", kind)).columns
    assert found.warnings == ("mine: 1 row without text left out",)
    assert evaluate(model, **{kind: tmp_path / "mine.tsv"}).warnings == found.warnings


def test_evaluate_takes_the_names_of_columns(tmp_path, model):
    path = write(tmp_path / "mine.csv", "labels", ("body", "team"))
    assert evaluate(model, labels=path, columns=("body", "team")).scores["mine"].n == 26
    with pytest.raises(SettingsError, match="those of one file"):
        check_request(task="stsb", columns=("body", "team"))
