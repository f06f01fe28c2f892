import random
import select
import shutil
import stat
import sys
from contextlib import closing
from pathlib import Path

import pytest

from selfsent.augment import apertium as apertium_module, processes
from selfsent.augment.apertium import _marked, _plain, mode_file
from selfsent.augment.processes import Program
from selfsent.augment.translate import Translate
from selfsent.errors import MakerError, SettingsError

TEXTS = ["One line.", "Çok güzel, değil mi?", "سطر ثالث", "tab\tand  spaces", "x" * 70_000]
MODES = Path("/usr/share/apertium/modes")
needs_apertium = pytest.mark.skipif(
    not (MODES / "eng-spa.mode").exists() or not (MODES / "eng-cat.mode").exists(),
    reason="needs Debian's apertium-eng-spa and apertium-eng-cat",
)


def answers(code, texts=TEXTS, patience=20, last=True):
    with closing(Program("it", [sys.executable, "-uc", code], b"\n", patience)) as program:
        return program.answers(texts, last)


def test_programs_that_answer():
    assert answers("import sys\nfor line in sys.stdin: print(line.upper(), end='')") == [text.upper() for text in TEXTS]
    assert answers("import sys\nlines = list(sys.stdin)\nfor line in lines: print(line, end='')") == TEXTS
    kept = "import sys\nfor line in sys.stdin: sys.stdout.write(line); sys.stdout.flush()"
    with closing(Program("it", [sys.executable, "-c", kept], b"\n", 20)) as program:
        assert [program.answers(TEXTS), program.answers(TEXTS[:2]), program.answers([])] == [TEXTS, TEXTS[:2], []]


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("import sys; print(sys.stdin.readline())", r"it gave 2 answers to 5 texts$"),
        ("import sys\nfor line in sys.stdin: print(line)", "it gave more answers than there were texts"),
        ("while True: print('y')", "it gave more answers than there were texts"),
        ("while True: print('y', end='')", "it gave an answer of more than 1 MB"),
        ("pass", "it gave 0 answers to 5 texts"),
        ("import sys; sys.exit('no such language')", "gave 0 answers to 5 texts; it says: no such language"),
        ("import sys; sys.stdout.buffer.write(b'\\xff\\n' * 5)", "an answer that is not UTF-8"),
        ("import time; time.sleep(60)", "it has not answered for 1 seconds"),
        ("import sys, time\nfor line in sys.stdin: pass\ntime.sleep(60)", "it has not answered for 1 seconds"),
    ],
)
def test_programs_that_do_not(code, said, monkeypatch):
    monkeypatch.setattr(processes, "_LONGEST_ANSWER", 1 << 20)
    with pytest.raises(MakerError, match=said):
        answers(code, patience=1 if "sleep" in code else 20)
    with pytest.raises(MakerError, match="it cannot be started: No such file"):
        Program("it", ["no-such-program"], b"\n", 1)


@pytest.mark.skipif(shutil.which("yes") is None, reason="needs yes")
@pytest.mark.parametrize("last", [False, True])
def test_a_program_that_answers_without_end(last):
    with (
        closing(Program("yes", ["yes"], b"\n", 20)) as program,
        pytest.raises(MakerError, match="yes gave more answers than there were texts"),
    ):
        program.answers(TEXTS, last)


def test_an_answer_too_many_that_comes_late():
    late = "import sys, time\nfor line in sys.stdin: print(line, end=''); time.sleep(0.2); print('more')"
    with closing(Program("it", [sys.executable, "-uc", late], b"\n", 20)) as program:
        assert program.answers(["a"]) == ["a"]
        select.select([program._out], [], [], 20)
        with pytest.raises(MakerError, match="it gave more answers than there were texts"):
            program.answers(["b"])


