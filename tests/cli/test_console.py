import os
import re
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

ESCAPE = "\x1b[2J\u202e"


@pytest.fixture
def terminal(monkeypatch):
    """A terminal of 80 columns."""
    shown = Console(file=StringIO(), force_terminal=True, width=80, markup=False, emoji=False, highlight=False)
    monkeypatch.setattr(progress, "errors", lambda: shown)
    return shown.file


def test_the_bar_shows_everything_on_a_wide_terminal(terminal, monkeypatch):
    progress.errors().width = 130
    with progress.shown(None, quiet=False) as told:
        told.count("tokenising", 3, 10)
        told.count("tokenising", 7, 10)
        for step in range(1, 5):
            told.step(step, 4, FIGURES)
    text = terminal.getvalue()
    for said in (
        "tokenising",
        "10/10",
        "4/4",
        "loss 5.500",
        "1,234 sentences/s",
        "56,789 tokens/s",
        "cosine 0.25",
        "dev 31.00",
    ):
        assert said in text
    assert "…" not in text


def test_on_a_narrow_terminal_the_bar_stays_on_one_line(terminal):
    with progress.shown(None, quiet=False) as told:
        for step in range(1, 5):
            told.step(step, 4, FIGURES)
    text = terminal.getvalue()
    assert all(said in text for said in ("4/4", "loss 5.500", "1,234 sentences/s", "dev 31.00"))
    assert "tokens/s" not in text
    assert "…" not in text
    last = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text).rstrip().splitlines()[-1].split("\r")[-1]
    assert last.startswith("training")
    assert last.rstrip().endswith("dev 31.00 0:00:00")


def test_a_score_before_the_first_line_of_the_log(terminal):
    with progress.shown(None, quiet=False) as told:
        told.step(1, 4, {"score": 31.0})
        told.step(4, 4, FIGURES)
    assert "dev 31.00" in terminal.getvalue()


def test_a_bar_that_ends_early_lets_go_of_the_terminal(terminal):
    with progress.shown(None, quiet=False) as told:
        told.step(1, 4, FIGURES)
    with progress.shown(None, quiet=False) as told:
        told.count("encoding", 1, 4)
    assert (
        terminal.getvalue().count("\x1b[?25l") == terminal.getvalue().count("\x1b[?25h") == 2
    )  # cursor hidden and shown


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


def test_a_run_may_be_quiet_and_may_be_heard_by_another(terminal):
    class Mine(progress.Progress):
        ended = False

        def end(self):
            self.ended = True

    mine = Mine()
    for heard, quiet in ((None, True), (mine, False)):
        with progress.shown(heard, quiet) as told:
            told.notice("a line")
            told.count("encoding", 1, 4)
            told.step(1, 4, FIGURES)
    assert terminal.getvalue() == ""
    assert mine.ended


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


def test_cells_and_titles_of_tables_show_no_control_characters(capsys):
    from rich.table import Table
    from rich.text import Text

    from selfsent.display import text_of

    table = Table(f"a{ESCAPE}", title=Text(f"b{ESCAPE}"), caption=f"c{ESCAPE}")
    table.add_row(f"d{ESCAPE}")
    table.add_row(Text(f"e{ESCAPE}", style="bold"))
    console.show(table)
    for shown in (capsys.readouterr().out, text_of(table)):
        assert "\x1b" not in shown
        assert "\u202e" not in shown
        assert shown.count(r"\x1b[2J\u202e") == 5


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
