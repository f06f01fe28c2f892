import numpy as np
import pytest

import selfsent
from selfsent.errors import DataError
from selfsent.evaluation.lexical import LexicalEncoder
from selfsent.evaluation.tasks import known_items
from selfsent.evaluation.tasks.known_items import KnownItemTask, first_finds_rest, text_finds_partner

PLANTS = ["oak", "elm", "fir", "ash", "yew", "fig"]


@pytest.fixture
def pairs(tmp_path):
    """A corpus of rows of two texts."""

    def read(rows):
        lines = ["subject,body", *(f"{one},{other}" for one, other in rows)]
        (tmp_path / "pairs.csv").write_text("\n".join(lines))
        return selfsent.read_corpus(
            tmp_path / "pairs.csv", text_columns=("subject", "body"), cache=tmp_path / f"cache-{len(rows)}"
        )

    return read


def test_the_rest_of_every_document_is_searched_as_one_text():
    documents = [[f"All about the {name}", f"An {name} grows.", "It has leaves."] for name in PLANTS]
    task = first_finds_rest([*documents, ["One sentence alone."]])
    assert task.queries == [f"All about the {name}" for name in PLANTS]
    assert task.documents == [f"An {name} grows. It has leaves." for name in PLANTS]
    assert task.grades == [{place: 1.0} for place in range(6)]
    assert task.asked == "the first sentence of a document finds the rest of it: 6 queries among 6 texts"
    assert task.score(LexicalEncoder("bm25")).score == pytest.approx(100)


def test_of_rests_that_are_nearly_the_same_one_is_searched_and_is_the_answer_of_all():
    same = "The tree grows slowly in the north and has needles all year round, number {}."
    documents = [[f"About {name}.", same.format(number)] for number, name in enumerate(PLANTS)]
    task = first_finds_rest([*documents, ["About cars.", "They have wheels."]])
    assert task.documents == [same.format(0), "They have wheels."]
    assert task.grades == [{0: 1.0}] * 6 + [{1: 1.0}]
    assert np.unique(task._groups[:6]).size == 1  # drawn together
    assert task._groups[6] != task._groups[0]


def test_what_would_be_trivial_or_without_words_is_not_asked_but_titles_are():
    documents = [
        ["The oak is a tree of Europe.", "As they say: the OAK is a tree, of Europe! It grows."],
        ["Oak", "An oak is a tree."],
        ["* * *", "Stars stand above."],
        ["What is an elm?", "A tree."],
    ]
    task = first_finds_rest(documents)
    assert task.queries == ["Oak", "What is an elm?"]
    assert len(task.documents) == 4  # the others are still searched


def test_documents_with_the_same_title_answer_it_both():
    task = first_finds_rest([["Trees", "Oaks grow tall."], ["Trees", "Elms were ill."], ["Cars", "They have wheels."]])
    assert (task.queries, task.grades) == (["Trees", "Cars"], [{0: 1.0, 1: 1.0}, {2: 1.0}])


def test_documents_of_one_sentence_have_nothing_to_find():
    with pytest.raises(DataError, match="search: no document has two sentences"):
        first_finds_rest([["One."], ["Two."]])
    with pytest.raises(DataError, match="no query"):
        KnownItemTask("this", ["a", "b"], {})


def test_partners_are_looked_for_among_all_of_the_other_column(pairs):
    corpus = pairs([("oak", "acorns"), ("oak", "bark"), ("elm", "bark"), ("fir", "cones"), ("car", "wheels")])
    task = text_finds_partner(corpus, np.array([0, 1, 2]))
    assert task.queries == ["oak", "elm"]
    assert task.documents[:2] == ["acorns", "bark"]
    assert set(task.documents) == {"acorns", "bark", "cones", "wheels"}
    assert task.grades == [{0: 1.0, 1: 1.0}, {1: 1.0}]
    assert task._groups[0] == task._groups[1]  # they share an answer
    assert task.asked == "a text of “subject” finds its “body”: 2 queries among 4 texts"


def test_a_query_that_stands_among_the_texts_would_find_itself_and_is_not_asked(pairs):
    task = text_finds_partner(pairs([("oak", "tree"), ("tree", "plant"), ("car", "wheels")]), np.array([0, 1]))
    assert task.queries == ["oak"]


def test_answers_are_always_among_the_texts(pairs, monkeypatch):
    monkeypatch.setattr(known_items, "MOST", 4)
    corpus = pairs([(f"query {n}", f"answer {n}") for n in range(20)])
    assert len(text_finds_partner(corpus, np.array([2, 3])).documents) == 4
    task = text_finds_partner(corpus, np.arange(10, 16))
    assert task.documents == [f"answer {n}" for n in range(10, 16)]
