import os
from io import StringIO

import pytest
from rich.console import Console

from selfsent import progress
from selfsent.cli import console, main

FIGURES = {
    "loss": 5.5,
    "sentences_per_second": 1234.0,
    "tokens_per_second": 56789.0,
    "mean_cosine": 0.25,
    "score": 31.0,
}


@pytest.fixture
def terminal(monkeypatch):
    """A terminal of 80 columns."""
    shown = Console(file=StringIO(), force_terminal=True, width=80, markup=False, emoji=False, highlight=False)
    monkeypatch.setattr(progress, "errors", lambda: shown)
    monkeypatch.setattr(progress, "is_plain", lambda stream: False)
    return shown.file


def test_the_bar_shows_everything_on_a_wide_terminal(terminal, monkeypatch):
    progress.errors().width = 130
    with progress.shown(None, quiet=False) as told:
        told.count("tokenising", 3, 10)
        told.count("tokenising", 7, 10)
        for step in range(1, 5):
            told.step(step, 4, FIGURES)
    text = terminal.getvalue()
    for said in ("tokenising", "10/10", "4/4", "loss 5.500", "1,234 sentences/s", "56,789 tokens/s"):
        assert said in text
    for said in ("cosine 0.25", "dev 31.00"):
        assert said in text
    assert "…" not in text


def test_without_a_terminal_ten_lines(monkeypatch, capsys):
    monkeypatch.setattr(progress, "errors", lambda: Console(stderr=True, soft_wrap=True))
    with progress.shown(None, quiet=False) as told:
        told.count("tokenising", 10, 10)
        for step in range(1, 101):
            told.step(step, 100, FIGURES)
    lines = capsys.readouterr().err.splitlines()
    assert [line.split()[1] for line in lines] == [str(step) for step in range(10, 101, 10)]


@pytest.mark.parametrize("line", ["[bold]x[/bold]", "[/nope]", ":smile:", "x " * 200])
def test_lines_are_shown_as_they_are(line, capsys):
    progress.errors.cache_clear()
    console.results.cache_clear()
    console.notice(line)
    console.show(line)
    assert capsys.readouterr() == (f"{line}\n", f"{line}\n")


def test_only_the_first_process_speaks(capsys, monkeypatch):
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "2")
    console.notice("twice")
    console.show("twice")
    with progress.shown(None, quiet=False) as told:
        told.step(1, 1, FIGURES)
    assert capsys.readouterr() == ("", "")
    monkeypatch.delenv("WORLD_SIZE")  # as images of notebooks and clusters have it
    console.show("once")
    assert capsys.readouterr().out == "once\n"


def test_what_no_one_reads_is_dropped_and_the_run_goes_on(monkeypatch):
    reading, writing = os.pipe()
    os.close(reading)
    shown = progress.console(stderr=True)
    with os.fdopen(writing, "w") as closed:
        shown.file = closed
        monkeypatch.setattr(progress, "errors", lambda: shown)
        for step in (1, 2):
            console.notice(f"step {step}")


def test_of_several_processes_the_first_says_what_is_wrong(monkeypatch, capsys):
    waited = []
    monkeypatch.setattr("time.sleep", waited.append)
    for rank, patience in (("0", []), ("1", [5])):
        monkeypatch.setenv("RANK", rank)
        monkeypatch.setenv("WORLD_SIZE", "2")
        with pytest.raises(SystemExit) as left:
            main(["train", "nowhere.txt", "--output", "nowhere"])
        assert left.value.code == 2
        assert [seconds for seconds in waited if seconds >= 1] == patience  # others wait, too
        assert capsys.readouterr().err.count("nowhere.txt") == 1


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("seed is -1; it must be at least 0", "--seed is -1; it must be at least 0"),
        ("the seed is -1", "the seed is -1"),
        ("name them with text_columns", "name them with --text-columns"),
        ("give text_columns=a,b or `map_points`", "give --text-columns a,b or --map"),
        ("keep_best= needs dev", "--keep-best needs dev"),
        ("give keep_best=False, not keep_best=True", "give --no-keep-best, not --keep-best"),
        ("--text-columns and /tmp/text_columns.csv and 'text_columns'",) * 2,
        ("no_such_option= and `none`",) * 2,
        ("there is not enough memory",) * 2,
    ],
)
def test_names_of_python_are_shown_as_flags(line, shown):
    flags = {"seed": "--seed", "text_columns": "--text-columns", "map_points": "--map", "keep_best": "--keep-best"}
    flags["there"] = "--there"
    assert console.with_flags(line, flags) == shown


def test_before_and_after_a_bar_a_line_says_what_is_done(terminal, monkeypatch):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)

    def frame():
        """What a line of the user's brings onto the screen, with what is live below it."""
        terminal.seek(0)
        terminal.truncate()
        progress.errors().print("x")
        return terminal.getvalue()

    with console.shown("writing the index") as told:
        assert "writing the index" in frame()
        told.count("encoding", 4, 10)
        told.count("encoding", 6, 10)
        assert "writing the index" in frame()
        assert "/10" not in frame()
        with console.doing() as now:  # as reading a table in the midst of it
            now("drawing queries")
        assert "writing the index" in frame()
    assert "writing" not in frame()


def test_nothing_is_said_of_it_where_nobody_looks(capsys):
    with console.shown("writing the index") as told:
        told.count("encoding", 10, 10)
    assert capsys.readouterr().err == ""
