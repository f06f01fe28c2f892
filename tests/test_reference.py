"""The reference pages of the documentation: the command line and the public names, complete."""

import re
import runpy
from pathlib import Path

import selfsent
from selfsent.cli.main import command_of, groups, make_parser
from selfsent.methods import METHODS

DOCS = Path(__file__).parents[1] / "docs"


def test_the_page_of_the_command_line_has_every_option():
    text = runpy.run_path(str(DOCS / "reference" / "build.py"))["page"]()
    sections = dict(re.findall(r"^## (\S+) \{ #\1 \}\n(.*?)(?=^## )", text, re.M | re.S))
    assert list(sections) == [name for names in groups().values() for name in names]
    for name, section in sections.items():
        flags = [flag for action in make_parser([name])[0]._actions for flag in action.option_strings]
        assert not [flag for flag in flags if flag not in section and flag not in ("-h", "--help", "--help-all")], name
        for more in command_of(name).subcommands:
            assert f"### {name} {more} {{ #{name}-{more} }}" in section
            flags = [flag for action in make_parser([name, more])[0]._actions for flag in action.option_strings]
            assert not [flag for flag in flags if flag not in section and flag not in ("-h", "--help", "--help-all")]
    assert [name for name in METHODS if f"### {name} {{" not in text] == []
    for line in text.splitlines():
        if line.startswith("| `"):
            assert len(re.findall(r"(?<!\\)\|", line)) == 3, line  # two cells, whatever a help text holds


def test_every_public_name_is_on_the_page_of_the_api():
    text = (DOCS / "api.md").read_text()
    named = {name.rpartition(".")[2] for name in re.findall(r"^::: (\S+)", text, re.M)}
    assert set(selfsent.__all__) - named - {"METHODS", "__version__"} == set()


def test_examples_in_docstrings_are_sections_that_the_pages_show_as_code():
    """`Example:` would be a paragraph with a title, and its lines text."""
    files = [*(DOCS.parent / "src").rglob("*.py"), *(DOCS.parent / "packages").glob("*/src/**/*.py")]
    assert len(files) > 200
    texts = {path: path.read_text(encoding="utf-8") for path in files}
    assert [path for path, text in texts.items() if re.search(r"^ *Example:$", text, re.M)] == []
    begins = [line for text in texts.values() for line in re.findall(r"^ *Examples:\n(.*)", text, re.M)]
    assert [line for line in begins if not line.lstrip().startswith(">>>")] == []
