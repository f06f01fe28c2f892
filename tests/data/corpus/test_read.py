import inspect
import json
import os
import threading
from dataclasses import fields

import numpy as np
import pytest
from corpus_files import SENTENCES, encoded, jsonl_bytes, parquet_bytes

from selfsent.data.corpus import Corpus, read_corpus
from selfsent.data.corpus.sources import OPTIONS
from selfsent.errors import CorpusError, Damaged, SettingsError
from selfsent.settings import CorpusOptions, PairOptions


def test_what_is_dropped_is_counted(read, write):
    corpus = read(write("x.txt", b"one\n\n  one \ntwo\x07\n\x02\x01\nthree\n" + b"x" * (1 << 20) + b"yz\n"))
    assert corpus.texts()[:3] == ["one", "two", "three"]
    report = corpus.report
    assert (report.files, report.rows_read, report.kept, len(corpus)) == (1, 7, 4, 4)
    assert (report.empty, report.duplicates, report.control_characters, report.too_long) == (1, 1, 2, 1)
    assert report.summary().splitlines() == [
        "4 sentences in 2 documents (1 empty, 1 duplicate dropped)",
        "2 rows rid of control characters, 1 text cut short",
    ]


def test_every_declared_option_is_an_argument():
    declared = {item.name for kind in (CorpusOptions, PairOptions) for item in fields(kind)}
    assert declared | {*OPTIONS} <= inspect.signature(read_corpus).parameters.keys()


