import pytest

from selfsent.data.corpus import read_corpus
from selfsent.errors import CorpusError

ROWS = """\
first,second,label,topic,score
a cat,a dog,yes,animals,1
a car,a bus,no,traffic,2
a cow,a sow,no,animals,many
a van,a tram,maybe,traffic,4
"""


@pytest.fixture
def table(tmp_path):
    (tmp_path / "pairs.csv").write_text(ROWS)
    return tmp_path / "pairs.csv"


def test_rows_are_chosen_by_their_values(table, tmp_path):
    corpus = read_corpus(
        table,
        text_columns=("first", "second"),
        label_column="label",
        where={"topic": "traffic", "label": ["no", "maybe"]},
        cache=tmp_path,
    )
    assert corpus.texts(column="second") == ["a bus", "a tram"]
    assert corpus.label_names == ("maybe", "no")


def test_texts_of_pairs_become_rows(table, tmp_path):
    corpus = read_corpus(table, text_columns=("first", "second"), document_column="topic", stack=True, cache=tmp_path)
    assert corpus.text_columns == ("text",)
    assert corpus.texts() == ["a cat", "a dog", "a car", "a bus", "a cow", "a sow", "a van", "a tram"]
    assert corpus.documents.tolist() == [0, 0, 1, 1, 0, 0, 1, 1]
    again = read_corpus(table, text_columns=("first", "second"), cache=tmp_path)
    assert again.text_columns == ("first", "second")


def test_what_is_wrong_in_a_chosen_row_is_named_by_its_place_in_the_file(table, tmp_path):
    with pytest.raises(CorpusError, match="line 4"):
        read_corpus(table, text_column="first", score_column="score", where={"label": "no"}, cache=tmp_path)
    kept = read_corpus(table, text_column="first", score_column="score", where={"topic": "traffic"}, cache=tmp_path)
    assert kept.scores.tolist() == [2.0, 4.0]


def test_a_choice_of_nothing_says_so(table, tmp_path):
    with pytest.raises(CorpusError, match="no text in it, where topic is trafic"):
        read_corpus(table, text_column="first", where={"topic": "trafic"}, cache=tmp_path)
    with pytest.raises(CorpusError, match="no column 'tpic'"):
        read_corpus(table, text_column="first", where={"tpic": "traffic"}, cache=tmp_path)
