"""Run the test suite with the lowest versions that pyproject.toml allows, and with the newest there are.

    python tests/compat.py                       # both
    python tests/compat.py lowest -- tests/methods tests/models
    python3.13 tests/compat.py newest --torch 2.13.0

Each gets a virtual environment of its own under .compat, of the Python that runs this script. Of torch both get the
version beside this script, unless --torch names another: an index offers builds for GPUs, which are gigabytes. What
follows `--` goes to pytest.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import venv
from importlib import metadata
from pathlib import Path

ROOT = Path(__file__).parents[1]
SHOWN = ("accelerate", "datasets", "numpy", "sentence-transformers", "tokenizers", "torch", "transformers")


def run(which: str, torch: str, options: list[str]) -> int:
    """Make the environment, say what is in it, and test; returns pytest's status."""
    place = ROOT / ".compat" / f"{which}-{sys.version_info.major}.{sys.version_info.minor}"
    if not (place / "bin" / "python").exists():
        venv.create(place, with_pip=True)
    python, pins = str(place / "bin" / "python"), place / "constraints.txt"
    pins.write_text(f"torch=={torch}\n")
    resolution = {"lowest": "lowest-direct", "newest": "highest"}[which]
    links = os.environ.get("PIP_FIND_LINKS")  # uv does not read pip's settings
    uv = [python, "-m", "uv", "pip", "install", "--python", python, "--upgrade", "--resolution", resolution]
    subprocess.run([python, "-m", "pip", "install", "--quiet", "uv"], check=True)
    packages = ["-e", f"{ROOT}[test]", "-e", f"{ROOT}/packages/papers[words]"]
    subprocess.run([*uv, *(["--find-links", links] if links else []), "-c", str(pins), *packages], check=True)
    tell = "import sys, importlib.metadata as m; print(*(f'{n} {m.version(n)}' for n in sys.argv[1:]), sep=', ')"
    print(f"{which}:", flush=True)
    subprocess.run([python, "-c", tell, *SHOWN], check=True)
    return subprocess.run([python, "-m", "pytest", "-n", "2", "--dist=loadfile", *options], cwd=ROOT).returncode


def installed_torch() -> str | None:
    """The version beside this script, if there is one."""
    try:
        return metadata.version("torch")
    except metadata.PackageNotFoundError:
        return None


def main() -> None:
    """Run one or both."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("which", nargs="*", metavar="lowest|newest")
    parser.add_argument("--torch", metavar="VERSION", default=installed_torch())
    arguments = sys.argv[1:]
    cut = arguments.index("--") if "--" in arguments else len(arguments)
    options = parser.parse_args(arguments[:cut])
    if odd := set(options.which) - {"lowest", "newest"}:
        parser.error(f"{odd.pop()} is neither lowest nor newest")
    if options.torch is None:
        parser.error("this Python has no torch: say which version to take with --torch")
    failed = [
        which for which in options.which or ("lowest", "newest") if run(which, options.torch, arguments[cut + 1 :])
    ]
    sys.exit(f"failed with the {' and the '.join(failed)} versions" if failed else 0)


if __name__ == "__main__":
    main()
