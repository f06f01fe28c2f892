"""What a notebook shows, in a real kernel."""

import nbformat
import pytest
from nbclient import NotebookClient

import tiny

CELLS = [
    "import selfsent",
    """run = selfsent.train(
    {texts!r}, "simcse", {base!r}, {output!r}, steps=12, batch_size=8, max_length=32, pick_words=4, dropout=0.0
)""",
    "run",
    "quiet = selfsent.train({texts!r}, 'zscore', {base!r}, {output!r} + '2', quiet=True)",
]


def shown(cell):
    """The text of a cell's outputs, and the HTML."""
    text = "".join(output.get("text", "") + output.get("data", {}).get("text/plain", "") for output in cell.outputs)
    return text, "".join(output.get("data", {}).get("text/html", "") for output in cell.outputs)


@pytest.mark.full
def test_a_notebook_shows_how_far_a_run_is_and_what_came_of_it(base_of, tmp_path):
    given = {"texts": tiny.make_sentences(40), "base": str(base_of("bert")), "output": str(tmp_path / "run")}
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell.format(**given)) for cell in CELLS])
    NotebookClient(notebook, timeout=120, resources={"metadata": {"path": str(tmp_path)}}).execute()
    _, trained, result, quiet = notebook.cells
    said = "".join(shown(trained))
    assert "simcse from " in said
    assert "step 12 of 12  loss " in said
    assert "<td>simcse</td>" in shown(result)[1].replace(' class="text"', "")
    assert shown(quiet) == ("", "")
