"""Build the wheels and the sdists, check them, and use each in an empty environment without a network.

    python tests/package.py                   # into a temporary folder
    python tests/package.py --output dist     # and keep them

Libraries are those of the Python that runs this script, so nothing is downloaded; selfsent is the built one alone. The
core is used first, then with the papers' package beside it.
Where the system lets nobody cut the network (`unshare`), addresses lead nowhere instead, and the script says so.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAPERS = ROOT / "packages" / "papers"
WHEEL = ("selfsent/py.typed", "selfsent/models/bundled/static/README.md", "licenses/LICENSE", "entry_points.txt")
SDIST = ("pyproject.toml", "README.md", "LICENSE", "src/selfsent/py.typed")
TABLE, NUMBERS = "selfsent_papers/tables/tsdae_unsupervised.yaml", "selfsent_papers/published_results.json"
HOLD = {
    ROOT: (WHEEL, SDIST),
    PAPERS: (
        (TABLE, NUMBERS, "licenses/LICENSE", "entry_points.txt"),
        ("pyproject.toml", "README.md", "LICENSE", f"src/{TABLE}", f"src/{NUMBERS}"),
    ),
}
"""What must be in the wheel and the sdist of each."""
USED = """
import sys, selfsent
assert "site-packages" in selfsent.__file__ and not selfsent.__file__.startswith(sys.argv[1]), selfsent.__file__
rows = [{"body": f"Ticket {n}. The printer on floor {n} is dead."} for n in range(40)]
corpus = selfsent.read_corpus(rows, text_column="body", split_sentences=True)
run = selfsent.train(corpus, "whitening", output="run", hold_out=0, quiet=True)
[[hit]] = selfsent.search(run, corpus, ["printer on floor 7"], top=1)
assert hit.row == 7, hit
print("selfsent", selfsent.__version__, "found", rows[hit.row])
"""

USED_PAPERS = """
from selfsent.extensions import published
print(len(published("rows")("sts").rows), "published rows of the suite sts")
"""


def without_network() -> list[str]:
    """What to put in front of a command; empty where the system refuses."""
    cut = ["unshare", "--net", "--map-root-user"]
    works = shutil.which("unshare") and subprocess.run([*cut, "true"], capture_output=True).returncode == 0
    return cut if works else []


def build(project: Path, folder: Path) -> tuple[Path, Path]:
    """The wheel and the sdist of a project."""
    subprocess.run([sys.executable, "-m", "build", "--no-isolation", "--outdir", folder, project], check=True)
    subprocess.run([sys.executable, "-m", "twine", "check", "--strict", *folder.iterdir()], check=True)
    [wheel], [sdist] = folder.glob("*.whl"), folder.glob("*.tar.gz")
    with zipfile.ZipFile(wheel) as archive:
        held = archive.namelist()
    with tarfile.open(sdist) as archive:
        source = archive.getnames()
    for names, wanted in zip((held, source), HOLD[project], strict=True):
        for each in wanted:
            if not any(name.endswith(each) for name in names):
                sys.exit(f"{each} is missing")
    return wheel, sdist


def use(archive: Path, papers: Path, folder: Path) -> None:
    """Install both archives into an empty environment, the core first, and use it from the command line and Python."""
    venv.create(folder / "venv", with_pip=True)
    python, home = folder / "venv" / "bin" / "python", folder / "home"
    home.mkdir()
    libraries = Path(next(path for path in sys.path if path.endswith("site-packages")))
    [own] = (folder / "venv" / "lib").glob("*/site-packages")
    # Python 3.11 puts its own, old one there.
    subprocess.run([python, "-m", "pip", "uninstall", "--quiet", "--yes", "setuptools"], check=True)
    (own / "libraries.pth").write_text(f"{libraries}\n")
    cut = without_network()
    dead = dict.fromkeys(("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"), "http://127.0.0.1:9")
    kept = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "SELFSENT_CACHE")}
    environment = {**kept, "HOME": str(home), **({} if cut else dead)}
    print(f"{archive.name}: {'the network is cut' if cut else 'addresses lead nowhere'}", flush=True)

    def run(*command: object) -> None:
        subprocess.run([*cut, *map(str, command)], check=True, cwd=home, env=environment)

    install = (python, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--no-build-isolation")
    command = folder / "venv" / "bin" / "selfsent"
    run(*install, archive)
    (home / "tickets.txt").write_text("".join(f"The printer on floor {n} is dead.\n" for n in range(50)))
    run(command, "search", "bundled", "tickets.txt", "printer on floor 7", "--top", "1")
    run(python, "-c", USED, ROOT)
    run(*install, papers)
    run(command, "recipes", "tsdae_unsupervised")
    run(python, "-c", USED_PAPERS)


def main() -> None:
    """Build, check and use both."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--output", type=Path)
    output = parser.parse_args().output
    with tempfile.TemporaryDirectory() as temporary:
        core, papers = build(ROOT, Path(temporary) / "core"), build(PAPERS, Path(temporary) / "papers")
        for archive, other in zip(core, papers, strict=True):
            (place := Path(temporary) / archive.suffix).mkdir()
            use(archive, other, place)
        for archive in (*core, *papers) if output is not None else ():
            output.mkdir(parents=True, exist_ok=True)
            shutil.copy(archive, output)


if __name__ == "__main__":
    main()
