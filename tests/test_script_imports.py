"""What the scripts beside the package take from it is there."""

import ast
import importlib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SCRIPTS = sorted(path for folder in ("benchmarks", "experiments", "faults") for path in (ROOT / folder).rglob("*.py"))


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_imports(script):
    for node in ast.walk(ast.parse(script.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "selfsent":
            module = importlib.import_module(node.module)
            for name in (alias.name for alias in node.names):
                assert hasattr(module, name) or importlib.util.find_spec(f"{node.module}.{name}"), name
