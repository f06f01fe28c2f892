import sys


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
