import csv
import gzip
import sys

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard
from corpus_files import COMPRESS, SENTENCES, csv_bytes, encoded, jsonl_bytes, parquet_bytes

from selfsent.errors import CorpusError, SettingsError

SUFFIXES = [".txt", ".csv", ".tsv", ".jsonl", ".ndjson", ".parquet"]


@pytest.mark.parametrize("compression", COMPRESS)
@pytest.mark.parametrize("suffix", SUFFIXES)
def test_every_format_and_compression(suffix, compression, read, write):
    path = write(f"corpus{suffix}{compression}", COMPRESS[compression](encoded(suffix, SENTENCES)))
    assert read(path).texts() == SENTENCES


@pytest.mark.parametrize("compression", [".gz", ".zst", ".bz2"])
def test_joined_archives_are_read_to_the_end(compression, read, write):
    parts = [COMPRESS[compression](f"sentence {n}\n".encode()) for n in range(3)]
    assert read(write(f"x.txt{compression}", b"".join(parts))).texts() == [f"sentence {n}" for n in range(3)]


READ = {
    "ends.txt": (b"\xef\xbb\xbfone\r\ntwo\rthree\n\nfour", ["one", "two", "three", "four"]),
    "ends.csv": (b"\xef\xbb\xbftext,id\r\none,1\r\n\r\ntwo,2\r\n", ["one", "two"]),
    "quotes.csv": ('text,id\n"a, ""b""\nc",1\nd,2\n', ['a, "b" c', "d"]),
    "semicolons.csv": ("id;text\n1;one, two\n2;three\n", ["one, two", "three"]),
    "quotes.tsv": (
        'text\n"an ""old"" one"\n"Stop\nshe said "no"\n"yes" or "no"',
        ['an "old" one', '"Stop', 'she said "no"', '"yes" or "no"'],
    ),
    "nulls.jsonl": (jsonl_bytes([{"text": text} for text in ("a", None, "b")]), ["a", "b"]),
    "nulls.parquet": (parquet_bytes(text=["a", None, "b", ""]), ["a", "b"]),
    "surrogates.jsonl": ('{"text": "bad \\ud800 one"}\n{"text": "fine"}\n', ["bad one", "fine"]),
    "markup.txt": ("<script>alert(1)</script>\n&lt;b&gt;\n", ["<script>alert(1)</script>", "&lt;b&gt;"]),
    "lines.tsv": (
        'id\ttext\n1\t"The printer is dead.\n\nHelp"\r\n2\t"""no""\tand left"\n3\t"open\n',
        ["The printer is dead. Help", '"no" and left', '"open'],
    ),
    "one.tsv": ('text\n"The printer is dead.\nHelp"\nblack\n', ["The printer is dead. Help", "black"]),
    "inches.tsv": ('text\tid\n"5 by 4\t1"\n"6" wide\t2\n', ['"5 by 4', '"6" wide']),
    "tabs.csv": ("id\ttext\n1\tone, two; three\n2\tfour\n", ["one, two; three", "four"]),
    "comma_header.csv": ('"id";"Body, full";"text"\n1;x;"a, b"\n2;y;c\n', ["a, b", "c"]),
    "mixed_header.csv": ("id;Body, full;text\n1;x;a\n2;y;c\n", ["a", "c"]),
    "excel.csv": ("sep=;\ntext;a, b\none;1\ntwo;2\n", ["one", "two"]),
    "crlf.csv": ('text,id\r\n"one\r\ntwo",1\r\nthree,2\r\n', ["one two", "three"]),
    "nan.jsonl": ('{"text": "a"}\n{"text": NaN}\n{"text": "b"}\n', ["a", "b"]),
    "u2028.jsonl": ('{"text": "a\u2028b\u0085c"}\n{"text": "d"}\n', ["a b c", "d"]),
    "blank.csv": ("\n \n\ntext,a\none,1\ntwo,2\n", ["one", "two"]),
    "blank.tsv": ("\n\ntext\ta\none\t1\ntwo\t2\n", ["one", "two"]),
}


@pytest.mark.parametrize("name", READ)
def test_the_texts_of_a_file_are_read(name, read, write):
    content, texts = READ[name]
    assert read(write(name, content)).texts() == texts


