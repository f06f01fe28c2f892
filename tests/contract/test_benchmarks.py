"""The benchmarks of `make bench`, in small: they run, and write the figures that the page is made of."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.full
@pytest.mark.parametrize(
    ("arguments", "found"),
    [
        ("train.py --methods simcse --batch-sizes 8 --sentences 32", "comparisons"),
        ("encode.py --bases bundled-raw --sentences 48", "bases"),
        ("pairs.py --sentences 200", "ratio"),
    ],
)
def test_a_benchmark_runs(arguments, found, tmp_path):
    script, *options = arguments.split()
    command = [sys.executable, str(ROOT / "benchmarks" / script), *options, "--corpus", "python:stdlib"]
    command += ["--repetitions", "1", "--output", str(tmp_path / "out.json")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads((tmp_path / "out.json").read_text())[found]
