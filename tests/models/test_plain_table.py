"""The table that ships is read without sentence-transformers, and is what that library would have made of it."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.modules import Dense
from sentence_transformers.sentence_transformer.modules import Normalize, StaticEmbedding

import tiny
from selfsent.models.encoding import encode
from selfsent.models.fingerprint import fingerprint
from selfsent.models.loading import load_encoder
from selfsent.models.static import PlainTable, StaticEncoder

TEXTS = [*tiny.make_sentences(20, seed=4), "", "bidi gafo"]


@pytest.fixture(params=[False, True], ids=["as it is", "normalised"])
def table(base_of, tmp_path, request):
    whole = SentenceTransformer(str(base_of("static")), device="cpu")
    if request.param:
        whole.append(Normalize())
        whole.similarity_fn_name = "dot"
    whole.save(str(tmp_path / "table"), create_model_card=False)
    return tmp_path / "table"


def files(directory: Path) -> dict[str, bytes]:
    return {str(path.relative_to(directory)): path.read_bytes() for path in directory.rglob("*") if path.is_file()}


def test_vectors_fingerprint_and_files_are_those_of_sentence_transformers(table, tmp_path):
    model = load_encoder(table)
    assert isinstance(model.sentence_transformer, PlainTable)
    ordinary = SentenceTransformer(str(table), device="cpu")
    assert encode(model, TEXTS) == pytest.approx(ordinary.encode(TEXTS), abs=1e-6)
    assert fingerprint(model) == fingerprint(StaticEncoder(ordinary))
    assert model.embedding_size == ordinary.get_embedding_dimension()
    model.save(tmp_path / "saved")
    ordinary.save(str(tmp_path / "ordinary"), create_model_card=False)
    assert files(tmp_path / "saved") == files(tmp_path / "ordinary")


def test_what_is_appended_is_saved_with_it(table, tmp_path):
    model = load_encoder(table)
    width = model.embedding_size
    model.sentence_transformer.append(Dense(width, 3))
    model.save(tmp_path / "saved")
    assert model.embedding_size == 3
    ordinary = SentenceTransformer(str(tmp_path / "saved"), device="cpu")
    assert ordinary.encode(TEXTS) == pytest.approx(encode(model, TEXTS), abs=1e-6)


@pytest.mark.parametrize(
    "about",
    [
        {"prompts": {"query": "find: "}, "default_prompt_name": "query"},
        {"prompts": {"query": "find: "}},
        {"truncate_dim": 8},
    ],
)
def test_whatever_else_is_configured_is_left_to_sentence_transformers(base_of, tmp_path, about):
    shutil.copytree(base_of("static"), tmp_path / "table")
    config = tmp_path / "table" / "config_sentence_transformers.json"
    config.write_text(json.dumps({**json.loads(config.read_text()), **about}))
    assert PlainTable.read(tmp_path / "table") is None
    ordinary = SentenceTransformer(str(tmp_path / "table"), device="cpu")
    assert encode(load_encoder(tmp_path / "table"), TEXTS) == pytest.approx(ordinary.encode(TEXTS), abs=1e-6)


def test_vectors_that_are_cut_short_stay_so(base_of, tmp_path):
    whole = SentenceTransformer(str(base_of("bert")), device="cpu", truncate_dim=8)
    whole.save(str(tmp_path / "cut"), create_model_card=False)
    model = load_encoder(tmp_path / "cut")
    assert encode(model, TEXTS) == pytest.approx(whole.encode(TEXTS), abs=1e-5)
    model.save(tmp_path / "again")
    again = SentenceTransformer(str(tmp_path / "again"), device="cpu")
    assert again.encode(TEXTS) == pytest.approx(whole.encode(TEXTS), abs=1e-5)


def test_other_modules_are_left_to_sentence_transformers(base_of, tmp_path):
    whole = SentenceTransformer(str(base_of("static")), device="cpu")
    whole.append(Dense(whole.get_embedding_dimension(), 3))
    whole.save(str(tmp_path / "table"), create_model_card=False)
    assert PlainTable.read(tmp_path / "table") is None
    assert isinstance(load_encoder(tmp_path / "table").sentence_transformer[0], StaticEmbedding)


def test_half_precision_is_read_as_float32(base_of, tmp_path):
    whole = SentenceTransformer(str(base_of("static")), device="cpu").half()
    whole.save(str(tmp_path / "table"), create_model_card=False)
    assert load_encoder(tmp_path / "table").table.weight.dtype == torch.float32


def test_saving_a_table_alone_imports_no_sentence_transformers(tmp_path):
    code = (
        "import sys; from selfsent.models.loading import load_encoder\n"
        "load_encoder('bundled').save(sys.argv[1])\n"
        "assert 'sentence_transformers' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path / "saved")], check=True)
    ordinary = SentenceTransformer(str(tmp_path / "saved"), device="cpu")
    assert ordinary.encode(TEXTS) == pytest.approx(encode(load_encoder("bundled"), TEXTS), abs=1e-6)


def test_searching_with_it_imports_neither_library(tmp_path):
    (tmp_path / "text.txt").write_text("\n".join(tiny.make_sentences(10)))
    code = (
        "import sys; from selfsent.cli import main\n"
        "try: main(sys.argv[1:])\n"
        "except SystemExit as end: assert not end.code\n"
        "assert not {'sentence_transformers', 'torch._dynamo', 'sklearn'} & sys.modules.keys()"
    )
    command = [sys.executable, "-c", code, "search", "bundled", str(tmp_path / "text.txt"), "bidi"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert done.returncode == 0, done.stderr
