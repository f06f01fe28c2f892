"""Names that come with a text, an id, a column or a group, never become the place of a file."""

from pathlib import Path

import pytest
from hypothesis import given, strategies as st

import tiny
from selfsent.comparison.trials import folder_of
from selfsent.errors import SettingsError
from selfsent.recipes.document import Section
from selfsent.recipes.stage import read_stage

HOSTILE = ["../escaped", "../../../escaped", "..", "a/../../escaped", "..\\escaped", "~/escaped", "$HOME/escaped", "-x"]


@pytest.fixture
def cell(tmp_path, monkeypatch):
    """A folder deep in an empty one, in which a table has a hostile name in each id, column and group."""
    work = tmp_path / "a" / "b" / "c"
    work.mkdir(parents=True)
    monkeypatch.chdir(work)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    hostile = [*HOSTILE, str(tmp_path / "escaped"), "/" * 300, "e" * 300]
    rows = []
    for number in range(60):
        name = hostile[number % len(hostile)]
        text = f"ba de {name} fi ko. Mi la {name} nu u{number}. Po ri sa w{number} te."
        ids = {"../id": f"{name}#{number}", str(tmp_path / "team"): name, "../subject": f"{name} ko u{number}"}
        rows.append({"text": text, **ids})
    tiny.write_table(work / "tickets.csv", rows)
    return tmp_path


IDS = ("--id-column", "../id", "--keep", "TEAM")
EXAM = ("--id-column", "../id", "--title-column", "../subject")


@pytest.mark.parametrize(
    ("arguments", "written"),
    [
        (("clean", "tickets.csv", *IDS, "--output", "out.csv"), {"out.csv"}),
        (
            ("dedup", "tickets.csv", *IDS, "--output", "out.csv", "--families", "f.csv"),
            {"out.csv", "f.csv", "f.html"},
        ),
        (("index", "MODEL", "tickets.csv", *IDS, "--output", "out"), {"out"}),
        (("encode", "MODEL", "tickets.csv", *IDS, "--output", "out.parquet"), {"out.parquet"}),
        (("search", "MODEL", "tickets.csv", "ba ../escaped", *IDS, "--output", "out.csv"), {"out.csv"}),
        (("pairs", "MODEL", "tickets.csv", *IDS, "--output", "out.csv"), {"out.csv"}),
        (
            ("cluster", "MODEL", "tickets.csv", *IDS, "--clusters", 3, "--output", "out.csv", "--page", "out.html"),
            {"out.csv", "out.html"},
        ),
        (("exam", "tickets.csv", "--text-column", "text", *EXAM, "--output", "out"), {"out"}),
    ],
    ids=["clean", "dedup", "index", "encode", "search", "pairs", "cluster", "exam"],
)
def test_a_command_writes_what_it_was_told_and_nothing_else(selfsent, model, cell, arguments, written):
    def there():
        return {path for path in cell.rglob("*") if not path.is_relative_to(cell / "a/b/c/out")}

    before = there()
    known = {"MODEL": str(model), "TEAM": str(cell / "team")}
    selfsent(*(known.get(argument, argument) for argument in arguments)).ok()
    work = cell / "a" / "b" / "c"
    assert there() - before <= {work / name for name in written}
    assert all((work / name).exists() for name in written)


names = st.one_of(st.sampled_from(HOSTILE), st.text(), st.text("./\\~a"))


@given(names)
def test_a_method_s_folder_is_in_that_of_the_comparison(name):
    folder = folder_of(name)
    assert (Path("out/methods") / folder).parent == Path("out/methods")
    assert folder.strip(".")
    assert not set(folder) & {"/", "\\", "~", "\0"}


@given(names)
def test_a_stage_s_folder_is_in_that_of_the_recipe(name):
    stages = Section("mine.yaml", 1)
    stages[name] = Section("mine.yaml", 2)  # which lacks a method
    with pytest.raises(SettingsError) as refused:
        read_stage(name, stages, Section("mine.yaml", 1), None)
    if set(name) & {".", "/", "\\", "~", "\0"}:
        assert "cannot name a directory" in str(refused.value)