def test_progress_goes_to_a_terminal_only(read, write, capsys, monkeypatch):
    path = write("x.txt", "one\ntwo\n")
    read(path)
    assert capsys.readouterr() == ("", "")
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    assert len(read(path, split_sentences=True)) == 2
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("text", "documents"),
    [
        ("\n\na\nb\n\n \nc\n\nb\n\nd\n\n", [0, 0, 1, 2]),
        ("\n\na\nb\n\n", None),
        ("".join(f"sentence {n}\n" + "\n" * (n % 3 == 2) for n in range(30_000)), [n // 3 for n in range(30_000)]),
    ],
    ids=["blank lines", "none between texts", "many chunks"],
)
def test_blank_lines_separate_documents(text, documents, read, write):
    found = read(write("x.txt", text)).documents
    assert found is documents or found.tolist() == documents


def test_every_file_begins_a_document(read, write, tmp_path):
    for name, text in {"a": "a\n\nb", "b": "c\nd", "c": "e\nf"}.items():
        write(f"d/{name}.txt", text)
    assert read(tmp_path / "d").documents.tolist() == [0, 1, 2, 2, 3, 3]


@pytest.mark.parametrize("ids", [["x", "y", "x", "z"], [7, 8, 7, 9]])
def test_documents_of_a_column_are_numbered_by_first_appearance(ids, read, write):
    cells = "".join(f"{text},{d}\n" for text, d in zip("abce", ids))
    for path in (
        write("x.jsonl", jsonl_bytes([{"text": text, "d": d} for text, d in zip("abce", ids)])),
        write("x.parquet", parquet_bytes(text=list("abce"), d=ids)),
        write("x.csv", "text,d\n" + cells),
    ):
        assert read(path, document_column="d").documents.tolist() == [0, 1, 0, 2]
        assert read(path).documents is None
    with pytest.raises(CorpusError, match=r"y\.csv, line 3: no value in column 'd'"):
        read(write("y.csv", "text,d\na,1\nb,\n"), document_column="d")


@pytest.mark.parametrize(
    ("name", "text", "options", "documents", "summary"),
    [
        (
            "x.csv",
            'text\nOne. Two.\n""\n"Three.\n\nFour"\n',
            {},
            [0, 0, 1, 1],
            "4 sentences in 2 documents, by splitting",
        ),
        (
            "y.csv",
            "text,d\nOne. Two.,p\nSix. Ten.,p\n",
            {"document_column": "d"},
            [0] * 4,
            "4 sentences in 1 document,",
        ),
        ("x.txt", "One. Two.\nSix.\n\nTen.\n", {}, [0, 0, 0, 1], "4 sentences in 2 documents, by splitting 4 texts"),
        ("y.txt", "One. Two.\nSix.\n", {}, [0, 0, 1], "3 sentences in 2 documents, by splitting 2 texts"),
    ],
)
def test_rows_become_documents_where_nothing_says_it_better(name, text, options, documents, summary, read, write):
    corpus = read(write(name, text), split_sentences=True, **options)
    assert corpus.documents.tolist() == documents
    assert corpus.report.documents == len(set(documents))
    assert corpus.report.summary().startswith(summary)


def test_labels_follow_sentences_and_only_one_column_is_split(read, write):
    path = write("x.csv", "text,label\nOne. Two.,5\nThree.,6\n")
    assert read(path, split_sentences=True, label_column="label").labels.tolist() == [5, 5, 6]
    with pytest.raises(SettingsError, match="one text column"):
        read(path, text_columns=("text", "label"), split_sentences=True)


def test_rows_are_called_what_they_are(read, write):
    table = write("x.csv", "text,other\nOne. Two.,a\nThree. Four.,b\n")
    for source, options, summary in (
        (table, {}, "2 texts"),
        (table, {"text_columns": ("text", "other")}, "2 rows"),
        (write("x.txt", "One.\nTwo.\n"), {}, "2 sentences"),
        (["One."], {"min_rows": 1}, "1 text"),
        (write("x.jsonl", '{"text": "a"}\n{"text": null}\n{"text": "b"}\n'), {}, "2 texts (1 empty dropped)"),
    ):
        assert read(source, **options).report.summary() == summary


def test_labels_and_scores(read, write):
    path = write("x.csv", "text,i,f,s,mix\na,3,0.5,pos,1\nb,-1,2,neg,x\nc,2,1e3,pos,2.5\n")
    assert read(path, label_column="i").labels.tolist() == [3, -1, 2]
    assert read(path, label_column="f").scores.tolist() == [0.5, 2.0, 1000.0]
    corpus = read(path, label_column="s")
    assert (corpus.labels.tolist(), corpus.label_names) == ([1, 0, 1], ("neg", "pos"))
    assert read(path, label_column="mix").label_names == ("1", "2.5", "x")
    corpus = read(path, score_column="f", label_column="i")
    assert (corpus.scores.tolist(), corpus.labels.tolist()) == ([0.5, 2.0, 1000.0], [3, -1, 2])
    with pytest.raises(CorpusError, match="score column is given too"):
        read(path, score_column="f", label_column="f")
    assert read(write("y.csv", "text,i\na,1\n,2\na,3\nb,4\n"), label_column="i").labels.tolist() == [1, 4]
    with pytest.raises(CorpusError, match=r"x\.txt: plain text has no column 'label'"):
        read(write("x.txt", "a\nb\n"), label_column="label")


@pytest.mark.parametrize("value", ["high", "nan", "inf", ""])
def test_bad_scores(value, read, write):
    with pytest.raises(CorpusError, match=r"x\.csv, line 3: .*column 's'.* a finite number"):
        read(write("x.csv", f"text,s\na,1\nb,{value}\n"), score_column="s")


def test_pairs_are_distinct_as_pairs(read, write):
    path = write("x.csv", "a,b\none,1\none,2\none,1\ntwo,\n")
    corpus = read(path, text_columns=["a", "b"])
    assert (corpus.texts(), corpus.texts(column="b")) == (["one", "one"], ["1", "2"])
    assert corpus.texts(np.array([1]), column="b") == ["2"]
    assert (corpus.report.duplicates, corpus.report.empty) == (1, 1)
    with pytest.raises(KeyError, match="no text column 'c'"):
        corpus.texts(column="c")
    for names in (("a", "a"), ("a", "b", "c", "d")):
        with pytest.raises(SettingsError, match="one to three"):
            read(path, text_columns=names)


def test_rows_in_any_order_and_batches_of_any_size(read, write):
    texts = [f"sentence {n}" for n in range(30_000)]
    corpus = read(write("x.txt", "\n".join(texts)))
    rows = np.random.default_rng(0).integers(0, 30_000, 1000)
    assert corpus.texts(rows) == [texts[row] for row in rows]
    assert corpus.texts([]) == []
    mask = np.arange(30_000) % 15_000 == 7
    assert corpus.texts(mask) == [texts[7], texts[15_007]]
    for wrong in ([0, -1], [0, 30_000], [True, False], [2.7], 2, ["a"]):
        with pytest.raises(IndexError, match="rows"):
            corpus.texts(wrong)
    for size in (1000, 50_000):
        batches = list(corpus.batches(size=size))
        assert [text for batch in batches for text in batch] == texts
        assert {len(batch) for batch in batches[:-1]} <= {size}


def test_the_fingerprint_depends_on_content_only(read, write):
    reference = read(write("x.txt", "\n".join(SENTENCES))).fingerprint
    assert read(write("elsewhere/y.txt", "\n\n" + "\n".join(SENTENCES * 2))).fingerprint == reference
    assert read(list(SENTENCES)).fingerprint == reference
    for suffix in (".csv", ".jsonl", ".parquet"):
        assert read(write(f"x{suffix}", encoded(suffix, SENTENCES))).fingerprint == reference
    assert read(write("z.txt", "\n".join(SENTENCES[::-1]))).fingerprint != reference
    text = read(write("x.txt", "a\nb\n\nc\n"))
    table = read(write("x.csv", "text,d\na,p\nb,p\nc,q\n"), document_column="d")
    assert text.fingerprint == table.fingerprint != read(["a", "b", "c"]).fingerprint
    assert read(["ab", "c"]).fingerprint != read(["a", "bc"]).fingerprint
    tables = [write(f"{n}.csv", f"text,l\na,{a}\nb,{n}\n") for a, n in ((1, 1), (1, 2), ("x", "y"), ("x", "z"))]
    assert len({read(path, label_column="l").fingerprint for path in tables}) == 4


class TestCache:
    def test_a_second_call_reads_nothing(self, read, write, monkeypatch):
        path = write("x.txt", "a\n\nb\n")
        first = read(path)
        monkeypatch.setattr("selfsent.data.corpus.read.build_table", lambda *arguments: pytest.fail("read again"))
        for second in (read(str(path)), Corpus(first.directory)):
            assert second.directory == first.directory
            assert (second.report, second.fingerprint, second.source) == (first.report, first.fingerprint, first.source)
            assert second.texts() == ["a", "b"]

    def test_a_changed_file_or_option_is_read_again(self, read, write):
        path = write("x.txt", "a. B\nb\n")
        assert len(read(path)) == 2
        assert len(read(path, split_sentences=True)) == 3
        write("x.txt", "a\nb\nc\nd\n")
        assert len(read(path)) == 4

    def test_the_folder_may_come_from_the_environment(self, write, tmp_path, monkeypatch):
        monkeypatch.setenv("SELFSENT_CACHE", str(tmp_path / "env"))
        assert read_corpus(write("x.txt", "a\nb\n")).directory.is_relative_to(tmp_path / "env" / "corpora")

    @pytest.mark.parametrize("name", ["table.arrow", "document.npy", "corpus.json", "piece.npy"])
    def test_a_changed_byte_is_found(self, read, write, name):
        path = write("x.txt", "one text\nanother\n\na third\n")
        corpus = read(path, metadata_columns=())
        whole = {file.name: file.read_bytes() for file in corpus.directory.iterdir()}
        for place in (0.1, 0.5, 0.9):
            data = bytearray(whole[name])
            data[int(place * len(data))] ^= 2
            (corpus.directory / name).write_bytes(bytes(data))
            with pytest.warns(Damaged, match="is damaged, and is made again"):
                again = read(path, metadata_columns=())
            assert again.texts() == ["one text", "another", "a third"]
            assert {file.name: file.read_bytes() for file in again.directory.iterdir()} == whole

    def test_an_entry_of_another_version_is_opened(self, read, write):
        path = write("x.txt", "a\nb\n")
        about = read(path).directory / "corpus.json"
        old = {name: value for name, value in json.loads(about.read_text()).items() if name not in ("sums", "checksum")}
        old["report"]["near_duplicates"] = 0
        about.write_text(json.dumps(old))
        assert read(path).texts() == ["a", "b"]
        assert json.loads(about.read_text()) == old

    def test_nothing_half_written_stays(self, read, write, tmp_path):
        folder = tmp_path / "cache" / "corpora"
        with pytest.raises(CorpusError):
            read(write("x.txt", b"fine\n" * 100_000 + b"\xff\n"))
        assert list(folder.iterdir()) == []
        old, young = (folder / f".{name}.json.selfsent-0123abcd" for name in ("old", "young"))
        for path in (old, young):
            path.touch()
        os.utime(old, (0, 0))
        read(write("x.txt", "a\nb\n"))
        assert (young.exists(), old.exists()) == (True, False)

    def test_a_folder_that_cannot_be_written(self, write):
        path = write("x.txt", "a\nb\n")
        said = r"cannot write the corpus cache: Not a directory; set SELFSENT_CACHE [^\n]*$"
        with pytest.raises(CorpusError, match=said):
            read_corpus(path, cache=path)

    def test_racing_readers_agree(self, read, write):
        path = write("x.txt", "\n".join(f"sentence {n}" for n in range(5000)))
        found = []
        threads = [threading.Thread(target=lambda: found.append(read(path).texts()[-1])) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert found == ["sentence 4999"] * 4
