"""Sources with columns of their own, and the choice of rows and texts."""

import pytest

from selfsent.errors import CorpusError, SettingsError

PAIRS = {"text_columns": ("first", "second")}


@pytest.fixture
def files(write, tmp_path):
    """Files of pairs whose second columns differ, one of pairs to exclude, and one with columns of other kinds."""
    write("de.csv", "en,de\nThe dog sleeps.,Der Hund schläft.\nIt rains.,Es regnet.\nI sing.,Ich singe.\n")
    write("tr.csv", "en,tr\nThe dog sleeps.,Köpek uyuyor.\nIt snows.,Kar yağıyor.\n")
    write("tests.csv", "en,de\nit RAINS,Es schneit.\nWe run.,Wir laufen.\n")
    rows = ("a cat,a dog,yes,animals,1", "a car,a bus,no,traffic,2", "a cow,a sow,no,animals,many")
    write("rows.csv", "\n".join(["first,second,label,topic,score", *rows, "a van,a tram,maybe,traffic,4", ""]))
    return tmp_path


def pairs(files, *names):
    """Sources of pairs, English and another language each."""
    return [{"source": str(files / f"{name}.csv"), "text_columns": ["en", name]} for name in names]


def test_sources_are_concatenated(read, files):
    corpus = read(pairs(files, "de", "tr"))
    assert (corpus.text_columns, corpus.report.files) == (("first", "second"), 2)
    assert corpus.texts(column="first")[3:] == ["The dog sleeps.", "It snows."]
    assert corpus.texts(column="second")[2:4] == ["Ich singe.", "Köpek uyuyor."]
    stacked = read(pairs(files, "de", "tr"), stack=True)
    assert (stacked.text_columns, len(stacked)) == (("text",), 9)  # the dog sleeps in English once
    same = read([*pairs(files, "de"), {"source": str(files / "tests.csv"), "text_columns": ("en", "de")}])
    assert (same.text_columns, len(same)) == (("en", "de"), 5)
    shared = [{"source": str(files / "de.csv")}, {"source": str(files / "tr.csv"), "text_column": "tr"}]
    assert read(shared, text_column="de").texts()[2:4] == ["Ich singe.", "Köpek uyuyor."]


def test_the_cache_tells_columns_and_exclusions_apart(read, files):
    first = read(pairs(files, "de", "tr"))
    assert read(pairs(files, "de", "tr")).directory == first.directory
    assert read(pairs(files, "tr", "de")).directory != first.directory
    tests = [{"source": str(files / "tests.csv"), "text_columns": ["en", "de"]}]
    assert read(pairs(files, "de", "tr"), exclude=tests).directory != first.directory


def test_rows_with_a_text_of_a_test_set_are_excluded_and_counted(read, files):
    def excluding(source=None):
        return read(str(files / "de.csv"), text_columns=("en", "de"), exclude=source)

    corpus = excluding(str(files / "tests.csv"))
    assert corpus.texts() == ["The dog sleeps.", "I sing."]
    assert "(1 to be left out dropped)" in corpus.report.summary()
    other = [{"source": str(files / "tr.csv"), "text_columns": ["tr"]}, str(files / "tests.csv")]
    assert (excluding(other).report.excluded, excluding().report.excluded) == (1, 0)


@pytest.mark.parametrize(
    ("part", "error", "message"),
    [
        ({"source": "tr", "text_columns": ["en"]}, SettingsError, "has 1 text column, the first one 2 text columns"),
        ({"source": "tr", "text_columns": ["en", "de"]}, CorpusError, "tr.csv: no column 'de'"),
        ({"source": "tr", "columns": ["en", "tr"]}, SettingsError, "part 2 of the corpus has no 'columns'"),
        ({"text_columns": ["en", "tr"]}, SettingsError, "part 2 of the corpus needs a source"),
        ({"source": "nl"}, CorpusError, "nl.csv: no such file"),
    ],
)
def test_sources_that_do_not_fit_are_refused(read, files, part, error, message):
    part |= {"source": str(files / f"{part['source']}.csv")} if "source" in part else {}
    with pytest.raises(error, match=message):
        read([*pairs(files, "de"), part])


