import json
import os
import threading

import numpy as np
import pytest
from corpus_files import SENTENCES, encoded, jsonl_bytes, parquet_bytes

from selfsent.data.corpus import Corpus, read_corpus
from selfsent.errors import CorpusError, Damaged, SettingsError


def test_what_is_dropped_is_counted(read, write):
    corpus = read(write("x.txt", b"one\n\n  one \ntwo\x07\n\x02\x01\nthree\n" + b"x" * (1 << 20) + b"yz\n"))
    assert corpus.texts()[:3] == ["one", "two", "three"]
    report = corpus.report
    assert (report.files, report.rows_read, report.kept, len(corpus)) == (1, 7, 4, 4)
    assert (report.empty, report.duplicates, report.control_characters, report.too_long) == (1, 1, 2, 1)
    assert report.summary().splitlines()[0] == "4 sentences in 2 documents (1 empty, 1 duplicate dropped)"


def test_progress_goes_to_a_terminal_only(read, write, capsys, monkeypatch):
    path = write("x.txt", "one\ntwo\n")
    read(path)
    assert capsys.readouterr() == ("", "")
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    assert len(read(path, split_sentences=True)) == 2
    assert capsys.readouterr().out == ""


def test_nul_far_into_a_file_is_a_control_character(read, write):
    assert read(write("x.txt", "fill\n" * 3000 + "a\0b\n")).texts() == ["fill", "ab"]


