import sys

import pytest

from selfsent.data.corpus import read_corpus
from selfsent.data.corpus.batch import Columns
from selfsent.data.corpus.stdlib import prose, read_stdlib

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
    assert (second.skipped_files, len(second), second.files) == (1, 0, 1)
    assert Columns().texts == ("text",)


@pytest.fixture(scope="module")
def stdlib(tmp_path_factory):
    return read_corpus("python:stdlib", cache=tmp_path_factory.mktemp("cache"))


def test_counts_of_the_standard_library(stdlib):
    assert 10_000 < len(stdlib) < 25_000
    assert 4_000 < stdlib.report.documents < 10_000
    assert stdlib.documents.max() + 1 == stdlib.report.documents
    assert stdlib.report.skipped_files < 5
    assert stdlib.source == "python:stdlib"


@pytest.mark.skipif(sys.version_info[:2] != (3, 11), reason="the counts are those of Python 3.11")
def test_counts_of_python_3_11(stdlib):
    assert abs(len(stdlib) - 16_000) < 800
    assert abs(stdlib.report.documents - 7_600) < 400


def test_it_reads_like_text(stdlib):
    texts = stdlib.texts()
    assert not any(">>>" in text or "\n" in text for text in texts)
    assert sum(text[0].isupper() for text in texts) > 0.8 * len(texts)
    assert sum(len(text.split()) >= 3 for text in texts) > 0.99 * len(texts)
