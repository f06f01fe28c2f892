"""`python:stdlib`: real English text that every machine with Python has, the docstrings of the standard library."""

from __future__ import annotations

import ast
import inspect
import re
import sys
import sysconfig
import tokenize
import warnings
from collections.abc import Iterator
from pathlib import Path

from selfsent.data.corpus.batch import Batch
from selfsent.data.corpus.failure import fail
from selfsent.data.corpus.sentences import split_sentences

NAME = "python:stdlib"

# Tests and their data are no prose; lib2to3 holds copies; site-packages belongs to others.
_LEFT_OUT = frozenset({"site-packages", "dist-packages", "test", "tests", "idle_test", "lib2to3", "__pycache__"})
_DOCUMENTED = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
_CODE = re.compile(r"^\s*(>>>|\.\.\.|[$%#|+]|-{2,}|={2,}|@)|\s->\s|::?$|\s{3,}\S")
_SIGNATURE = re.compile(r"^[\w.]+\s?\([^)]*\)|^[\w.]+\s*=|^:?\w+:\s")
_WORD = re.compile(r"[^\W\d_]{2,}|\b[aAI]\b")


def stdlib_identity() -> list[str]:
    """Cache key of the text: path of the library and version of Python."""
    return [sysconfig.get_path("stdlib"), sys.version]


def stdlib_files() -> list[Path]:
    """The Python files of the standard library, sorted, without tests and installed packages.

    Raises:
        CorpusError: the library is not there as Python files.
    """
    root = Path(sysconfig.get_path("stdlib"))
    found = (path.relative_to(root) for path in root.rglob("*.py"))
    files = [root / path for path in sorted(found) if _LEFT_OUT.isdisjoint(path.parts[:-1])]
    if not files:
        fail(NAME, f"no Python files in {root}; give a corpus of your own")
    return files


def read_stdlib(files: list[Path]) -> Iterator[Batch]:
    """Sentences of all docstrings, parsed with `ast` and never run; each docstring is a document.

    Args:
        files: Python source files; one that cannot be parsed is skipped.
    """
    for path in files:
        found = [(f"{path}:{line}", text) for line, docstring in _docstrings(path) for text in prose(docstring)]
        documents, texts = ([pair[side] for pair in found] for side in (0, 1))
        yield Batch([texts], documents=documents, files=1)


def prose(docstring: str) -> list[str]:
    """The sentences of a docstring: no doctests, code, tables or signatures, three words or more, mostly letters."""
    paragraphs = map(str.splitlines, re.split(r"\n\s*\n", inspect.cleandoc(docstring)))
    texts = (" ".join(line.strip() for line in lines) for lines in paragraphs if not _is_code(lines))
    return [sentence for text in texts for sentence in split_sentences(text) if _is_prose(sentence)]


def _docstrings(path: Path) -> list[tuple[int, str]]:
    """Line and text of every docstring of a file, in order; none if it cannot be parsed."""
    try:
        with warnings.catch_warnings(), tokenize.open(path) as file:
            warnings.simplefilter("ignore")
            tree = ast.parse(file.read())
    except (SyntaxError, ValueError, RecursionError, MemoryError, OSError):
        return []
    nodes = [node for node in _statements(tree) if isinstance(node, _DOCUMENTED)]
    found = [(getattr(node, "lineno", 0), ast.get_docstring(node, clean=False)) for node in nodes]
    return sorted((line, text) for line, text in found if text)


def _statements(tree: ast.AST) -> Iterator[ast.AST]:
    """A module and all statements in it; expressions hold no docstrings, and are most of the tree."""
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        yield node
        for part in ("body", "orelse", "handlers", "finalbody", "cases"):
            waiting += getattr(node, part, ())


def _is_code(lines: list[str]) -> bool:
    """Whether a paragraph is indented as a whole, a doctest, a table or a list of signatures."""
    if all(line.startswith("    ") for line in lines):
        return True
    odd = sum(bool(_CODE.search(line)) for line in lines)
    return odd * 2 > len(lines) or lines[0].lstrip().startswith(">>>")


def _is_prose(sentence: str) -> bool:
    words = _WORD.findall(sentence)
    is_text = len(words) >= 3 and sum(map(len, words)) >= 0.7 * (len(sentence) - sentence.count(" "))
    return is_text and ">>>" not in sentence and _SIGNATURE.match(sentence) is None