def script(path, code):
    path.write_text(f"#!{sys.executable}\nimport sys\n{code}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


def test_the_engine_command(tmp_path, views):
    there = script(tmp_path / "there", "for line in sys.stdin: print(' '.join(reversed(line.split())))")
    back = script(tmp_path / "back", "for line in sys.stdin: print(line.strip().lower())")
    maker = Translate(engine="command", there=there, back=back)
    assert views(maker, ["One Two Three", "İki"], size=1) == ["three two one", "İki".lower()]
    short = script(tmp_path / "short", "print(1); print(2)")
    with pytest.raises(MakerError, match=f"{short} --loud gave 2 answers"):
        views(Translate(engine="command", there=f"{short} --loud", back=back), ["a", "b", "c"])
    with pytest.raises(SettingsError, match="there is no program no-such-program"):
        views(Translate(engine="command", there="no-such-program -x", back=back), ["a"])
    assert maker.identity() != Translate(engine="command", there=there, back=there).identity()


def test_what_a_command_reads_decides_its_views(tmp_path):
    model = tmp_path / "model"
    model.write_text("one")
    before, other = (Translate(engine="command", there=f"cat {model}", back=back).identity() for back in ("cat", "rev"))
    assert before != other
    assert before == Translate(engine="command", there=f"cat {model}", back="cat").identity()
    model.write_text("another")
    assert before != Translate(engine="command", there=f"cat {model}", back="cat").identity()


@pytest.mark.parametrize(("there", "said"), [("sed 's/a", "no closing quotation"), (" ", "it is empty")])
def test_what_is_no_command(there, said):
    with pytest.raises(SettingsError, match=f"is no command: {said}"):
        Translate(engine="command", there=there, back="cat")


def test_the_stream_format():
    text = "[a] {b} ^c$ d/e \\ @home <f>"
    assert _marked(text) == "\\[a\\] \\{b\\} \\^c\\$ d\\/e \\\\ \\@home \\<f\\>.[]"
    assert _plain(_marked(text), text) == text
    assert _plain("*Unknown words @are #not marked * here.[]", "no stop") == "Unknown words are not marked * here"
    assert _plain("It ends.[]", "It ends.") == "It ends."
    assert _plain("[[t:b:x]]bold[[/]] a#b[]", "x!") == "bold a#b"


def test_apertium_that_is_not_there(monkeypatch, tmp_path):
    monkeypatch.setenv("APERTIUM_DATADIR", str(tmp_path))
    with pytest.raises(SettingsError, match="apertium is not installed: on Debian"):
        Translate().identity()
    (tmp_path / "modes").mkdir()
    (tmp_path / "modes" / "nob-nno.mode").touch()
    monkeypatch.setattr(shutil, "which", lambda program: program)
    with pytest.raises(SettingsError, match="does not translate eng-spa; installed are nob-nno"):
        mode_file("eng", "spa")


@needs_apertium
def test_apertium_there_and_back(views):
    texts = [
        "The old dog sleeps in the house.",
        "We bought *two* apples and a xyzzyplugh",
        "She reads the early Greek letters / and [brackets].",
        "Where is my book?",
    ]
    one = views(Translate(pipelines=1, pivot="cat"), texts)
    assert "dog" in one[0]
    assert "xyzzyplugh" in one[1]
    assert "#xyzzyplugh" not in one[1]
    assert not one[1].endswith(".")
    assert "[" in one[2]
    assert one[3].endswith("?")
    order = random.Random(0).sample(range(4), 4)
    mixed = views(Translate(pipelines=3, pivot="cat"), [texts[number] for number in order])
    assert mixed == [one[number] for number in order]
    assert views(Translate(), texts[:2]) != one[:2]


@needs_apertium
def test_apertium_that_answers_twice(monkeypatch):
    monkeypatch.setattr(apertium_module, "_FORGETFUL", r"while IFS= read -r -d '' text; do printf 'a\\0b\\0'; done")
    with (
        apertium_module.apertium("eng", "spa", 1, 20) as translate,
        pytest.raises(MakerError, match="apertium eng-spa gave more answers than there were texts"),
    ):
        translate(["One."])
