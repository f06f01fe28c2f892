"""Search in passages: a document counts by its best one."""

import numpy as np
import pytest

from selfsent.data.corpus.passages import split_passages
from selfsent.data.vector_files import inner, unit
from selfsent.errors import DataError, SettingsError
from selfsent.scorers.load_scorer import check_model, load_scorer
from selfsent.scorers.passages import InPassages
from stand_ins import HashedWords

DOCUMENTS = [
    "A short text on printers. " * 4,
    " ".join(f"This is sentence {number} on the weather of a day." for number in range(30)) + " The printer is dead.",
    "",
]


def test_the_score_of_a_document_is_that_of_its_best_passage():
    scorer = load_scorer(HashedWords(), name="words")
    queries = ["printer is dead", "weather"]
    asked, held = InPassages(scorer, 20).query_document_vectors(queries, DOCUMENTS, search=True)
    expected = [
        [max(float(vector @ other) for other in unit(scorer(split_passages(text, 20) or [text]))) for text in DOCUMENTS]
        for vector in unit(scorer(queries))
    ]
    np.testing.assert_allclose(inner(asked, held), expected, atol=1e-6)
    np.testing.assert_allclose(inner(asked[1:2], held), expected[1:], atol=1e-6)
    assert inner(asked, held)[0].argmax() == 1


@pytest.mark.parametrize("name", ["bundled+passages:20", "bundled+words+passages:20", "bm25+passages:20"])
def test_names(name):
    found = load_scorer(name)
    assert isinstance(found, InPassages)
    asked, held = found.query_document_vectors(["printer is dead"], DOCUMENTS, search=True)
    assert inner(asked, held)[0].argmax() == 1
    check_model(name)
    assert found.name == name
    with pytest.raises(DataError, match="ranks the documents of a search"):
        found.similarity(["a"], ["b"])
    with pytest.raises(DataError, match="ranks the documents of a search"):
        found.query_document_vectors(["a"], ["b"])


def test_names_that_cannot_be():
    with pytest.raises(SettingsError, match="passages is 3"):
        check_model("bundled+passages:3")
    for size in ("20", "20.0"):
        assert load_scorer(f"bundled+passages:{size}+words").name == "bundled+words+passages:20"
