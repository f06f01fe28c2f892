"""What happens before a command begins: nothing heavy, and how threads and memory are set."""

import os
import subprocess
import sys

import pytest

COMMANDS = ([], ["train"], ["compare"], ["evaluate"], ["encode"], ["search"], ["methods"])


def test_help_needs_nothing_heavy():
    code = f"""
import sys
from selfsent.cli import main
for command in {COMMANDS!r}:
    try:
        main([*command, "--help"])
    except SystemExit as left:
        assert left.code == 0
heavy = {{"torch", "transformers", "numpy", "pyarrow", "sklearn", "rich", "tokenizers"}} & sys.modules.keys()
assert not heavy, heavy
"""
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert shown.returncode == 0, shown.stderr
    for said in ("usage: selfsent train", "--help-all", "--documents", "--top", "usage: selfsent methods"):
        assert said in shown.stdout


@pytest.mark.parametrize(
    ("load", "busy"),
    [("0.50 0.20 0.10 1/300 77", False), ("0.00 0.00 0.00 2/300 77", True), ("odd", False), (None, False)],
)
def test_a_machine_is_busy_when_something_else_runs(load, busy, tmp_path):
    from selfsent.cli.main import is_busy

    if load is not None:
        (tmp_path / "loadavg").write_text(load)
    assert is_busy(tmp_path / "loadavg") == busy


@pytest.mark.parametrize("busy", [True, False])
def test_threads_wait_for_each_other_without_much_spinning_unless_the_user_says_how(monkeypatch, busy):
    from selfsent.cli.main import set_environment

    monkeypatch.setattr(sys.modules["selfsent.cli.main"], "is_busy", lambda: busy)
    for given in ({}, {"OMP_WAIT_POLICY": "active"}, {"GOMP_SPINCOUNT": "5"}):
        for name in ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT"):
            monkeypatch.delenv(name, raising=False)
        for name, value in given.items():
            monkeypatch.setenv(name, value)
        set_environment()
        found = {name: os.environ[name] for name in ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT") if name in os.environ}
        assert found == (given or {"GOMP_SPINCOUNT": "0" if busy else "10000"})
