"""Translation by Apertium, which is skipped where Debian's packages are not installed."""

import shutil
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from selfsent.augment.registry import parse_augmenters
from selfsent.augment.translate import Translate
from selfsent.errors import AugmenterError, SettingsError
from selfsent_papers import apertium
from selfsent_papers.apertium import Apertium, mode_file

TEXTS = ["The cat sat on the mat.", "Two dogs are running through the snow", "I do not know [what] this <b>is</b> $5"]
MODES = Path("/usr/share/apertium/modes")
needs_apertium = pytest.mark.skipif(
    shutil.which("apertium-wblank-mode") is None or not (MODES / "eng-spa.mode").is_file(),
    reason="needs Debian's apertium-eng-spa",
)


@needs_apertium
def test_a_text_there_and_back_depends_on_itself_alone(tmp_path, selfsent):
    there, back = Apertium("eng", "spa"), Apertium("spa", "eng")
    spanish = there(TEXTS)
    assert spanish[1] == "Dos perros están corriendo a través de la nieve"
    assert spanish[2].endswith("[qué] este <b>es</b> $5")
    assert there(TEXTS[::-1])[::-1] == spanish == [there([text])[0] for text in TEXTS]
    assert there([]) == []
    assert there(["", "a\0b\nc"])[0] == ""
    (tmp_path / "texts.txt").write_text("\n".join(TEXTS) + "\n")
    given = ("--with", "translate:engine=apertium", "--output", tmp_path / "views.parquet")
    done = selfsent("augment", tmp_path / "texts.txt", *given)
    assert done.status == 0, done.err
    rows = pq.read_table(tmp_path / "views.parquet").to_pylist()
    assert [row["view2"] for row in rows] == back(spanish)
    assert {row["maker2"] for row in rows} == {"translate:engine=apertium:pivot=spa"}


@needs_apertium
def test_programs_that_fail_or_answer_too_often(monkeypatch):
    with monkeypatch.context() as patched:
        patched.setattr(apertium, "_FORGETFUL", r"while IFS= read -r -d '' text; do printf 'a\\0b\\0'; done")
        with pytest.raises(AugmenterError, match="apertium eng-spa gave more or fewer answers than there were texts"):
            Apertium("eng", "spa")(TEXTS)
    with monkeypatch.context() as patched:
        patched.setattr(apertium, "_FORGETFUL", r"false; exit 3; done")
        with pytest.raises(AugmenterError, match="apertium eng-spa"):
            Apertium("eng", "spa")(TEXTS)


def test_what_is_not_installed(monkeypatch, tmp_path):
    monkeypatch.setenv("APERTIUM_DATADIR", str(tmp_path))
    with pytest.raises(SettingsError, match="apertium is not installed: on Debian"):
        mode_file("eng", "spa")
    monkeypatch.setattr(shutil, "which", lambda name: name)
    (tmp_path / "modes").mkdir()
    (tmp_path / "modes" / "eng-cat.mode").touch()
    with pytest.raises(SettingsError, match="apertium does not translate eng-spa; installed are eng-cat"):
        mode_file("eng", "spa")


def test_options_that_do_not_go_together():
    with pytest.raises(SettingsError, match="there is no engine 'google' for translate; there are marian, apertium"):
        Translate(engine="google")
    with pytest.raises(SettingsError, match="name models of marian: leave them out"):
        Translate(engine="apertium", there="x")
    assert parse_augmenters("translate:engine=apertium:pivot=cat")
