"""Installing by `make`."""

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")
def test_the_demo_installs_the_extras_that_the_readme_shows(tmp_path):
    told = subprocess.run(
        ["make", "--dry-run", "demo", f"VENV={tmp_path / 'venv'}"], cwd=ROOT, capture_output=True, text=True, check=True
    )

    assert ".[clean,serve,index]" in (ROOT / "README.md").read_text(encoding="utf-8")
    assert "-e '.[clean,serve,index]'" in told.stdout
