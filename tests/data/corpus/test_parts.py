import pytest

from selfsent.data.corpus import read_corpus
from selfsent.errors import CorpusError, SettingsError


@pytest.fixture
def files(tmp_path):
    """Two files of pairs whose second columns have different names, and one of pairs that are for tests."""
    written = {
        "de.csv": "en,de\nThe dog sleeps.,Der Hund schläft.\nIt rains.,Es regnet.\nI sing.,Ich singe.\n",
        "tr.csv": "en,tr\nThe dog sleeps.,Köpek uyuyor.\nIt snows.,Kar yağıyor.\n",
        "tests.csv": "en,de\nit RAINS,Es schneit.\nWe run.,Wir laufen.\n",
    }
    for name, text in written.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


def pairs(files, *names):
    """Parts of a corpus, English and another language each."""
    return [{"source": str(files / f"{name}.csv"), "text_columns": ["en", name]} for name in names]


def test_pairs_of_several_languages_stand_one_behind_the_other(files):
    corpus = read_corpus(pairs(files, "de", "tr"), cache=files)
    assert corpus.text_columns == ("first", "second")
    assert corpus.texts(column="first")[3:] == ["The dog sleeps.", "It snows."]
    assert corpus.texts(column="second") == [
        *("Der Hund schläft.", "Es regnet.", "Ich singe."),
        *("Köpek uyuyor.", "Kar yağıyor."),
    ]
    assert corpus.report.files == 2
    stacked = read_corpus(pairs(files, "de", "tr"), stack=True, cache=files)
    assert stacked.text_columns == ("text",)
    assert len(stacked) == 9  # the dog sleeps in English once


def test_parts_with_the_same_columns_keep_their_names(files):
    corpus = read_corpus(
        [*pairs(files, "de"), {"source": str(files / "tests.csv"), "text_columns": ("en", "de")}], cache=files
    )
    assert corpus.text_columns == ("en", "de")
    assert len(corpus) == 5


def test_common_options_hold_where_a_part_says_nothing_else(files):
    parts = [{"source": str(files / "de.csv")}, {"source": str(files / "tr.csv"), "text_column": "tr"}]
    assert read_corpus(parts, text_column="de", cache=files).texts()[2:4] == ["Ich singe.", "Köpek uyuyor."]


def test_the_cache_tells_other_columns_and_other_exclusions_apart(files):
    first = read_corpus(pairs(files, "de", "tr"), cache=files)
    assert read_corpus(pairs(files, "de", "tr"), cache=files).directory == first.directory
    assert read_corpus(pairs(files, "tr", "de"), cache=files).directory != first.directory
    tests = [{"source": str(files / "tests.csv"), "text_columns": ["en", "de"]}]
    assert read_corpus(pairs(files, "de", "tr"), exclude=tests, cache=files).directory != first.directory


def test_rows_with_a_text_of_a_test_set_are_left_out_and_counted(files):
    options = {"text_columns": ("en", "de"), "cache": files}
    corpus = read_corpus(str(files / "de.csv"), exclude=str(files / "tests.csv"), **options)
    assert corpus.texts() == ["The dog sleeps.", "I sing."]
    assert corpus.report.excluded == 1
    assert "1 to be left out" in corpus.report.summary()
    other = [{"source": str(files / "tr.csv"), "text_columns": ["tr"]}, str(files / "tests.csv")]
    assert read_corpus(str(files / "de.csv"), exclude=other, **options).report.excluded == 1
    assert read_corpus(str(files / "de.csv"), **options).report.excluded == 0


@pytest.mark.parametrize(
    ("part", "error", "message"),
    [
        (
            {"source": "tr.csv", "text_columns": ["en"]},
            SettingsError,
            "has 1 text column, the first one 2 text columns",
        ),
        ({"source": "tr.csv", "text_columns": ["en", "de"]}, CorpusError, "tr.csv: no column 'de'"),
        ({"source": "tr.csv", "columns": ["en", "tr"]}, SettingsError, "part 2 of the corpus has no 'columns'"),
        ({"text_columns": ["en", "tr"]}, SettingsError, "part 2 of the corpus needs a source"),
        ({"source": "nl.csv"}, CorpusError, "nl.csv: no such file"),
    ],
)
def test_parts_that_do_not_fit_are_refused(files, part, error, message):
    if "source" in part:
        part = {**part, "source": str(files / part["source"])}
    with pytest.raises(error, match=message):
        read_corpus([*pairs(files, "de"), part], cache=files)


def test_the_texts_of_several_columns_become_one(read, write):
    table = write("t.csv", "subject,body,id\nOne two,It is so. And so.,a\n,only body,b\nonly subject,,c\n,,d\n")
    corpus = read(table, text_column=["subject", "body"], carry=("id",))
    assert corpus.text_columns == ("text",)
    assert corpus.texts() == ["One two It is so. And so.", "only body", "only subject"]
    assert len(corpus.input_rows) == 4
    split = read(table, text_column=("subject", "body"), split_sentences=True)
    assert split.texts()[:3] == ["One two", "It is so.", "And so."]
    part = {"source": table, "text_column": ["subject", "body"]}
    assert read([part, {"source": table, "text_column": "subject"}]).texts()[-1] == "One two"
    without = write("w.csv", "subject,body\nONLY,body\n")
    assert "only body" not in read(table, text_column=["subject", "body"], exclude=without).texts()
    with pytest.raises(CorpusError, match="to join columns, give --text-column once for each"):
        read(table, text_column="subject,body")
    with pytest.raises(SettingsError, match="joined, and stack makes rows of them"):
        read(table, text_column=["subject", "body"], stack=True)
    with pytest.raises(CorpusError, match="plain text has no column"):
        read(write("t.txt", "ba de\nko mi\n"), text_column=["subject", "body"])


def test_columns_that_come_to_stand_in_one_document_are_known(read, write):
    table = write("q.csv", "question,answer,thread\nWhy so?,It is so. And so.,a\nWhy not?,It is not.,b\n")
    part = {"source": table, "document_column": "thread"}
    both = ["question", "answer"]
    for together in (
        {"source": table, "text_column": both},
        {"source": table, "text_column": both, "split_sentences": True},
        {"source": [{**part, "text_column": "question"}, {**part, "text_column": "answer"}]},
        {"source": [{"source": table, "text_column": both}, {"source": table, "text_column": "answer"}]},
        {**part, "text_columns": both, "stack": True},
    ):
        for _ in ("read", "from the cache"):
            assert list(read(**together).report.together) == both, together
    for apart in (
        {"source": table, "text_column": "answer", "split_sentences": True},
        {**part, "text_column": "answer"},
        {"source": [{**part, "text_column": "answer"}, {**part, "text_column": "answer"}]},
        {"source": table, "text_columns": both},
        {"source": table, "text_columns": both, "stack": True},
        {"source": [{"source": table, "text_column": "question"}, {"source": table, "text_column": "answer"}]},
    ):
        assert not read(**apart).report.together, apart
