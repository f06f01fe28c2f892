import os
import threading

import pytest

from selfsent.data.judgements import Judgements
from selfsent.errors import DataError, OutputError, SettingsError


def test_answers_are_written_at_once_changed_and_taken_back(tmp_path):
    path = tmp_path / "mine.csv"
    found = Judgements(path)
    assert (len(found), path.exists()) == (0, False)
    found.judge("printer,  is\ndead", "T-1", True)
    found.judge("printer, is dead", 17, False)
    assert path.read_text() == 'query,id,relevant\n"printer, is dead",T-1,1\n"printer, is dead",17,0\n'
    again = Judgements(path)
    assert [again.of("printer, is dead", name) for name in ("T-1", 17, "T-2")] == [True, False, None]
    again.judge("printer, is dead", "T-1", False)
    again.judge("printer, is dead", 17, None)
    assert path.read_text() == 'query,id,relevant\n"printer, is dead",T-1,0\n'
    assert (len(again), again.queries) == (1, 0)


def test_ids_that_differ_in_spaces_alone_are_two(tmp_path):
    found = Judgements(tmp_path / "mine.csv")
    found.judge("red", "a b", True)
    found.judge("red", "a  b", False)
    for each in (found, Judgements(found.path)):
        assert [each.of("red", name) for name in ("a b", "a  b", "a\nb", " a b")] == [True, False, None, True]


def test_queries_written_by_hand_are_gone_on_with(tmp_path):
    path = tmp_path / "mine.csv"
    path.write_text("query,id\nred,7\n", encoding="utf-8-sig")
    Judgements(path).judge("red", "8", False)
    assert path.read_text() == "query,id,relevant\nred,7,1\nred,8,0\n"


def test_rows_that_wait_for_a_judgement_stay(tmp_path):
    path = tmp_path / "mine.csv"
    path.write_text("query,id,relevant\nred,7,\nred,8,1\nred,9,\n")
    found = Judgements(path)
    assert (len(found), found.queries, found.of("red", "7")) == (1, 1, None)
    found.judge("red", "9", False)
    assert path.read_text() == "query,id,relevant\nred,7,\nred,8,1\nred,9,0\n"
    assert len(found) == 2


def test_nothing_is_lost_where_several_judge(tmp_path):
    path = tmp_path / "mine.csv"
    all_ = [Judgements(path) for _ in range(3)]

    def judge(number):
        for row in range(10):
            all_[number % 3].judge(f"query {number}", row, row % 2 == 0)

    threads = [threading.Thread(target=judge, args=(number,)) for number in range(6)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert len(Judgements(path)) == 60


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("query,id,team\nred,7,it\n", "and no others"),
        ("query,id,relevant\nred,7\n", "and no others"),
        ("a text\n", "and no others"),
        ("query,id,relevant\nred,7,-1\n", "relevant is '-1'"),
        ("query,id,relevant\nred,7,nan\n", "relevant is 'nan'"),
        (b"query,id\nr\xe9d,7\n", "cannot be read"),
    ],
)
def test_a_file_of_another_kind_is_refused_and_kept(tmp_path, content, said):
    path = tmp_path / "mine.csv"
    content = content if isinstance(content, bytes) else content.encode()
    path.write_bytes(content)
    with pytest.raises(DataError, match=said):
        Judgements(path)
    assert path.read_bytes() == content


def test_a_file_that_was_spoilt_meanwhile_is_not_written_over(tmp_path):
    path = tmp_path / "mine.csv"
    found = Judgements(path)
    found.judge("red", "7", True)
    path.write_text("notes\n")
    with pytest.raises(DataError, match="and no others"):
        found.judge("red", "8", True)
    assert path.read_text() == "notes\n"


def test_limits(tmp_path):
    with pytest.raises(SettingsError, match=r"must end in \.csv"):
        Judgements(tmp_path / "mine.tsv")
    os.mkfifo(tmp_path / "pipe.csv")
    with pytest.raises(OutputError, match="not an ordinary file"):
        Judgements(tmp_path / "pipe.csv")
    found = Judgements(tmp_path / "mine.csv", maximum=1)
    for empty in (("", "7"), ("red", " ")):
        with pytest.raises(DataError, match="needs a query and an id"):
            found.judge(*empty, True)
    found.judge("red", "7", True)
    with pytest.raises(DataError, match="the maximum"):
        found.judge("red", "8", True)
    found.judge("red", "7", False)
    assert (tmp_path / "mine.csv").read_text() == "query,id,relevant\nred,7,0\n"
