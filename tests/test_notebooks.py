"""The notebooks of the documentation run from end to end, on a small text."""

from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

import tiny

FOLDER = Path(__file__).parents[1] / "docs" / "notebooks"
SMALL = {"STEPS": "2", "ROWS": "100", "MODULES": '["json", "glob"]'}


def small(notebook, corpus):
    """The notebook with smaller parameters, on another corpus."""
    for cell in notebook.cells:
        if cell.cell_type != "code":
            continue
        if "parameters" in cell.metadata.get("tags", ()):
            cell.source += "".join(f"\n{name} = {value}" for name, value in SMALL.items())
        cell.source = cell.source.replace('"python:stdlib", split_sentences=True', repr(str(corpus)))
    return notebook


NAMES = pytest.mark.parametrize("name", sorted(path.stem for path in FOLDER.glob("*.ipynb")))


@pytest.mark.full
@NAMES
def test_a_notebook_runs(name, tmp_path, monkeypatch):
    monkeypatch.setenv("SELFSENT_CACHE", str(tmp_path / "cache"))
    sentences = tiny.make_sentences(1200)
    documents = ("\n".join(sentences[start : start + 3]) for start in range(0, 1200, 3))
    (tmp_path / "corpus.txt").write_text("\n\n".join(documents) + "\n")
    notebook = small(nbformat.read(FOLDER / f"{name}.ipynb", as_version=4), tmp_path / "corpus.txt")
    NotebookClient(notebook, timeout=240, resources={"metadata": {"path": str(tmp_path)}}).execute()


@NAMES
def test_a_notebook_is_stored_with_what_it_shows_and_without_paths(name):
    notebook = nbformat.read(FOLDER / f"{name}.ipynb", as_version=4)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert any(cell.outputs for cell in code)
    shown = "".join(str(cell.outputs) for cell in code)
    for path in ("site-packages", "/tmp", "/home", "/root", "stderr"):
        assert path not in shown
