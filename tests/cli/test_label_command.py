import sys

import pytest

TICKETS = [
    "The printer on the second floor is dead.",
    "There is no paper in the printer.",
    "My password has expired and I need a new one.",
    "The invoice has a wrong address.",
    "The paper of the contract is missing.",
    "Who can give me a new printer?",
]


def test_no_terminal_is_refused(selfsent, sentences, tmp_path):
    done = selfsent("label", sentences, "--output", tmp_path / "pairs.tsv")
    assert "standard input is no terminal" in done.complaint
    assert "--count is 1" in selfsent("label", sentences, "--count", 1).complaint
    assert not (tmp_path / "pairs.tsv").exists()


def test_questions_answers_undo_and_going_on(selfsent, sentences, tmp_path, monkeypatch):
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True, raising=False)
    keys = iter(["y", "?", "n", "u", "3", "q", "s", "4", "5"])
    monkeypatch.setattr("builtins.input", lambda prompt: next(keys))
    command = ("label", sentences, "--models", "tfidf,bm25", "--output", tmp_path / "pairs.tsv", "--count", 4)
    for answers in (["5", "3"], ["5", "3", "4", "5"]):
        done = selfsent(*command)
        lines = (tmp_path / "pairs.tsv").read_text().splitlines()
        assert [line.split("\t")[2] for line in lines] == ["score", *answers], done.err
        assert ("taken back" in done.out) == (len(answers) == 2)


@pytest.fixture
def tickets(tmp_path):
    rows = ["id,body", *(f"T-{number},{text}" for number, text in enumerate(TICKETS))]
    (tmp_path / "tickets.csv").write_text("\n".join(rows) + "\n")
    (tmp_path / "asked.txt").write_text("printer is dead\nno paper\nnew password\n")
    return tmp_path


def test_hits_of_real_queries_are_judged_gone_on_with_and_scored(selfsent, tickets, monkeypatch):
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True, raising=False)
    keys = iter(["y", "5", "n", "u", "y", "q", "s", "n", "y"])
    monkeypatch.setattr("builtins.input", lambda prompt: next(keys))
    table = ("--text-column", "body", "--id-column", "id")
    judged, count = tickets / "judged.csv", ("--count", 4)
    command = ("label", tickets / "tickets.csv", *table, "--queries", tickets / "asked.txt", "--output", judged, *count)
    shown = []
    for answers in (["1", "1"], ["1", "1", "0", "1"]):
        done = selfsent(*command, "--models", "tfidf,bm25")
        shown.append(done.out)
        heading, *rows = [line.rsplit(",", 1) for line in judged.read_text().splitlines()]
        assert heading == ["query,id", "relevant"]
        assert [grade for _, grade in rows] == answers, done.err
        assert len({row for row, _ in rows}) == len(rows)
        assert ("taken back" in done.out) == (len(answers) == 2)
    texts = {f"T-{number}": text for number, text in enumerate(TICKETS)}
    query, name = rows[0][0].rsplit(",", 1)
    assert f"  {query}\n  {texts[name]}\n" in shown[0]
    assert "4 judgements in" in done.err
    done = selfsent("evaluate", "bm25", "--queries", judged, "--documents", tickets / "tickets.csv", *table)
    assert "judged: nDCG@10" in done.out, done.err


def test_judging_needs_ids_and_whole_texts(selfsent, tickets, monkeypatch):
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True, raising=False)
    command = ("label", tickets / "tickets.csv", "--text-column", "body", "--queries", tickets / "asked.txt")
    assert "--queries goes with --id-column" in selfsent(*command).complaint
    assert "judges whole texts" in selfsent(*command, "--id-column", "id", "--passages", 60).complaint
    (tickets / "judged.tsv").write_text("")
    other = selfsent(*command, "--id-column", "id", "--output", tickets / "judged.tsv")
    assert "must end in .csv" in other.complaint
    (tickets / "judged.csv").write_text("notes\n")
    assert "use another file" in selfsent(*command, "--id-column", "id", "--output", tickets / "judged.csv").complaint
    assert (tickets / "judged.csv").read_text() == "notes\n"
