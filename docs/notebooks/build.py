"""The notebooks as pages: `NAME.md` and its pictures beside each `NAME.ipynb`, for the documentation.

`--run` runs them first and stores what they show; run it where selfsent is installed.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import nbformat

HERE = Path(__file__).parent


def run(path: Path) -> None:
    """Run a notebook in an empty folder, and store it with what it shows."""
    from nbclient import NotebookClient

    notebook = nbformat.read(path, as_version=4)
    with tempfile.TemporaryDirectory() as folder:
        NotebookClient(notebook, timeout=600, resources={"metadata": {"path": folder}}).execute()
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)  # the time of day
        if cell.cell_type == "code":  # warnings name paths of this machine
            cell.outputs = [each for each in cell.outputs if each.get("name") != "stderr"]
    notebook.metadata.pop("language_info", None)
    nbformat.write(notebook, path)


def convert(path: Path) -> None:
    """Write a notebook as Markdown, its pictures as files."""
    from nbconvert import MarkdownExporter

    text, found = MarkdownExporter().from_filename(str(path), {"output_files_dir": f"{path.stem}_files"})
    for name, content in found["outputs"].items():
        (HERE / name).parent.mkdir(exist_ok=True)
        (HERE / name).write_bytes(content)
    path.with_suffix(".md").write_text(text, encoding="utf-8")


def main() -> None:
    """Convert all notebooks."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--run", action="store_true", help="run them first")
    arguments = parser.parse_args()
    for path in sorted(HERE.glob("*.ipynb")):
        if arguments.run:
            run(path)
        convert(path)


if __name__ == "__main__":
    main()
