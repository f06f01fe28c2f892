import math

import pytest

import tiny
from selfsent.data.corpus import read_corpus
from selfsent.errors import DataError
from selfsent.evaluation import evaluate
from selfsent.evaluation.tasks.judged import answered_queries, read_judged
from selfsent.scorers.lexical import LexicalScorer
from selfsent.search.tables import write_table

TEXTS = {"7": "a red car", "8": "a blue car", "9": "two green boats", "T 1": "a red car", "11": "one white horse"}


@pytest.fixture
def table(tmp_path):
    rows = [{"number": number, "body": body} for number, body in TEXTS.items()]
    path = tiny.write_table(tmp_path / "cars.csv", rows)
    return read_corpus(path, text_column="body", metadata_columns="number", split_sentences=False, min_rows=1)


def judged(table, path, content, **how):
    path.write_text(content)
    return read_judged(path, table, "number", **how)


def test_queries_find_the_texts_of_their_ids(table, tmp_path):
    rows = "query,id\nred,7\ncar,8;7\nboats,9\nboats,11\nhorse,T 1\n"
    task = judged(table, tmp_path / "mine.csv", rows)
    texts = list(task.documents)
    assert sorted(texts) == sorted({*TEXTS.values()})  # equal texts are searched once
    right = {q: {texts[index] for index in grades} for q, grades in zip(task.queries, task.grades, strict=True)}
    assert right == {
        "red": {"a red car"},
        "car": {"a red car", "a blue car"},
        "boats": {"two green boats", "one white horse"},
        "horse": {"a red car"},
    }
    score = evaluate("bm25", retrieval=task).scores["mine"]
    # Without a shared word the earlier row comes first: boats has the horse fourth, horse the red car second.
    each = [1, 1, (1 + 1 / math.log2(5)) / (1 + 1 / math.log2(3)), 1 / math.log2(3)]
    assert (score.n, score.title) == (4, "mine: nDCG@10 on cars.csv")
    assert score.score == pytest.approx(100 * sum(each) / 4)


def test_ids_that_differ_in_spaces_alone_are_two_and_are_found_by_others_where_none_is_the_same(tmp_path):
    rows = [{"number": number, "body": body} for number, body in (("a b", "a red car"), ("a  b", "a blue car"))]
    path = tiny.write_table(tmp_path / "cars.csv", rows)
    table = read_corpus(path, text_column="body", metadata_columns="number", split_sentences=False, min_rows=1)
    task = judged(table, tmp_path / "mine.csv", "query,id\none,a b\nother,a  b\nboth,a   b\n")
    assert task.grades == [{0: 1.0}, {1: 1.0}, {0: 1.0, 1: 1.0}]


def test_numbers_and_other_names_are_read(table, tmp_path):
    rows = '{"asked": "red", "ticket": 7}\n{"asked": "boats", "ticket": 9}\n'
    task = judged(table, tmp_path / "mine.jsonl", rows, columns=("asked", "ticket"))
    found = [[task.documents[index] for index in grades] for grades in task.grades]
    assert found == [["a red car"], ["two green boats"]]


def test_unknown_ids_are_told(table, tmp_path):
    task = judged(table, tmp_path / "mine.csv", 'query,id\nred,7\ncar,"8, 100"\nboats,200\n')
    assert task.queries == ["red", "car"]
    said = task.score(LexicalScorer("bm25")).warnings
    assert any("2 ids not in the column number" in line and "such as 100" in line for line in said)
    assert any("1 query without an id of the table" in line for line in said)
    with pytest.raises(DataError, match="has none of the ids, such as 300"):
        judged(table, tmp_path / "none.csv", "query,id\nred,300\ncar,301\n")


@pytest.mark.parametrize(
    ("name", "rows"),
    [
        ("mine.csv", "query,id,relevant\nred,7,1\nred,8,0\nboats,9,2\nboats,9,1\nboats,11,yes\nhorse,11,0\n"),
        ("mine.tsv", "query\tid\trelevant\nred\t7\t1\nred\t8\t0\nboats\t9\t2\nboats\t11\tyes\nhorse\t11\t0\n"),
        (
            "mine.jsonl",
            '{"query": "red", "id": 7, "relevant": true}\n{"query": "red", "id": 8, "relevant": false}\n'
            '{"query": "boats", "id": 9, "relevant": 2}\n{"query": "boats", "id": 11, "relevant": 1.0}\n'
            '{"query": "horse", "id": 11, "relevant": 0}\n',
        ),
    ],
)
def test_what_is_judged_to_be_no_answer_is_none(table, tmp_path, name, rows):
    task = judged(table, tmp_path / name, rows)
    right = [{task.documents[index]: grade for index, grade in grades.items()} for grades in task.grades]
    assert task.queries == ["red", "boats"]
    assert right == [{"a red car": 1.0}, {"two green boats": 2.0, "one white horse": 1.0}]
    said = " ".join(task.score(LexicalScorer("bm25")).warnings)
    assert "1 query for which no text was judged to be an answer: left out" in said


def test_wrong_judgements_are_refused(table, tmp_path):
    with pytest.raises(DataError, match="relevant is 'perhaps'; it is 1"):
        judged(table, tmp_path / "mine.csv", "query,id,relevant\nred,7,perhaps\ncar,8,1\n")
    with pytest.raises(DataError, match="no text was judged to be an answer"):
        judged(table, tmp_path / "mine.csv", "query,id,relevant\nred,7,0\ncar,8,no\n")


@pytest.mark.parametrize(
    "table",
    [
        "query,relevant\nno paper,1\nit rains,0\nno paper,yes\n",
        "query,id,relevant\nno paper,7,1\nit rains,8,0\n",
        "query\nno paper\nno paper\n",
    ],
)
def test_queries_that_have_an_answer_need_no_ids(tmp_path, table):
    (tmp_path / "asked.csv").write_text(table)
    assert answered_queries(tmp_path / "asked.csv") == ["no paper"]


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".parquet", ".tsv"])
def test_rows_that_wait_for_a_judgement_are_left_out(tmp_path, suffix):
    corpus = read_corpus([{"id": n, "text": f"text {n}"} for n in range(3)], metadata_columns=("id",), cache=tmp_path)
    rows = [("red", "0", "1"), ("red", "1", ""), ("blue", "2", "2"), ("blue", "1", "no")]
    path = tmp_path / f"mine{suffix}"
    names = ("query", "id", "relevant")
    write_table([dict(zip(names, row, strict=True)) for row in rows], dict.fromkeys(names, str), path)
    task = read_judged(path, corpus, "id")
    assert list(task.queries) == ["red", "blue"]
    assert [dict(each) for each in task.grades] == [{0: 1.0}, {2: 2.0}]
