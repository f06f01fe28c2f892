"""The wheel, in a fresh environment without the repository and without a network; and what older versions wrote.

What was written by an older version is read by tests/test_upgrades.py, from files in tests/written/.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path
from typing import Any

from world import ROOT, World

KINDS = ("files of older versions", "the wheel without a network")


def cases(count: int, seed: int, exact: bool) -> list[dict[str, Any]]:
    """Both."""
    return [{"kind": kind} for kind in KINDS[:count]]


class Upgrade:
    """The part of the campaign.

    Args:
        world: a folder.
    """

    def __init__(self, world: World) -> None:
        self.world = world

    def run(self, case: dict[str, Any]) -> dict[str, Any]:
        """Do one of the two."""
        if case["kind"] == KINDS[0]:
            command = [sys.executable, "-m", "pytest", "-q", "-p", "no:xdist", str(ROOT / "tests" / "test_upgrades.py")]
            done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
            return {"said": done.stdout.strip().splitlines()[-1], "fault": done.stdout if done.returncode else None}
        folder = self.world.new("wheel")
        try:
            return self._wheel(folder)
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def _wheel(self, folder: Path) -> dict[str, Any]:
        source = folder / "source"
        shutil.copytree(ROOT, source, ignore=shutil.ignore_patterns(".git", ".cache", "runs", "docs", ".venv", "build"))
        build = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(folder), str(source)]
        subprocess.run(build, check=True)
        shutil.rmtree(source)
        (wheel,) = folder.glob("*.whl")
        venv.create(folder / "fresh", with_pip=False)
        # The packages that it needs are those of this environment: gigabytes that a campaign need not fetch again.
        (site,) = (folder / "fresh").glob("lib/python*/site-packages")
        mine = next(path for path in map(Path, sys.path) if (path / "torch").is_dir())
        (site / "borrowed.pth").write_text(f"{mine}\n")
        install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(site), str(wheel)]
        subprocess.run(install, check=True)
        python = str(folder / "fresh" / "bin" / "python")
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        environment |= {"SELFSENT_CACHE": str(folder / "cache"), "HOME": str(folder)}
        demo = ["-m", "selfsent", "train", "python:stdlib", "--budget", "20s", "--output", "demo"]
        alone = ["unshare", "-n"] if shutil.which("unshare") and os.geteuid() == 0 else []
        options: dict[str, Any] = {"cwd": folder, "env": environment, "capture_output": True, "text": True}
        where = subprocess.run([python, "-c", "import selfsent; print(selfsent.__file__)"], **options).stdout.strip()
        done = subprocess.run([*alone, python, *demo], **options)
        said = (done.stderr.strip().splitlines() or [""])[-1]
        fault = None if done.returncode == 0 else f"status {done.returncode}: {said}"
        if not where.startswith(str(folder)):
            fault = f"not the wheel was run, but {where}"
        told = {"wheel": wheel.name, "megabytes": wheel.stat().st_size >> 20, "network": "cut" if alone else "not cut"}
        return {**told, "fault": fault}
