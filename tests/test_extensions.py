"""Commands, methods and recipes of another package, found by its entry points; and none of it where there is none."""

import importlib.metadata
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import selfsent.methods
from selfsent import extensions
from selfsent.augment.translate import Translate
from selfsent.cli.main import COMMANDS, groups
from selfsent.errors import SettingsError
from selfsent.methods import METHODS, OWN, get_method, whose_option

MODULE = """
from dataclasses import dataclass
from pathlib import Path

from selfsent.cli.options import Command
from selfsent.methods import MLM
from selfsent.settings import setting

RECIPES = Path(__file__).parent / "folder"


@dataclass(kw_only=True)
class Greet(Command):
    \"\"\"Greet who is named. No more.\"\"\"

    name: str = setting("you", "who", positional=True, nargs="?")

    def run(self):
        print("hello", self.name)


@dataclass(frozen=True)
class Mine(MLM):
    \"\"\"A method from elsewhere.

    the loss of mlm

    Nobody, 2026.
    \"\"\"

    strangeness: float = setting(0.5, "how strange", minimum=0.0)


Mine.method = MLM.method.but(name="mine", options=Mine)
"""
POINTS = """
[selfsent.commands]
greet = other_package:Greet
train = other_package:Greet

[selfsent.methods]
mine = other_package:Mine
tsdae = other_package:Mine
broken = other_package:Missing

[selfsent.recipes]
other = other_package:RECIPES
"""


@pytest.fixture
def package(tmp_path, monkeypatch):
    """An installed package with a command, methods and a folder of recipes, one of which cannot be loaded."""
    (tmp_path / "other_package.py").write_text(MODULE)
    about = tmp_path / "other_package-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: other-package\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(POINTS)
    monkeypatch.syspath_prepend(str(tmp_path))
    extensions.announced.cache_clear()
    yield tmp_path
    extensions.announced.cache_clear()
    sys.modules.pop("other_package", None)


def test_its_methods_come_after_ours_and_take_the_place_of_none(package):
    assert list(METHODS)[: len(OWN)] == list(OWN)
    assert {"mine", "broken"} <= {*METHODS}
    assert len(METHODS) == len({*METHODS})
    assert METHODS["tsdae"] is selfsent.methods.TSDAE.method
    assert get_method("mine").options.__name__ == "Mine"
    assert "no-such" not in METHODS
    with pytest.raises(SettingsError, match=r"broken of the package other-package cannot be loaded: .*Missing"):
        get_method("broken")


def test_its_options_are_known(package):
    points = extensions.announced("methods")
    del points["broken"]
    assert "mine" in whose_option("strangeness")


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (("--help",), "greet       Greet who is named"),
        (("greet", "you"), "hello you"),
        (("train", "--method", "mine", "--help"), "--strangeness"),
        (("train", "only", "--output", "run", "--variant", "none"), "this recipe has none"),
    ],
)
def test_its_commands_methods_and_recipes_run_from_the_command_line(command, said, package):
    (package / "folder").mkdir()
    recipe = "stages: {one: {corpus: sentences.txt, method: mine, strangeness: 0.25}}"
    (package / "folder" / "only.yaml").write_text(recipe)
    place = Path(extensions.__file__).parents[1]
    paths = os.pathsep.join((str(package), str(place)))
    run = [sys.executable, "-m", "selfsent", *command]
    done = subprocess.run(run, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": paths}, cwd=package)
    assert said in done.stdout + done.stderr


def test_its_commands_do_not_replace_ours(package):
    assert groups()["Of other packages"].count("greet") == 1
    assert "train" not in groups()["Of other packages"]


@pytest.fixture
def alone(monkeypatch):
    """No package but this one."""
    monkeypatch.setattr(importlib.metadata, "entry_points", lambda group: ())
    extensions.announced.cache_clear()
    yield
    extensions.announced.cache_clear()


def test_without_another_package_there_are_our_methods_and_commands(alone):
    assert list(METHODS) == list(OWN)
    assert [name for names in groups().values() for name in names] == list(COMMANDS)
    assert extensions.published("rows") is None
    with pytest.raises(SettingsError, match="; the baselines of papers come with the package selfsent-papers"):
        get_method("skip-thoughts")


def test_what_the_papers_package_has_names_it(alone, monkeypatch, capsys, tmp_path):
    from selfsent.cli import main

    monkeypatch.chdir(tmp_path)
    for command in (("recipes",), ("evaluate", "bundled", "--suite", "sts", "--published")):
        with pytest.raises(SystemExit) as left:
            main(command)
        assert left.value.code == 2
        assert "the package selfsent-papers (docs/papers.md)" in capsys.readouterr().err


def test_nothing_of_it_is_imported_before_it_is_used(package):
    code = "import sys, selfsent; from selfsent.methods import METHODS; assert 'mine' in METHODS;"
    code += "import json; print(json.dumps(sorted(m for m in sys.modules if m.startswith('other_package'))))"
    paths = os.pathsep.join((str(package), str(Path(extensions.__file__).parents[1])))
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env={**os.environ, "PYTHONPATH": paths}
    )
    assert json.loads(done.stdout) == [], done.stderr


def test_the_offline_translator_names_its_package(alone):
    with pytest.raises(SettingsError, match=r"there are marian; apertium comes with the package selfsent-papers"):
        Translate(engine="apertium")
