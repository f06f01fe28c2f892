import ast
from pathlib import Path

import pytest

SLOW = [path for path in sorted(Path(__file__).parent.glob("*.py")) if not path.name.startswith("test_")]


@pytest.mark.parametrize("path", SLOW, ids=lambda path: path.name)
def test_a_slow_version_owes_nothing_to_the_fast_one(path):
    imported = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            imported |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            imported.add(node.module or "")
            assert node.level == 0
    assert not [name for name in imported if name.partition(".")[0] == "selfsent"]
    assert "import_module" not in path.read_text()
    assert "__import__" not in path.read_text()