def test_limits_of_the_process_are_left_alone(read, write):
    before = csv.field_size_limit(), sys.getrecursionlimit()
    long = "word " * 50_000
    assert [len(t) for t in read(write("x.csv", f"text\n{long}\nb\n")).texts()] == [len(long) - 1, 1]
    with pytest.raises(CorpusError):
        read(write("x.jsonl", b'{"text": ' * 100_000))
    assert (csv.field_size_limit(), sys.getrecursionlimit()) == before


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".parquet", ".txt"])
def test_many_rows(suffix, read, write):
    texts = [f"sentence number {n}" for n in range(20_000)]
    corpus = read(write(f"x{suffix}", encoded(suffix, texts)))
    assert corpus.texts() == texts
    assert corpus.fingerprint == read(texts).fingerprint, "it depends on the batches in which a file is read"


def test_a_line_of_50_megabytes_is_cut_in_bounded_memory(read, write):
    path = write("x.txt.gz", gzip.compress(b"first\n" + b"long line " * 5_000_000 + b"\nlast\n", compresslevel=1))
    corpus = read(path)
    assert [len(text) for text in corpus.texts()] == [5, (1 << 20) - 1, 4] or len(corpus.texts()[1]) == 1 << 20
    assert corpus.report.too_long == 1
    assert corpus.texts()[2] == "last"


