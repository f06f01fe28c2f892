import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
import torch
from tokenizers import Tokenizer

import tiny
from selfsent.errors import OutputError, SettingsError
from selfsent.models.encoding import encode
from selfsent.models.export import export
from selfsent.models.loading import load_encoder

DOCUMENTATION = Path(__file__).parents[2] / "docs" / "export.md"


@pytest.fixture(scope="module")
def encoder(base_of):
    return load_encoder(base_of("bert", initializer_range=0.5), "mean").eval()


@pytest.fixture(scope="module")
def exported(encoder, tmp_path_factory):
    """The only real export here: it takes seconds."""
    output = tmp_path_factory.mktemp("export") / "exported"
    return output, export(encoder, output)


@pytest.fixture
def ready_made(exported, monkeypatch):
    """A graph that is there already instead of a new one: of the encoder above, without normalisation."""
    graph = exported[0] / "model.onnx"
    monkeypatch.setattr(torch.onnx, "export", lambda modules, inputs, path, **how: shutil.copy(graph, path))


def vectors_of(directory, texts, **left_out):
    encoded = Tokenizer.from_file(str(directory / "tokenizer.json")).encode_batch(texts)
    inputs = {"input_ids": [one.ids for one in encoded], "attention_mask": [one.attention_mask for one in encoded]}
    session = onnxruntime.InferenceSession(str(directory / "model.onnx"), providers=["CPUExecutionProvider"])
    return session.run(None, {name: np.array(each) for name, each in (inputs | left_out).items()})[0]


def test_the_graph_gives_the_vectors_of_torch(encoder, exported):
    output, said = exported
    assert sorted(path.name for path in output.iterdir()) == ["export.json", "model.onnx", "tokenizer.json"]
    assert said.largest_difference < 1e-5
    assert not said.normalized
    about = json.loads((output / "export.json").read_text())
    assert about["size"] == said.size == 32
    assert about["prompts"] == {"text": "", "query": "", "document": ""}
    sentences = ["ba", *tiny.make_sentences(20), "ko mi " * 300]
    expected = encode(encoder, sentences)
    scale = np.linalg.norm(expected, axis=1, keepdims=True)
    np.testing.assert_allclose(vectors_of(output, sentences) / scale, expected / scale, atol=1e-5)
    alone = np.concatenate([vectors_of(output, [sentence]) for sentence in sentences[-3:]])  # without padding
    np.testing.assert_allclose(alone / scale[-3:], expected[-3:] / scale[-3:], atol=1e-5)


def test_the_ten_lines_of_the_documentation(encoder, exported):
    (code,) = re.findall(r"```python\n(.*?)```", DOCUMENTATION.read_text(), re.S)
    assert len([line for line in code.splitlines() if line]) <= 10
    code += "\nimport json, sys\nassert not {'torch', 'transformers', 'selfsent'} & sys.modules.keys()\n"
    code += "print(json.dumps(vectors.tolist()))"
    done = subprocess.run([sys.executable, "-c", code], cwd=exported[0].parent, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    expected = encode(encoder, ["the printer is dead", "no answer"])
    np.testing.assert_allclose(json.loads(done.stdout), expected, atol=1e-4 * np.linalg.norm(expected))


def test_a_graph_with_other_vectors_is_not_written(encoder, ready_made, tmp_path):
    other = encoder.twin()
    other.transformer.embeddings.word_embeddings.weight.data *= 1.01
    with pytest.raises(OutputError, match="nothing was written: a vector of the graph differs"):
        export(other, tmp_path / "wrong")
    assert list(tmp_path.iterdir()) == []


def test_what_cannot_be_done_is_refused(encoder, tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    with pytest.raises(OutputError, match="is a file"):
        export(encoder, tmp_path / "file")
    monkeypatch.setitem(sys.modules, "onnxscript", None)
    with pytest.raises(SettingsError, match=r'needs onnxscript: .* -e "\.\[onnx\]"'):
        export(encoder, tmp_path / "v")


@pytest.mark.parametrize(("pooling", "unit"), [("mean", False), ("cls", True)])
def test_prompts_that_the_pooling_leaves_out_and_vectors_of_length_one(base_of, tmp_path, pooling, unit):
    model = load_encoder(base_of("bert", initializer_range=0.5, num_hidden_layers=1), pooling).eval()
    model.pooling_module.include_prompt = False
    prompts = {"query": "bidi gafo: ", "document": "ka: "}
    model.sentence_transformer.prompts = prompts
    assert export(model, tmp_path / "graph", unit).normalized is unit
    about = json.loads((tmp_path / "graph" / "export.json").read_text())
    assert about["prompts"] == {"text": "", **prompts}
    assert about["left_out"]["query"] > about["left_out"]["document"] > about["left_out"]["text"] == 0
    texts = ["ba", *tiny.make_sentences(5), "ko mi " * 300]
    for side in ("query", "document"):
        expected = model.sentence_transformer.encode(texts, prompt=prompts[side], normalize_embeddings=unit)
        asked = [prompts[side] + text for text in texts]
        found = vectors_of(tmp_path / "graph", asked, left_out=[about["left_out"][side]])
        np.testing.assert_allclose(found, expected, atol=1e-4 * np.linalg.norm(expected, axis=1).min())


@pytest.mark.full
def test_a_fresh_home_holds_our_own_folders_alone(exported, tmp_path):
    """ONNX Runtime would put the number of this machine and its events there."""
    (tmp_path / "t.txt").write_text("one text\nanother text\n")
    code = f"""
import selfsent
from pathlib import Path
import numpy
from selfsent.models import export
import onnxruntime
corpus = selfsent.read_corpus({str(tmp_path / "t.txt")!r})
selfsent.pairs("bundled", corpus)
graph = Path({str(exported[0])!r}) / "model.onnx"
session = onnxruntime.InferenceSession(str(graph), providers=["CPUExecutionProvider"])
session.run(None, dict.fromkeys(("input_ids", "attention_mask"), numpy.ones((1, 3), numpy.int64)))
"""
    left_out = ("SELFSENT_CACHE", "XDG_CACHE_HOME", "ORT_DISABLE_TELEMETRY")
    environment = {name: value for name, value in os.environ.items() if name not in left_out}
    home = tmp_path / "home"
    home.mkdir()
    subprocess.run([sys.executable, "-c", code], env={**environment, "HOME": str(home)}, check=True)
    found = {path.relative_to(home).parts[:2] for path in home.rglob("*") if path.is_file()}
    assert found == {(".cache", "selfsent")}
