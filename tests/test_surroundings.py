"""The suite is the same wherever it runs, and what the README installs is what its commands need."""

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from selfsent import errors

ROOT = Path(__file__).parents[1]
ELSEWHERE = {
    **{"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "HF_HOME": "/nowhere", "HF_TOKEN": "x", "HF_ENDPOINT": "x"},
    **{"COLUMNS": "43", "NO_COLOR": "1", "FORCE_COLOR": "1", "TERM": "dumb", "TZ": "Asia/Kathmandu", "LC_ALL": "C"},
    **{"SELFSENT_CACHE": "/nowhere", "SELFSENT_TOKEN": "a token", "https_proxy": "http://127.0.0.1:9", "RANK": "1"},
}
"""Settings of machines, each of which made tests fail."""


@pytest.mark.parametrize("name", ELSEWHERE)
def test_tests_set_their_own_environment(name):
    code = f"import conftest, os, sys; sys.exit(os.environ.get({name!r}) == {ELSEWHERE[name]!r})"
    paths = os.pathsep.join(map(str, (ROOT, ROOT / "tests")))
    shown = {**os.environ, "PYTHONPATH": paths, name: ELSEWHERE[name]}
    assert subprocess.run([sys.executable, "-c", code], env=shown).returncode == 0


@pytest.mark.full
@pytest.mark.parametrize("file", ["report/test_publish.py", "test_display.py", "cli/test_console.py"])
def test_tests_pass_elsewhere(file):
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(ROOT / "tests" / file)]
    done = subprocess.run(command, env={**os.environ, **ELSEWHERE}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def extras_of(line):
    return set(re.search(r'-c constraints\.txt -?e? ?["\'.]*\[([\w,]+)\]', line)[1].split(","))


def test_what_is_installed_has_what_the_commands_of_the_readme_need():
    readme = (ROOT / "README.md").read_text()
    assert "selfsent serve" in readme
    assert "--clean html" in readme
    [line] = [line for line in readme.splitlines() if "pip install" in line]
    assert extras_of(line) == {"clean", "serve", "index"}
    image = (ROOT / "Dockerfile").read_text()
    assert extras_of(image.replace("constraints.txt .", "constraints.txt -e .")) == {"clean", "serve", "index"}


def test_messages_install_as_the_readme_does():
    """selfsent is on no index, so that `pip install selfsent` would bring nothing, or something else."""
    known = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert errors.install("clean").endswith('python -m pip install -c constraints.txt -e ".[clean]"')
    named = set()
    for path in [*ROOT.glob("src/selfsent/**/*.py"), *ROOT.glob("src/selfsent/**/*.md"), *ROOT.glob("docs/*.md")]:
        text = path.read_text()
        assert not re.search(r"pip install ['\"`]?selfsent", text), path
        named |= set(re.findall(r"install\(['\"](\w+)['\"]\)", text))
    assert {"hub", "index", "onnx", "lora", "serve", "clean", "remote"} <= named <= known.keys()