class TestDocuments:
    @pytest.mark.parametrize(
        ("text", "documents"),
        [
            ("\n\na\nb\n\n \nc\n\nb\n\nd\n\n", [0, 0, 1, 2]),
            ("\n\na\nb\n\n", None),
            ("".join(f"sentence {n}\n" + "\n" * (n % 3 == 2) for n in range(30_000)), [n // 3 for n in range(30_000)]),
        ],
        ids=["blank lines", "none between texts", "many chunks"],
    )
    def test_blank_lines_separate(self, text, documents, read, write):
        found = read(write("x.txt", text)).documents
        assert found is documents or found.tolist() == documents

    def test_every_file_begins_one(self, read, write, tmp_path):
        for name, text in {"a": "a\n\nb", "b": "c\nd", "c": "e\nf"}.items():
            write(f"d/{name}.txt", text)
        assert read(tmp_path / "d").documents.tolist() == [0, 1, 2, 2, 3, 3]

    @pytest.mark.parametrize("ids", [["x", "y", "x", "z"], [7, 8, 7, 9]])
    def test_column_values_are_numbered_by_first_appearance(self, ids, read, write):
        rows = [{"text": text, "d": d} for text, d in zip("abce", ids)]
        cells = "".join(f"{text},{d}\n" for text, d in zip("abce", ids))
        for path in (
            write("x.jsonl", jsonl_bytes(rows)),
            write("x.parquet", parquet_bytes(text=list("abce"), d=ids)),
            write("x.csv", "text,d\n" + cells),
        ):
            assert read(path, document_column="d").documents.tolist() == [0, 1, 0, 2]
            assert read(path).documents is None

    def test_a_missing_value_is_an_error(self, read, write):
        with pytest.raises(CorpusError, match=r"x\.csv, line 3: no value in column 'd'"):
            read(write("x.csv", "text,d\na,1\nb,\n"), document_column="d")


class TestSplitting:
    @pytest.mark.parametrize(
        ("name", "text", "options", "documents"),
        [
            ("x.csv", 'text\nOne here. Two there.\n""\n"Three.\n\nFour"\n', {}, [0, 0, 1, 1]),
            ("y.csv", "text,d\nOne. Two.,p\nThree. Four.,p\n", {"document_column": "d"}, [0, 0, 0, 0]),
            ("x.txt", "One. Two.\nThree.\n\nFour.\n", {}, [0, 0, 0, 1]),
            ("y.txt", "One. Two.\nThree.\n", {}, [0, 0, 1]),
        ],
    )
    def test_rows_become_documents_where_nothing_says_it_better(self, name, text, options, documents, read, write):
        corpus = read(write(name, text), split_sentences=True, **options)
        assert corpus.texts()[:1] == ["One here." if name == "x.csv" else "One."]
        assert corpus.documents.tolist() == documents
        assert corpus.report.documents == len(set(documents))

    def test_labels_follow_and_one_column_only(self, read, write):
        path = write("x.csv", "text,label\nOne. Two.,5\nThree.,6\n")
        assert read(path, split_sentences=True, label_column="label").labels.tolist() == [5, 5, 6]
        with pytest.raises(SettingsError, match="one text column"):
            read(path, text_columns=("text", "label"), split_sentences=True)


class TestLabelsAndScores:
    def test_kinds(self, read, write):
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
        dropped = write("y.csv", "text,i\na,1\n,2\na,3\nb,4\n")
        assert read(dropped, label_column="i").labels.tolist() == [1, 4]

    @pytest.mark.parametrize("value", ["high", "nan", "inf", ""])
    def test_bad_scores(self, value, read, write):
        with pytest.raises(CorpusError, match=r"x\.csv, line 3: .*column 's'.* a finite number"):
            read(write("x.csv", f"text,s\na,1\nb,{value}\n"), score_column="s")

    def test_plain_text_has_none(self, read, write):
        with pytest.raises(CorpusError, match=r"x\.txt: plain text has no column 'label'"):
            read(write("x.txt", "a\nb\n"), label_column="label")


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
    assert corpus.texts(np.array([], dtype=int)) == []
    for bad in (-1, 30_000):
        with pytest.raises(IndexError, match="between 0 and 29999"):
            corpus.texts(np.array([0, bad]))
    for size in (1000, 8192, 50_000):
        batches = list(corpus.batches(size=size))
        assert [text for batch in batches for text in batch] == texts
        assert {len(batch) for batch in batches[:-1]} <= {size}


class TestFingerprint:
    def test_depends_on_content_only(self, read, write):
        reference = read(write("x.txt", "\n".join(SENTENCES))).fingerprint
        assert read(write("elsewhere/y.txt", "\n\n" + "\n".join(SENTENCES * 2))).fingerprint == reference
        for suffix in (".csv", ".jsonl", ".parquet"):
            assert read(write(f"x{suffix}", encoded(suffix, SENTENCES))).fingerprint == reference
        assert read(list(SENTENCES)).fingerprint == reference
        assert read(write("z.txt", "\n".join(SENTENCES[::-1]))).fingerprint != reference

    def test_documents_count_however_they_are_named(self, read, write):
        text = read(write("x.txt", "a\nb\n\nc\n"))
        table = read(write("x.csv", "text,d\na,p\nb,p\nc,q\n"), document_column="d")
        assert text.fingerprint == table.fingerprint != read(["a", "b", "c"]).fingerprint

    def test_borders_of_texts_and_labels_count(self, read, write):
        assert read(["ab", "c"]).fingerprint != read(["a", "bc"]).fingerprint
        labelled = [read(write(f"{n}.csv", f"text,l\na,1\nb,{n}\n"), label_column="l").fingerprint for n in (1, 2)]
        named = [read(write(f"{n}.csv", f"text,l\na,x\nb,{n}\n"), label_column="l").fingerprint for n in "yz"]
        assert len({*labelled, *named}) == 4

    def test_does_not_depend_on_batches(self, read, write, monkeypatch):
        path = write("x.jsonl", jsonl_bytes([{"text": f"sentence {n}"} for n in range(100)]))
        reference = read(path).fingerprint
        monkeypatch.setattr("selfsent.data.corpus.formats.BATCH_ROWS", 7)
        os.utime(path, (1, 1))
        assert read(path).fingerprint == reference


class TestCache:
    def test_a_second_call_reads_nothing(self, read, write, monkeypatch):
        path = write("x.txt", "a\n\nb\n")
        first = read(path)
        monkeypatch.setattr("selfsent.data.corpus.read.build_table", lambda *arguments: pytest.fail("read again"))
        second = read(str(path))
        assert second.directory == first.directory
        assert (second.report, second.fingerprint, second.source) == (first.report, first.fingerprint, first.source)

    def test_a_changed_file_or_option_is_read_again(self, read, write):
        path = write("x.txt", "a. B\nb\n")
        assert len(read(path)) == 2
        assert len(read(path, split_sentences=True)) == 3
        write("x.txt", "a\nb\nc\nd\n")
        assert len(read(path)) == 4

    def test_the_folder_may_come_from_the_environment(self, write, tmp_path, monkeypatch):
        monkeypatch.setenv("SELFSENT_CACHE", str(tmp_path / "env"))
        assert read_corpus(write("x.txt", "a\nb\n")).directory.is_relative_to(tmp_path / "env" / "corpora")

    def test_a_damaged_entry_is_built_again(self, read, write):
        path = write("x.txt", "a\nb\n")
        (read(path).directory / "corpus.json").write_text("{")
        assert read(path).texts() == ["a", "b"]

    @pytest.mark.parametrize("name", ["table.arrow", "document.npy", "corpus.json", "piece.npy"])
    def test_a_changed_byte_is_found(self, read, write, name):
        path = write("x.txt", "one text\nanother\n\na third\n")
        corpus = read(path, carry=())
        whole = {file.name: file.read_bytes() for file in corpus.directory.iterdir()}
        for place in (0.1, 0.5, 0.9):
            data = bytearray(whole[name])
            data[int(place * len(data))] ^= 2
            (corpus.directory / name).write_bytes(bytes(data))
            with pytest.warns(Damaged, match="is damaged, and is made again"):
                again = read(path, carry=())
            assert again.texts() == ["one text", "another", "a third"]
            assert {file.name: file.read_bytes() for file in again.directory.iterdir()} == whole

    def test_an_entry_of_an_older_version_without_checksums_is_opened(self, read, write):
        path = write("x.txt", "a\nb\n")
        about = read(path).directory / "corpus.json"
        old = {name: value for name, value in json.loads(about.read_text()).items() if name not in ("sums", "checksum")}
        about.write_text(json.dumps(old))
        assert read(path).texts() == ["a", "b"]
        assert json.loads(about.read_text()) == old

    def test_nothing_half_written_stays(self, read, write, tmp_path):
        with pytest.raises(CorpusError):
            read(write("x.txt", b"fine\n" * 100_000 + b"\xff\n"))
        assert list((tmp_path / "cache" / "corpora").iterdir()) == []

    def test_what_kills_left_goes_after_a_day(self, read, write, tmp_path):
        folder = tmp_path / "cache" / "corpora"
        folder.mkdir(parents=True)
        old, young = (folder / f".{name}.json.selfsent-0123abcd" for name in ("old", "young"))
        for path in (old, young):
            path.touch()
        os.utime(old, (0, 0))
        read(write("x.txt", "a\nb\n"))
        assert young.exists()
        assert not old.exists()

    def test_a_folder_that_cannot_be_written(self, write):
        path = write("x.txt", "a\nb\n")
        with pytest.raises(
            CorpusError, match="cannot write the corpus cache: Not a directory; set SELFSENT_CACHE"
        ) as caught:
            read_corpus(path, cache=path)
        assert "\n" not in str(caught.value)

    def test_racing_readers_agree(self, read, write):
        path = write("x.txt", "\n".join(f"sentence {n}" for n in range(5000)))
        found = []
        threads = [threading.Thread(target=lambda: found.append(read(path).texts()[-1])) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert found == ["sentence 4999"] * 4


def test_a_corpus_opens_from_its_folder(read, write):
    again = Corpus(read(write("x.txt", "a\n\nb\n")).directory)
    assert again.texts() == ["a", "b"]
    assert repr(again).endswith("x.txt': 2 sentences in 2 documents)")
    assert isinstance(again.documents, np.memmap)


def test_borders_of_documents_are_nothing_lost_and_a_missing_field_is_empty(read, write):
    corpus = read(write("x.txt", "One here. Two here.\n\n \nThree here.\n\n"), split_sentences=True)
    assert corpus.report.empty == 0
    assert corpus.report.summary() == "3 sentences in 2 documents, by splitting 5 texts"
    lines = '{"text": "one", "id": 1}\n{"id": 2}\n{"text": null}\n{"text": "two"}\n'
    assert read(write("x.jsonl", lines)).report.summary() == "2 texts (2 empty dropped)"


def test_rows_are_called_by_what_they_hold(read, write):
    table = write("x.csv", "text,other\nOne. Two.,a\nThree. Four.,b\n")
    assert read(table).report.summary() == "2 texts"
    assert read(table, split_sentences=True).report.summary() == "4 sentences in 2 documents, by splitting 2 texts"
    assert read(table, text_columns=("text", "other")).report.summary() == "2 rows"
    assert read(write("x.txt", "One.\nTwo.\n")).report.summary() == "2 sentences"
    assert read(["One. Two.", "Three."]).report.summary() == "2 texts"
    assert read(["One."], min_rows=1).report.summary() == "1 text"