BAD = {
    "utf8.txt": (b"good\nfine\r\nbad \xe9 one\n", r", line 3: not UTF-8 \(byte 0xE9\)"),
    "cp1252.csv": (b"text\nDon\x92t\n", r", line 2: not UTF-8 \(byte 0x92\): .*iconv -f cp1252 -t utf-8"),
    "open.tsv": (
        b'id\ttext\n1\ta\n2\t"b\n3\tc\td\n',
        ", line 4: 3 columns where the header has 2: is a quote not closed",
    ),
    "utf8.csv": (b"text\ngood\n\xff\xff\n", r", line 3: not UTF-8 \(byte 0xFF\)"),
    "utf8.jsonl": (b'{"text": "a"}\n{"text": "\xc3"}\n', r", line 2: not UTF-8"),
    "cut.txt": (b"good\nfine\ncut \xe2\x82", r", line 3: not UTF-8 \(byte 0xE2\)"),
    "nul.txt": (b"good\nb\0ad\nx\n", r", line 2: not text: it holds NUL"),
    "zip.csv": (b"PK\x03\x04rest", ": not text but a zip archive"),
    "utf16.txt": ("text here".encode("utf-16"), ": not text but UTF-16"),
    "gzipped.txt": (gzip.compress(b"a\nb\n"), ": not text but gzip"),
    "renamed.txt": (parquet_bytes(text=["a"]), ": not text but a parquet file"),
    "broken.txt.gz": (b"no gzip at all, really", ": cannot be read: .*broken or cut short"),
    "cut.txt.gz": (gzip.compress(csv_bytes(SENTENCES))[:-9], ": cannot be read: .*broken or cut short"),
    "broken.txt.zst": (b"no zstd at all, really", ": cannot be read: .*broken or cut short"),
    "cut.jsonl.zst": (zstandard.compress(jsonl_bytes([{"text": "a"}]))[:-1], ": cannot be read: .*cut short"),
    "broken.parquet": (b"no parquet at all, really", ": not a whole parquet file"),
    "cut.parquet": (parquet_bytes(text=["a", "b"])[:-5], ": not a whole parquet file"),
    "cut.parquet.gz": (gzip.compress(parquet_bytes(text=["a"]))[:-5], ": cannot be read"),
    "json.jsonl": (b'{"text": "a"}\n\n{"text": \n', ", line 3: not a JSON object"),
    "deep.jsonl": (b"[" * 200_000, ", line 1: not a JSON object"),
    "digits.jsonl": (b'{"text": ' + b"1" * 10_000 + b"}", ", line 1: not a JSON object"),
    "list.jsonl": (b'["text"]\n', ", line 1: not a JSON object but list"),
    "field.jsonl": (b'\n{"body": "b"}\n{"text": "a"}\n', r", line 2: no field 'text'; it has 'body': .*text_column"),
    "type.jsonl": (b'{"text": "a"}\n{"text": 5}\n', ", line 2: int '5' in column 'text'"),
    "type.parquet": (parquet_bytes(text=[1, 2]), ", row 1: int '1' in column 'text'"),
    "column.csv": (b"id, body\n1,a\n", r": no column 'text'; it has 'id', 'body': .*text_column"),
    "column.tsv": (b"id\tbody\n1\ta\n", r": no column 'text'; it has 'id', 'body'"),
    "column.parquet": (parquet_bytes(id=[1], body=["a"]), r": no column 'text'; it has 'id', 'body'"),
    "ragged.csv": (b"id,text\n1,a\n2,b,c\n", ", line 3: 3 columns where the header has 2"),
    "short.tsv": (b"id\ttext\n1\ta\n2\n", ", line 3: 1 columns where the header has 2"),
    "blank.csv": (b"\n\ntext,a\none\n", ", line 4: 1 columns"),
    "twice.csv": (b"text,a,text\none,1,uno\n", ": 2 columns are called 'text': rename all but one"),
    "many.csv": (",".join(f"c{n}" for n in range(200)) + "\n", ".*and 180 more"),
    "long.csv": (b"id,text\n1,fine\n2," + b"x" * 20_000_000 + b"\n", ", line 3: longer than"),
    "quote.csv": (b'id,text\n1,a\n2,"b\n3,c\n', ", line 3: broken quoting"),
    "empty.txt": (b"", ": no text in it"),
    "empty.csv": (b"", ": no text in it"),
    "header.csv": (b"text\n", ": no text in it"),
    "blank.txt": (b"\n \n\t\n", ": no text in it"),
    "rows.parquet": (parquet_bytes(text=[""]), ": no text in it"),
    "one.txt": (b"same\nsame \n", ": only one distinct sentence"),
    "table.xlsx": (b"x", ": a spreadsheet: save it as .csv"),
    "kind.docx": (b"x", ": unknown kind of file; known are .txt"),
    "none": (b"x", ": unknown kind of file"),
    "two\nlines.txt": (b"", ""),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_files_get_one_line_with_file_and_place(name, read, write, tmp_path):
    content, expected = BAD[name]
    with pytest.raises(CorpusError, match=rf"{name.replace(chr(10), '.n')}'?{expected}") as caught:
        read(write(name, content))
    assert len(str(caught.value).splitlines()) == 1
    whole = name == "one.txt"  # too little to train on, and a table all the same: it can be encoded
    assert whole or not list((tmp_path / "cache").rglob("*.arrow"))


def test_a_bad_later_file_is_found_before_the_first_is_read(read, write, tmp_path, monkeypatch):
    write("d/a.txt", "one\ntwo\n")
    write("d/b.csv", "id\n1\n")
    monkeypatch.setattr("selfsent.data.corpus.writer.TableFile.append", lambda *given: pytest.fail("reading began"))
    with pytest.raises(CorpusError, match=r"b\.csv: no column"):
        read(tmp_path / "d")


def test_labels_that_are_no_unicode(read, write):
    lines = '{"text": "one", "label": "\\ud800a"}\n{"text": "two", "label": "a"}\n{"text": "three", "label": "b"}\n'
    assert read(write("x.jsonl", lines), label_column="label").label_names == ("a", "b")


def test_columns_of_parquet_files_that_cannot_be_told_apart_or_read(read, tmp_path):
    twice = pa.Table.from_arrays([pa.array(["a", "b"])] * 2, names=["text", "text"])
    late = pa.table({"text": ["a", "b"], "day": pa.array([2**62, 2**62], pa.timestamp("us"))})
    for number, (table, columns) in enumerate(((twice, {}), (late, {"document_column": "day"}))):
        pq.write_table(table, tmp_path / f"{number}.parquet")
        with pytest.raises(CorpusError, match=f"{number}.parquet"):
            read(tmp_path / f"{number}.parquet", **columns)


class TestBombs:
    ROWS = b"text\n" + b"a row that comes again and again\n" * 40_000

    @pytest.fixture(autouse=True)
    def small(self, monkeypatch):
        monkeypatch.setattr("selfsent.data.corpus.streams.SMALL", 1 << 18)

    def bomb(self, write, name):
        packed = gzip.compress(self.ROWS) if name.endswith(".gz") else zstandard.compress(self.ROWS)
        return write(name, packed)

    @pytest.mark.parametrize("name", ["x.csv.gz", "x.csv.zst", "x.txt.zst", "x.tsv.gz", "x.parquet.gz"])
    def test_a_file_that_unpacks_to_too_much_is_refused(self, read, write, name):
        with pytest.raises(CorpusError, match=r"its first [\d,]+ bytes unpack to .*, set SELFSENT_MOST_UNPACKED to"):
            read(self.bomb(write, name))

    def test_the_limit_can_be_raised(self, read, write, monkeypatch):
        path = self.bomb(write, "x.csv.gz")
        monkeypatch.setenv("SELFSENT_MOST_UNPACKED", str(len(self.ROWS) - 1))
        with pytest.raises(CorpusError, match="unpack to"):
            read(path, min_rows=1)
        monkeypatch.setenv("SELFSENT_MOST_UNPACKED", str(len(self.ROWS)))
        assert read(path, min_rows=1).texts() == ["a row that comes again and again"]
        monkeypatch.setenv("SELFSENT_MOST_UNPACKED", "much")
        with pytest.raises(SettingsError, match="SELFSENT_MOST_UNPACKED is 'much'; it must be a number of bytes"):
            read(self.bomb(write, "y.csv.gz"), min_rows=1)

    def test_ordinary_text_is_far_from_it(self, read, write):
        rows = "text\n" + "".join(f"row {n} of a log at {n * 7919 % 86400} seconds\n" for n in range(40_000))
        assert len(read(write("x.csv.gz", gzip.compress(rows.encode())))) == 40_000


def test_a_file_of_open_quotes_takes_no_square(read, write):
    for opening in ('"a', '"""', '""x'):
        lines = f"{opening}\n" * 2 + '""x\n' * 30_000
        assert len(read(write("x.tsv", f"text\n{lines}end\n")).texts()) > 1
    assert read(write("y.tsv", "text\ta\n" + 'x\t"\n' * 30_000 + "end\t1\n")).texts() == ["x", "end"]


WIDE = 9007199254740993
"""An integer that no float holds."""


def source_of(kind, rows, write):
    """Rows of texts and ids as a file of a kind, or as a table in memory."""
    table = {name: [row[name] for row in rows] for name in ("text", "id")}
    if kind in ("rows", "columns"):
        return rows if kind == "rows" else table
    if kind == ".jsonl":
        return write("x.jsonl", jsonl_bytes(rows))
    if kind == ".parquet":
        return write("x.parquet", parquet_bytes(**table))
    sign = "\t" if kind == ".tsv" else ","
    return write(
        f"x{kind}", "\n".join(sign.join(map(str, cells)) for cells in (table, *(row.values() for row in rows)))
    )


@pytest.mark.parametrize(
    ("kind", "ids"),
    [
        *((kind, [WIDE, 1234567890123456789, 5]) for kind in (".csv", ".tsv", ".jsonl", ".parquet", "rows", "columns")),
        *((kind, [WIDE, 1.5]) for kind in (".csv", ".jsonl", "rows", "columns")),
    ],
    ids=str,
)
def test_ids_are_as_they_were_written_however_many_digits_they_have(kind, ids, read, write):
    rows = [{"text": f"text {row}", "id": number} for row, number in enumerate(ids)]
    corpus = read(source_of(kind, rows, write), metadata_columns="id")
    found = corpus.input_rows.describe(np.arange(len(ids)))["id"]
    assert list(map(str, found)) == list(map(str, ids))


def test_missing_values_of_rows_are_empty(read):
    frame = pd.DataFrame(
        {"text": ["a", None, "b"], "team": ["x", float("nan"), "y"], "when": pd.to_datetime(["2026", None, "2026"])}
    )
    corpus = read(frame.to_dict("records"), metadata_columns="team,when")
    assert corpus.texts() == ["a", "b"]
    assert corpus.input_rows.describe(np.arange(3))["team"] == ["x", None, "y"]
    assert corpus.input_rows.describe(np.arange(3))["when"][1] is None
    assert read({"text": ["a", float("nan"), "b"]}).texts() == ["a", "b"]
