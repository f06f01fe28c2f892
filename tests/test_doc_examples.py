"""The scripts that the documentation shows."""

import runpy
from pathlib import Path

import pytest

import selfsent

EXAMPLES = Path(__file__).parents[1] / "docs" / "examples"
BUNDLED = Path(selfsent.__file__).parent / "models" / "bundled" / "static"


def test_ids_come_back_from_qdrant(tmp_path, monkeypatch, capsys):
    pytest.importorskip("qdrant_client", reason="Qdrant's client is not installed")
    monkeypatch.chdir(tmp_path)
    rows = ["T-1,The printer does not answer.", "T-2,Our invoice is wrong.", "T-3,The printer prints nothing."]
    (tmp_path / "tickets.csv").write_text("id,text\n" + "\n".join(rows) + "\n")
    main = runpy.run_path(str(EXAMPLES / "qdrant.py"))["main"]
    for _ in range(2):  # what is there already is replaced
        main(str(BUNDLED), "tickets.csv", "a broken printer")
    first, second, third, *_ = capsys.readouterr().out.splitlines()
    assert {first.split()[1], second.split()[1]} == {"T-1", "T-3"}
    assert third.split()[1] == "T-2"
