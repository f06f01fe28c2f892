import json
import os
from dataclasses import dataclass
from pathlib import Path

import pytest

import tiny


@dataclass(frozen=True)
class Outcome:
    """What a command left behind."""

    status: int
    out: str
    err: str

    def ok(self):
        """Itself, of a command that succeeded."""
        assert self.status == 0, self.err
        return self

    @property
    def json(self):
        """The object that a command wrote to standard output, where it succeeded."""
        return json.loads(self.ok().out)

    @property
    def complaint(self):
        """The only line on standard error of a command that was refused."""
        line = self.late_complaint
        assert self.err == f"{line}\n"
        return line

    @property
    def late_complaint(self):
        """The last line on standard error of a command that was refused when the corpus had been read."""
        assert self.status == 2, (self.status, self.err)
        assert self.out == ""
        *notices, line = self.err.splitlines()
        assert line.startswith("selfsent")
        assert not any(word in " ".join(notices) for word in ("Traceback", "Error", "selfsent:"))
        return line


@pytest.fixture(scope="session", autouse=True)
def cache(tmp_path_factory):
    """Corpora and token tables of these tests."""
    before = os.environ.get("SELFSENT_CACHE")
    os.environ["SELFSENT_CACHE"] = str(tmp_path_factory.mktemp("cache"))
    yield Path(os.environ["SELFSENT_CACHE"])
    if before is None:
        del os.environ["SELFSENT_CACHE"]
    else:
        os.environ["SELFSENT_CACHE"] = before


@pytest.fixture
def selfsent(capfd):
    """Run a command in this process."""
    from selfsent.cli import main

    def run(*arguments):
        capfd.readouterr()
        with pytest.raises(SystemExit) as left:
            main([str(argument) for argument in arguments])
        return Outcome(left.value.code, *capfd.readouterr())

    return run


@pytest.fixture(scope="session")
def base(base_of):
    """A tiny BERT with its language-model head, spread out enough not to count as collapsed."""
    return base_of("bert", initializer_range=0.5)


@pytest.fixture(scope="session")
def sentences(tmp_path_factory):
    """A text file of 120 sentences without documents."""
    path = tmp_path_factory.mktemp("text") / "sentences.txt"
    path.write_text("\n".join(tiny.make_sentences(120)) + "\n")
    return path


@pytest.fixture(scope="session")
def documents(tmp_path_factory):
    """A text file of 250 documents of two sentences, of which a fifth can be held out twice."""
    path = tmp_path_factory.mktemp("text") / "documents.txt"
    lines = tiny.make_sentences(500, seed=1)
    path.write_text("".join(f"{a}\n{b}\n\n" for a, b in zip(lines[::2], lines[1::2], strict=True)))
    return path


@pytest.fixture
def train(selfsent, base, sentences, tmp_path):
    """Run `selfsent train` on the tiny base and the 120 sentences, a few steps, into tmp_path/run."""

    def run(*arguments, corpus=sentences, output=tmp_path / "run", steps=("--steps", 4)):
        common = ("--base", base, "--output", output, "--batch-size", 8, "--max-length", 32)
        return selfsent("train", corpus, *common, *steps, *arguments)

    return run


@pytest.fixture(scope="session")
def model(base, sentences, tmp_path_factory, cache):
    """A trained model's directory."""
    import selfsent

    output = tmp_path_factory.mktemp("runs") / "run"
    selfsent.train(sentences, "tsdae", base, output, steps=3, batch_size=8, max_length=32, pooling="mean")
    return output / "model"


@pytest.fixture(scope="session")
def german(tmp_path_factory):
    """A table of 60 German tickets."""
    path = tmp_path_factory.mktemp("german") / "tickets.csv"
    machines, troubles = (
        ("Drucker", "Rechner", "Bildschirm", "Server"),
        ("antwortet nicht", "ist zu laut", "ist kaputt"),
    )
    rows = [
        f"t{n},{machines[n % 4]} {troubles[n % 3]} {n},"
        f"Der {machines[n % 4]} in Zimmer {n} {troubles[n % 3]}. Seit gestern können wir damit nicht mehr arbeiten."
        for n in range(60)
    ]
    path.write_text("\n".join(["id,subject,body", *rows]) + "\n", encoding="utf-8")
    return path
