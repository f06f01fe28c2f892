from selfsent.data.corpus import read_corpus
from selfsent.data.corpus.stdlib import prose, read_stdlib, stdlib_files

DOCSTRING = """Summarise the report. It must be open.

    Longer text over
    two lines (see Fig. 2 for more). And a tail

    >>> summarise(report)
    'short'

        for word in all words
            print every word here

    summarise(report, width=3) -> str

    ----------- -----------
    left        right

    Two words.
    """


GOOD = """'The module says something.'
raise SystemExit
class A:
    'The class says something.'
    async def f():
        'Its method says something. Twice in fact.'
"""


def test_prose_keeps_sentences_and_drops_code():
    assert prose(DOCSTRING) == [
        "Summarise the report.",
        "It must be open.",
        "Longer text over two lines (see Fig. 2 for more).",
        "And a tail",
    ]


def test_every_docstring_is_a_document_and_nothing_runs(tmp_path):
    good, bad = tmp_path / "good.py", tmp_path / "bad.py"
    good.write_text(GOOD)
    bad.write_text("def broken(:\n")
    first, second = read_stdlib([good, bad])
    assert first.texts == [
        ["The module says something.", "The class says something.", "Its method says something.", "Twice in fact."]
    ]
    assert len(set(first.documents)) == 3
    assert (len(second), second.files) == (0, 1)


def test_some_of_the_standard_library_reads_like_text(tmp_path, monkeypatch):
    some = stdlib_files()[:80]
    monkeypatch.setattr("selfsent.data.corpus.sources.stdlib_files", lambda: some)
    stdlib = read_corpus("python:stdlib", cache=tmp_path)
    texts = stdlib.texts()
    assert len(texts) > stdlib.report.documents == stdlib.documents.max() + 1 > 200
    assert stdlib.source == "python:stdlib"
    assert not any(">>>" in text or "\n" in text for text in texts)
    assert sum(text[0].isupper() for text in texts) > 0.8 * len(texts)
    assert sum(len(text.split()) >= 3 for text in texts) > 0.99 * len(texts)