def test_the_texts_of_several_columns_become_one(read, write):
    table = write("t.csv", "subject,body,id\nOne two,It is so. And so.,a\n,only body,b\nonly subject,,c\n,,d\n")
    both = ["subject", "body"]
    corpus = read(table, text_column=both, metadata_columns=("id",))
    assert (corpus.text_columns, len(corpus.input_rows)) == (("text",), 4)
    assert corpus.texts() == ["One two It is so. And so.", "only body", "only subject"]
    assert read(table, text_column=both, split_sentences=True).texts()[:3] == ["One two", "It is so.", "And so."]
    parts = [{"source": table, "text_column": both}, {"source": table, "text_column": "subject"}]
    assert read(parts).texts()[-1] == "One two"
    excluded = write("w.csv", "subject,body\nONLY,body\n")
    assert "only body" not in read(table, text_column=both, exclude=excluded).texts()
    for source, options, error, said in (
        (table, {"text_column": "subject,body"}, CorpusError, "to join columns, give each as a text_column"),
        (table, {"text_column": both, "stack": True}, SettingsError, "joined, and stack makes rows of them"),
        (write("t.txt", "ba de\nko mi\n"), {"text_column": both}, CorpusError, "plain text has no column"),
    ):
        with pytest.raises(error, match=said):
            read(source, **options)


def test_columns_that_come_to_stand_in_one_document_are_known(read, write):
    table = write("q.csv", "question,answer,thread\nWhy so?,It is so. And so.,a\nWhy not?,It is not.,b\n")
    part, both = {"source": table, "document_column": "thread"}, ["question", "answer"]
    question, answer = ({"source": table, "text_column": name} for name in both)
    for together in (
        {"source": table, "text_column": both},
        {"source": table, "text_column": both, "split_sentences": True},
        {"source": [{**part, **question}, {**part, **answer}]},
        {"source": [{"source": table, "text_column": both}, answer]},
        {**part, "text_columns": both, "stack": True},
    ):
        for _ in ("read", "from the cache"):
            assert list(read(**together).report.together) == both, together
    for apart in (
        {**answer, "split_sentences": True},
        {**part, **answer},
        {"source": table, "text_columns": both},
        {"source": table, "text_columns": both, "stack": True},
        {"source": [question, answer]},
    ):
        assert not read(**apart).report.together, apart


def test_rows_are_chosen_by_their_values(read, files):
    corpus = read(
        files / "rows.csv", **PAIRS, label_column="label", where={"topic": "traffic", "label": ["no", "maybe"]}
    )
    assert corpus.texts(column="second") == ["a bus", "a tram"]
    assert corpus.label_names == ("maybe", "no")
    one = {"text_column": "first", "score_column": "score"}
    assert read(files / "rows.csv", **one, where={"topic": "traffic"}).scores.tolist() == [2.0, 4.0]
    for where, said in (
        ({"label": "no"}, "line 4"),  # of the file
        ({"topic": "trafic"}, "no text in it, where topic is trafic"),
        ({"tpic": "traffic"}, "no column 'tpic'"),
    ):
        with pytest.raises(CorpusError, match=said):
            read(files / "rows.csv", **one, where=where)


def test_texts_of_pairs_become_rows(read, files):
    corpus = read(files / "rows.csv", **PAIRS, document_column="topic", stack=True)
    assert corpus.text_columns == ("text",)
    assert corpus.texts() == ["a cat", "a dog", "a car", "a bus", "a cow", "a sow", "a van", "a tram"]
    assert corpus.documents.tolist() == [0, 0, 1, 1, 0, 0, 1, 1]
    assert read(files / "rows.csv", **PAIRS).text_columns == PAIRS["text_columns"]
