"""Commands with a table import neither torch nor what is built on it, nor other packages that take long to import."""

import json
import subprocess
import sys

import numpy as np
import pytest
from sentence_transformers import SentenceTransformer

import tiny
from selfsent.models.encoding import encode
from selfsent.models.opening import open_encoder

HEAVY = {"torch", "transformers", "sentence_transformers", "accelerate"}
"""What no command with a table imports."""
SELDOM = {"sklearn", "scipy", "pandas", "datasets", "httpx", "requests", "huggingface_hub", "py3langid"}
"""What few of them need."""
ALLOWED = {
    "cluster": {"sklearn", "scipy", "pandas"},
    "exam": {"scipy"},
    "evaluate": {"scipy"},
    "adapt": {"scipy"},
}
ALLOWED |= {"pairs": {"scipy"}, "dedup": {"scipy"}}

RUN = """
import sys
sys.argv = sys.argv[:1] + sys.argv[2:]
try:
    from selfsent.cli import main
    main()
except SystemExit as end:
    status = end.code
slow = {"pyarrow.compute", "urllib.request", "numpy.ma", "torch._dynamo"} & set(sys.modules)
names = {name.partition(".")[0] for name in sys.modules} | slow
open(%r, "w").write(__import__("json").dumps({"status": status, "names": sorted(names)}))
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("light")
    rows = [" ".join(f"{each}." for each in tiny.make_sentences(4, seed=seed)) for seed in range(40)]
    lines = (f"{row},{' '.join(text.split()[:3])},{text}" for row, text in enumerate(rows))
    (folder / "texts.csv").write_text("\n".join(["id,title,text", *lines]))
    return folder


def imported(folder, *arguments):
    """The packages that a command imports."""
    told = folder / "told.json"
    done = subprocess.run(
        [sys.executable, "-c", RUN % str(told), "-", *arguments], cwd=folder, capture_output=True, text=True
    )
    about = json.loads(told.read_text())
    assert about["status"] == 0, done.stderr
    return set(about["names"])


COMMANDS = {
    "help": ["--help"],
    "search --help": ["search", "--help"],
    "cache": ["cache"],
    "clean": ["clean", "texts.csv", "--output", "clean.csv"],
    "dedup": ["dedup", "texts.csv", "--level", "meaning", "--output", "unique.csv", "--overwrite"],
    "encode": ["encode", "bundled", "texts.csv", "--output", "vectors.npy"],
    "search": ["search", "bundled", "texts.csv", "bidi gafo"],
    "index": ["index", "bundled", "texts.csv", "--id-column", "id", "--output", "index", "--overwrite"],
    "search --index": ["search", "--index", "index", "bidi gafo"],
    "pairs": ["pairs", "bundled", "texts.csv"],
    "cluster": ["cluster", "bundled", "texts.csv"],
    "exam": [
        *("exam", "texts.csv", "--title-column", "title", "--models", "bundled,bm25"),
        *("--output", "exam", "--overwrite"),
    ],
    "evaluate": ["evaluate", "bundled", "--retrieval", "exam"],
    "adapt": ["adapt", "exam", "--model", "bundled", "--output", "adapter.safetensors"],
}


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_with_a_table(folder, command):
    if command == "search --index" and not (folder / "index").exists():
        imported(folder, *COMMANDS["index"])
    if command in ("evaluate", "adapt") and not (folder / "exam").exists():
        imported(folder, *COMMANDS["exam"])
    found = imported(folder, *COMMANDS[command])
    assert not found & HEAVY
    assert not found & SELDOM - ALLOWED.get(command, set())
    if command in ("help", "search --help", "cache"):
        assert not found & {"numpy", "pyarrow", "rich"} - ({"rich"} if command == "cache" else set())


@pytest.mark.parametrize("command", ["search", "search --index"])
def test_a_search_imports_no_part_of_a_package_that_takes_longer_than_it(folder, command):
    if command == "search --index" and not (folder / "index").exists():
        imported(folder, *COMMANDS["index"])
    assert not imported(folder, *COMMANDS[command]) & {"pyarrow.compute", "urllib.request", "numpy.ma"}


def test_a_service_of_an_index(folder):
    if not (folder / "index").exists():
        imported(folder, *COMMANDS["index"])
    code = (
        "import sys; from selfsent.index import Index; from selfsent.models.opening import open_encoder\n"
        "from selfsent.serving.app import application; from selfsent.serving.engine import Engine\n"
        "from selfsent.serving.limits import Limits; from selfsent.serving.server import server_of\n"
        "from selfsent.serving.requests import SearchRequest\n"
        "engine = Engine(Index('index'), open_encoder('bundled')); application(engine, Limits())\n"
        "[(hits, _)] = engine.work([SearchRequest('bidi gafo')]); assert len(hits) == 10, hits\n"
        "print(*{name.partition('.')[0] for name in sys.modules})"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, check=True)
    assert not set(done.stdout.split()) & (HEAVY | SELDOM | {"fasttext", "pyarrow"})


@pytest.mark.parametrize("scored", [True, False])
def test_a_training_of_a_table_imports_torch_alone(folder, scored):
    """Not what is built on torch either, nor torch's compiler, which is made of sympy and takes longer than torch."""
    given = ["texts.csv", "--document-column", "id", "--split-sentences"] if scored else ["lines.txt"]
    (folder / "lines.txt").write_text("\n".join(tiny.make_sentences(60, seed=9)))
    found = imported(folder, "train", *given, "--base", "bundled", "--steps", "3", "--output", "run", "--overwrite")
    assert "torch" in found
    assert not found & ((HEAVY | SELDOM) - {"torch"} - ({"scipy"} if scored else set()))
    assert not found & {"sympy", "torch._dynamo"}
    model, texts = folder / "run" / "model", ["bidi gafo", "", "lumo tike bidi", "xyz ☃"]
    theirs = SentenceTransformer(str(model), device="cpu").encode(texts)
    assert theirs == pytest.approx(encode(open_encoder(str(model)), texts), abs=1e-6)
    assert np.linalg.norm(theirs - encode(open_encoder("bundled"), texts), axis=1).max() > 0.01, "it was trained"


def test_what_needs_torch_gets_it(folder):
    assert "torch" in imported(folder, "search", "bundled-encoder", "texts.csv", "bidi gafo")
